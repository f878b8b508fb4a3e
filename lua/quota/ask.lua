local define = require "lib.define"
local quota = require "record.quota"
local reply = require "lib.reply"
local holders = require "index.holders"
local room = require "index.room"

-- What the key says to one candidate. One whose grant has run out by now neither enters nor waits.
local function decide(tx, k, c)
  local member = holders.member(c)
  local keep = k.q.definition.hold_while_suspended and k.set or nil
  if room.holds(tx, k, member) then return { holder_id = c.holder_id, admitted = true, keep = keep } end
  if c.expires_at <= tx.now then return { holder_id = c.holder_id, admitted = false } end
  local use = room.refusal(tx, k, c.weight)
  -- It was refused under this very grant or a later one: a copy of that request comes late. Its execution waits in line and is
  -- called; taken in now, it would stand in nobody's line and hold a place for nobody.
  if room.outdated(k, c, use == nil) then return { holder_id = c.holder_id, admitted = false } end
  use = use or room.others_first(tx, k, c)
  if use == nil then
    room.admit(tx, k, member, c)
    return { holder_id = c.holder_id, admitted = true, keep = keep }
  end
  local next_at = not room.never(k, c.weight) and use.next_at() or nil
  room.wait(k, c, next_at)
  return { holder_id = c.holder_id, admitted = false, part = use.part, used = use.used, limit = use.limit, next_at = next_at }
end

define.fn {
  name = "ff_admit_quota",
  doc = "Asks a quota for executions, in order, each under its key: every part passes or nothing is taken. Nobody takes the room of those who were called or stand in line before it. Who is refused waits for its turn; who is in stays.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", candidates = "quota_candidates" },
  reply = { answered = { items = "[quota_answer]" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local known, order, items = {}, {}, {}
    for _, c in ipairs(a.candidates) do
      local digest = quota.digest(c.key)
      local k = known[digest]
      if k == nil then
        k = room.load(tx, q, digest, c.key, true)
        k.asking, known[digest], order[#order + 1] = {}, k, k
      end
      k.asking[#k.asking + 1] = c.execution_id
    end
    for _, k in ipairs(order) do room.look_at_line(tx, k, k.asking) end
    for i, c in ipairs(a.candidates) do items[i] = decide(tx, known[quota.digest(c.key)], c) end
    for _, k in ipairs(order) do room.save(tx, k, true) end
    return reply.ok("answered", { items = items })
  end,
}
