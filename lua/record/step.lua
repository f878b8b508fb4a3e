-- The steps of an execution: what its handler has done, and what it waits for under a name. One hash holds them: the
-- number of a step under its name, the step under its number. Large results are in a hash of their own, by number.
--
-- **Invariant:** steps are numbered 1, 2, 3, … in the order in which they were first recorded. The execution's record
-- counts them and the bytes of their results, so a write reads no other step.
local children = require "record.children"
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"
local reply = require "lib.reply"
local signals = require "record.signals"
local suspension = require "record.suspension"

local step = {}

local open, close = packed.open_step, packed.close_step

local function by_number(n) return string.format("%.0f", n) end
-- Names are marked, since a name may look like a number.
local function by_name(name) return "=" .. name end

local function opened(tx, rec, number, stored)
  local key = keys.steps(tx, rec.id)
  if not stored then error("CORRUPT " .. key .. " " .. by_number(number), 0) end
  local s = open(key .. " " .. by_number(number), stored)
  s.number = number
  return s
end

-- The step of this name, or nil.
function step.find(tx, rec, name)
  if rec.steps == nil then return nil end
  local key = keys.steps(tx, rec.id)
  local number = tonumber(tx:hget(key, by_name(name)))
  return number and opened(tx, rec, number, tx:hget(key, by_number(number)))
end

