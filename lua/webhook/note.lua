local define = require "lib.define"
local reply = require "lib.reply"
local webhook = require "record.webhook"

define.fn {
  name = "ff_note_webhook",
  doc = "Says what the try of this number came to: the webhook leaves when it was delivered, refused or has failed for "
    .. "too long, and is tried again otherwise. A failure of a try that is not the last one begun counts for nothing; "
    .. "a delivery always does.",
  flags = { "allow-oom" },
  args = {
    delivery_id = "delivery_id", tries = "count", result = "webhook_result", status = "http_status?",
    error = "webhook_error?", retry_after_ms = "duration_ms?", draw = "permille",
  },
  reply = { delivered = {}, failed = {}, put_off = { next_at = "time_ms", now = "time_ms" }, stale = {} },
  errs = {},
  call = function(tx, a, now)
    local d = webhook.load(tx, a.delivery_id)
    if d == nil or (a.result ~= "delivered" and a.tries ~= d.tries) then return reply.ok("stale") end
    d.status, d.error = a.status, a.error
    if a.result == "delivered" then
      webhook.close(tx, d, "delivered")
      return reply.ok("delivered")
    end
    local due = a.result == "failed" and webhook.again_at(tx, d, a.retry_after_ms, a.draw) or nil
    if due == nil then
      webhook.close(tx, d, "failed")
      return reply.ok("failed")
    end
    webhook.put_off(tx, d, due)
    return reply.ok("put_off", { next_at = due, now = now })
  end,
}
