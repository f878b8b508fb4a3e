local define = require "lib.define"
local check = require "lib.check"
local reply = require "lib.reply"
local complete = require "transition.complete"

define.fn {
  name = "ff_complete_executions",
  doc = "Completes up to 64 executions of one partition; each is answered on its own.",
  flags = { "allow-oom" },
  each = "completions",
  args = { completions = "completions" },
  reply = { completed = { items = "[completed_item]" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    -- Items are committed one by one: a malformed one refuses the call before the first of them.
    for i, item in ipairs(a.completions) do
      local refusal = check.value("completion", item, string.format("completions[%d]", i - 1))
      if refusal then return refusal end
    end
    for i, item in ipairs(a.completions) do
      local answer, problem = tx:item(function()
        local refusal = complete.one(tx, item)
        if refusal == "replay" then return { ok = "replay" } end
        return refusal or { ok = "done" }
      end)
      answer = answer or reply.raised(problem)
      if answer.ok then
        items[i] = { execution_id = item.execution_id, replayed = answer.ok == "replay" }
      else
        items[i] = { execution_id = item.execution_id, refusal = reply.refusal(answer) }
      end
    end
    return reply.ok("completed", { items = items })
  end,
}