-- Steps as they are stored, from a number on: at most so many, and until so many bytes; a page has one at least. The
-- second answer is where to go on, or nil.
function step.stored(tx, rec, from, count, bytes_max)
  local out, bytes, number, last = {}, 0, from, rec.steps or 0
  while number <= last and #out < count do
    local fields = {}
    for n = number, math.min(last, number + limits.steps_page_max - 1) do fields[#fields + 1] = by_number(n) end
    for i, stored in ipairs(tx:hmget(keys.steps(tx, rec.id), fields)) do
      if not stored then error("CORRUPT " .. keys.steps(tx, rec.id) .. " " .. fields[i], 0) end
      bytes = bytes + #stored
      if #out == count or (#out > 0 and bytes > bytes_max) then return out, number + i - 1 end
      out[#out + 1] = stored
    end
    number = number + #fields
  end
  return out, number <= last and number or nil
end

-- The same, opened.
function step.page(tx, rec, from, count, bytes_max)
  local list, rest = step.stored(tx, rec, from, count, bytes_max)
  for i, stored in ipairs(list) do list[i] = opened(tx, rec, from + i - 1, stored) end
  return list, rest
end

-- What a claim carries, and how many bytes it is at most.
function step.carried(tx, rec)
  if rec.steps == nil then return nil, nil end
  local list, rest = step.stored(tx, rec, 1, limits.steps_max, limits.steps_carried_bytes_max)
  return list, rest and true or nil
end

function step.weight(rec)
  if rec.steps == nil then return 0 end
  return math.min(rec.steps * 128 + (rec.step_bytes or 0), limits.steps_carried_bytes_max)
end

-- A sleep is over when its time has come: nobody has to write that down.
function step.state(s, now)
  if s.kind == "sleep" and s.state == "waiting" and s.due <= now then return "done" end
  return s.state
end

function step.typed(s, now)
  local state, failure = step.state(s, now), s.failure and cmsgpack.unpack(s.failure)
  return {
    name = s.name, number = s.number, kind = s.kind, state = state, tries = s.tries or 1, started_at = s.started,
    ended_at = s.ended or (state == "done" and s.due) or nil, attempt_index = s.attempt, result_bytes = s.bytes,
    failure = failure and { reason = failure[1], category = failure[2] } or nil, due_at = s.due,
    input_digest = s.digest,
  }
end

-- The result of a step, wherever it is stored.
function step.result(tx, rec, s)
  if s.far then return tx:hget(keys.step_results(tx, rec.id), by_number(s.number)) end
  return s.result
end

-- The refusal of one that is recorded as something else.
function step.changed(s, what)
  return reply.err("step_changed", { step = s.name, kind = s.kind, input_digest = s.digest, asked = what })
end

-- The refusal when there is no room for a step, or for so many bytes more; `s` is the step when it is known.
function step.full(rec, s, bytes)
  if s == nil and (rec.steps or 0) >= limits.steps_max then
    return reply.err("steps_full", { steps = rec.steps, steps_max = limits.steps_max })
  end
  if bytes and bytes > 0 and (rec.step_bytes or 0) + bytes > limits.steps_bytes_max then
    return reply.err("steps_full", { bytes = rec.step_bytes or 0, bytes_max = limits.steps_bytes_max })
  end
end

-- A new step gets its number.
local function enter(tx, rec, s)
  if s.number then return end
  rec.steps = (rec.steps or 0) + 1
  s.number = rec.steps
  tx:hput(keys.steps(tx, rec.id), by_name(s.name), by_number(s.number))
end

-- Plans a step. The execution that it belongs to is stored by the caller.
function step.put(tx, rec, s)
  enter(tx, rec, s)
  tx:hput(keys.steps(tx, rec.id), by_number(s.number), close(s))
end

-- Gives a step its result, in place of the one it had; the step is put by the caller.
function step.set_result(tx, rec, s, result, encoding)
  enter(tx, rec, s)
  local was_far = s.far
  rec.step_bytes = (rec.step_bytes or 0) - (s.bytes or 0) + #result
  s.bytes, s.result, s.far, s.result_in = #result, nil, nil, encoding ~= "json" and encoding or nil
  if #result > limits.step_inline_bytes_max then
    s.far = 1
    tx:hput(keys.step_results(tx, rec.id), by_number(s.number), result)
  else
    s.result = result
    if was_far then tx:hdel(keys.step_results(tx, rec.id), by_number(s.number)) end
  end
end

-- A new step of this attempt.
function step.new(rec, name, kind, now)
  return { name = name, kind = kind, state = "waiting", attempt = rec.attempt, started = now, tries = 1 }
end

-- Waits -----------------------------------------------------------------------------------------

-- The attempt waits under this name; asked for anew, it has begun now.
function step.wait(tx, rec, s, name, kind, started)
  s = s or step.new(rec, name, kind, started)
  s.state, s.attempt, s.started = "waiting", rec.attempt, started
  step.put(tx, rec, s)
end

-- What a wait came to: { id, cause, refs, actor, upto }; `upto` is how many children there were.
function step.found(tx, rec, name, kind, found)
  local s = step.find(tx, rec, name) or step.new(rec, name, kind, tx.now)
  s.state, s.ended = "done", tx.now
  s.found = cmsgpack.pack({ found.id, found.cause, found.refs, found.actor or false, found.upto or false })
  step.put(tx, rec, s)
end

-- The children that outlive their execution in a fork of it, as they were when it was forked.
local function kept_children(tx, rec, s, from)
  local all, out = cmsgpack.unpack(step.result(tx, rec, s)), {}
  for i = from, math.min(#all, from + limits.children_inline_max - 1) do out[#out + 1] = all[i] end
  return out, from + #out <= #all and from + #out or nil
end

local function outcomes(tx, rec, s, upto, from)
  if s.bytes then return kept_children(tx, rec, s, from) end
  local count = math.min(limits.children_inline_max, upto - from + 1)
  if count <= 0 then return {}, nil end
  local list, rest = children.page(tx, rec, from, count, limits.resume_inline_bytes_max)
  return list, rest and rest <= upto and rest or nil
end

-- What a wait that is done came to, as its handler gets to see it, from the so many-th signal or child on.
function step.resume(tx, rec, s, from)
  local w, list, rest = cmsgpack.unpack(s.found), nil, nil
  local ended = { id = w[1], cause = w[2], refs = w[3], step = s.name, actor = w[4] or nil }
  local told = suspension.told(tx, rec, ended, from)
  if w[2] == "children" then
    list, rest = outcomes(tx, rec, s, w[5], from or 1)
    told.children, told.more_children = list, rest and true or nil
  end
  return told
end

-- The ids of the children that a step spawned.
function step.spawned(s)
  return cmsgpack.unpack(s.found)[3]
end

-- Forgetting and copying --------------------------------------------------------------------------

-- Forgets the steps from a number on.
function step.forget(tx, rec, from)
  if rec.steps == nil then return end
  local key, far = keys.steps(tx, rec.id), keys.step_results(tx, rec.id)
  if from == 1 then
    tx:del(key)
    tx:del(far)
    rec.steps, rec.step_bytes = nil, nil
    return
  end
  local gone, next_one = {}, from
  while next_one do
    local list
    list, next_one = step.page(tx, rec, next_one, limits.steps_page_max, limits.steps_bytes_max)
    for _, s in ipairs(list) do gone[#gone + 1] = s end
  end
  for _, s in ipairs(gone) do
    tx:hdel(key, by_name(s.name))
    tx:hdel(key, by_number(s.number))
    if s.far then tx:hdel(far, by_number(s.number)) end
    rec.step_bytes = (rec.step_bytes or 0) - (s.bytes or 0)
  end
  rec.steps = from - 1
end

-- The signals that a wait found, in the copy's own stream.
local function copy_signals(tx, rec, copy, refs)
  local out = {}
  for i, s in ipairs((signals.named(tx, rec, refs, 1, limits.signals_max, limits.steps_bytes_max))) do
    out[i] = signals.append(tx, copy, s)
  end
  return out
end

-- Copies one finished step. Answers the refusal when what it waited for is too large to be kept.
local function copy_one(tx, rec, copy, s)
  local result, found = s.bytes and step.result(tx, rec, s), s.found and cmsgpack.unpack(s.found)
  local encoding, state = s.result_in or "json", step.state(s, tx.now)
  s.number, s.attempt, s.bytes, s.result, s.far = nil, 0, nil, nil, nil
  s.state, s.ended = state, s.ended or s.due
  if s.kind == "signal" then
    s.found = cmsgpack.pack({ found[1], found[2], copy_signals(tx, rec, copy, found[3]), found[4], false })
  elseif s.kind == "children" and result == nil then
    local list, rest = children.page(tx, rec, 1, math.max(found[5], 1), limits.step_result_bytes_max)
    if rest and rest <= found[5] then
      return reply.err("invalid_argument", {
        field = "from_step",
        problem = string.format("must not come after %s: the results of its children are too large", s.name),
      })
    end
    result = cmsgpack.pack(list)
  end
  if result then step.set_result(tx, copy, s, result, encoding) end
  step.put(tx, copy, s)
end

-- The number of the last wait for children among the steps that are copied, or 0.
local function last_join(tx, rec, before)
  local at, last = 1, 0
  while at and at < before do
    local list, rest = step.page(tx, rec, at, math.min(limits.steps_page_max, before - at), limits.steps_bytes_max)
    for _, s in ipairs(list) do
      if s.kind == "children" and s.state == "done" then last = s.number end
    end
    at = rest
  end
  return last
end

-- Copies the finished steps before a number to another execution of this partition. Spawned children belong to the
-- execution that they were spawned by, so a spawn is copied together with a later wait that has their outcomes; without
-- one the copy spawns children of its own.
function step.copy(tx, rec, copy, before)
  local at, joined = 1, last_join(tx, rec, before)
  while at and at < before do
    local list, rest = step.page(tx, rec, at, math.min(limits.steps_page_max, before - at), limits.steps_bytes_max)
    for _, s in ipairs(list) do
      local kept = s.kind ~= "spawn" or s.number < joined
      if kept and step.state(s, tx.now) == "done" then
        local refusal = copy_one(tx, rec, copy, s)
        if refusal then return refusal end
      end
    end
    at = rest
  end
end

function step.remove_all(tx, rec)
  if rec.steps == nil then return end
  tx:del(keys.steps(tx, rec.id))
  tx:del(keys.step_results(tx, rec.id))
end

return step
