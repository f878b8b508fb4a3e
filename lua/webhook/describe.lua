local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local flow = require "record.flow"
local webhook = require "record.webhook"

define.fn {
  name = "ff_describe_webhook",
  doc = "How far the webhook of the last end of an execution or a flow is; none before the first end.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id?", flow_id = "flow_id?" },
  reply = { webhook = { status = "webhook_status?" } },
  errs = { "execution_not_found", "flow_not_found" },
  call = function(tx, a)
    if (a.execution_id == nil) == (a.flow_id == nil) then
      return reply.err("invalid_argument", {
        field = "execution_id", problem = "give execution_id or flow_id, one of them",
      })
    end
    local rec, missing
    if a.execution_id then
      rec, missing = execution.load(tx, a.execution_id), "execution_not_found"
    else
      rec, missing = flow.find(tx, a.flow_id), "flow_not_found"
    end
    if rec == nil then return reply.err(missing) end
    return reply.ok("webhook", { status = webhook.status(rec.hook) })
  end,
}
