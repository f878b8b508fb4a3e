local define = require "lib.define"
local reply = require "lib.reply"
local block = require "transition.block"

define.fn {
  name = "ff_block_executions",
  doc = "Admission refused up to 64 granted executions of one partition: each waits for its quota or budget, and is answered on its own.",
  flags = { "allow-oom" },
  args = { refusals = "grant_refusals" },
  reply = { blocked = { items = "[blocked_item]" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for i, item in ipairs(a.refusals) do
      local answer, problem = tx:item(function()
        local refusal = block.one(tx, item)
        if refusal == "already" then return { ok = "already" } end
        return refusal or { ok = "blocked" }
      end)
      answer = answer or reply.raised(problem)
      if answer.ok then
        items[i] = { execution_id = item.execution_id, already = answer.ok == "already" }
      else
        items[i] = { execution_id = item.execution_id, refusal = reply.refusal(answer) }
      end
    end
    return reply.ok("blocked", { items = items })
  end,
}
