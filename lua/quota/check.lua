local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local reply = require "lib.reply"
local holders = require "index.holders"
local execution = require "record.execution"
local holds = require "record.holds"

-- The releases of this set that the partition still owes.
local function owed(tx, set)
  local members = {}
  for _, entry in ipairs(tx:xrange(keys.outbox(tx), "-", "+", limits.list_limit_max)) do
    local effect = outbox.parse(entry)
    if effect.type == "release_holder" and effect.data.set == set then members[holders.member(effect.data)] = true end
  end
  return members
end

local function state(tx, rec, a, holder)
  if rec and holds.keeps(rec, holder.holder_id, a.set) then return "running" end
  if rec == nil or holds.of(rec) ~= holder.holder_id or not holds.in_set(rec, a.set) then return "gone" end
  if rec.phase == "active" then return "running" end
  -- A grant that ran out cannot be consumed any more.
  if tx.now < rec.grant_until then return "granted", rec.grant_until end
  return "gone"
end

define.fn {
  name = "ff_check_holders",
  doc = "What the executions of this partition say about holders of a holder set: granted until a time, running, gone, "
    .. "or gone with the release still owed.",
  flags = { "no-writes" },
  args = { set = "holder_set", holders = "holders" },
  reply = { checked = { items = "[held_slot]" } },
  errs = {},
  call = function(tx, a)
    local items, releases = {}, nil
    for i, holder in ipairs(a.holders) do
      local is, deadline = state(tx, execution.load(tx, holder.execution_id), a, holder)
      if is == "gone" then
        releases = releases or owed(tx, a.set)
        if releases[holders.member(holder)] then is = "owed" end
      end
      items[i] = { execution_id = holder.execution_id, holder_id = holder.holder_id, state = is, expires_at = deadline }
    end
    return reply.ok("checked", { items = items })
  end,
}
