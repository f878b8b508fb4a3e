local define = require "lib.define"
local submit = require "transition.submit"

define.fn {
  name = "ff_submit_execution",
  doc = "Accepts one execution whole, or refuses it whole. The same id or idempotency key with the same body answers "
    .. "the first one.",
  flags = {},
  args = { submission = "submission" },
  reply = {
    created = { execution_id = "execution_id", state = "public_state" },
    duplicate = { execution_id = "execution_id", state = "public_state?" },
  },
  errs = {
    "execution_not_found", "idempotency_conflict", "lane_disabled", "lane_full", "lane_unseen", "lane_depth_needed",
    "capability_invalid",
  },
  call = function(tx, a)
    return submit.one(tx, a.submission)
  end,
}
