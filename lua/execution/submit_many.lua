local define = require "lib.define"
local check = require "lib.check"
local reply = require "lib.reply"
local submit = require "transition.submit"

define.fn {
  name = "ff_submit_executions",
  doc = "Accepts up to 64 executions of one partition; each is answered, accepted or refused on its own.",
  flags = {},
  each = "submissions",
  args = { submissions = "submissions" },
  reply = { submitted = { items = "[submitted]" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for i, s in ipairs(a.submissions) do
      local answer = check.value("submission", s)
      if answer == nil then
        local problem
        answer, problem = tx:item(function() return submit.one(tx, s) end)
        answer = answer or reply.raised(problem)
      end
      if answer.ok then
        items[i] = { execution_id = answer.ok.execution_id, state = answer.ok.state, duplicate = answer.ok.is == "duplicate" }
      else
        items[i] = { refusal = reply.refusal(answer) }
      end
    end
    return reply.ok("submitted", { items = items })
  end,
}
