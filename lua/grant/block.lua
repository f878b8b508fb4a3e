local define = require "lib.define"
local reply = require "lib.reply"
local block = require "transition.block"

define.fn {
  name = "ff_block_execution",
  doc = "Admission refused a granted execution: it waits for its quota or budget, with the reason recorded. `unheld` "
    .. "says that no set has taken it in.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", grant_id = "grant_id", reason = "admission_reason", detail = "detail",
    unheld = "bool?",
  },
  reply = { blocked = {}, already = {} },
  errs = { "execution_not_found", "grant_not_found" },
  call = function(tx, a)
    local answer = block.one(tx, a)
    if answer == "already" then return reply.ok("already") end
    return answer or reply.ok("blocked")
  end,
}
