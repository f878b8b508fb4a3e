-- Every key of the store; all but the configuration record carry the partition's tag.
local keys = {}

local sub, match, sha1hex = string.sub, string.match, redis.sha1hex

-- Names that are made over and over are kept, up to a number.
local routes = {}
local kept_max = 4096

-- The names of a partition that hold nothing but its tag, and those of its lanes. The configuration record has no tag:
-- whoever asks for a key of a partition there has the wrong route.
function keys.of(route)
  local names = routes[route]
  if names then return names end
  local tag = match(route, "{.-}")
  names = { tag = tag, kinds = {}, lanes = {}, kept = 0 }
  if tag then
    local idx, events = "ff:idx:" .. tag .. ":", "ff:events:" .. tag
    names.exec, names.idx, names.lane, names.workers = "ff:exec:" .. tag .. ":", idx, idx .. "lane:", idx .. "workers:"
    names.timers, names.all, names.outbox = idx .. "timers", idx .. "all", "ff:outbox:" .. tag
    names.events, names.event_count = events, events .. ":count"
  end
  routes[route] = names
  return names
end

function keys.digest(s)
  return sub(sha1hex(s), 1, 20)
end

-- The names of one lane, by what they are for.
local function of_lane(names, path)
  local lane = names.lanes[path]
  if lane then return lane end
  if names.kept >= kept_max then names.lanes, names.kinds, names.kept = {}, {}, 0 end
  names.kept = names.kept + 1
  local copy = "ff:lane:" .. names.tag .. ":" .. path
  lane = { copy = copy, memory = copy .. ":memory", place = names.lane .. path .. ":", places = {}, queues = {} }
  names.lanes[path] = lane
  return lane
end

function keys.core(tx, id) return tx.names.exec .. id end
function keys.spec(tx, id) return tx.names.exec .. id .. ":spec" end
function keys.input(tx, id) return tx.names.exec .. id .. ":input" end
function keys.more(tx, id) return tx.names.exec .. id .. ":more" end
function keys.waits(tx, id) return tx.names.exec .. id .. ":waits" end
function keys.result(tx, id) return tx.names.exec .. id .. ":result" end
function keys.attempts(tx, id) return tx.names.exec .. id .. ":attempts" end

function keys.continuation(tx, id) return tx.names.exec .. id .. ":continuation" end
function keys.signals(tx, id) return tx.names.exec .. id .. ":signals" end
-- What makes a signal known: its id, and its idempotency key at its waitpoint.
function keys.signal_keys(tx, id) return tx.names.exec .. id .. ":signal_keys" end

function keys.waitpoint(tx, id) return "ff:wp:" .. tx.tag .. ":" .. id end
function keys.inbox(tx) return "ff:idx:" .. tx.tag .. ":waitpoints" end

function keys.flow(tx, id) return "ff:flow:" .. tx.tag .. ":" .. id .. ":core" end
-- Members by their number, and their ids by key.
function keys.flow_members(tx, id) return "ff:flow:" .. tx.tag .. ":" .. id .. ":members" end
function keys.flow_names(tx, id) return "ff:flow:" .. tx.tag .. ":" .. id .. ":names" end
function keys.flows(tx) return "ff:idx:" .. tx.tag .. ":flows" end
-- Flows that still owe their members a cancel.
function keys.cancel_backlog(tx) return "ff:idx:" .. tx.tag .. ":cancel_backlog" end
-- Edges out of a member by number; those into it, as upstreams with the edge's number there; what is passed along them;
-- children.
function keys.edges_out(tx, id) return tx.names.exec .. id .. ":out" end
function keys.edges_in(tx, id) return tx.names.exec .. id .. ":in" end
function keys.passed(tx, id) return tx.names.exec .. id .. ":passed" end
function keys.children(tx, id) return tx.names.exec .. id .. ":children" end

-- What its handler has done, by name and by number, and results that are too large to stand there.
function keys.steps(tx, id) return tx.names.exec .. id .. ":steps" end
function keys.step_results(tx, id) return tx.names.exec .. id .. ":step_results" end

-- What it used: reports that wait, and the ledger.
function keys.usage(tx, id) return tx.names.exec .. id .. ":usage" end

function keys.stream(tx, id, attempt) return string.format("ff:stream:%s:%s:%.0f", tx.tag, id, attempt) end
function keys.stream_live(tx, id, attempt) return keys.stream(tx, id, attempt) .. ":live" end
function keys.stream_summary(tx, id, attempt) return keys.stream(tx, id, attempt) .. ":summary" end

function keys.idempotency(tx, digest) return "ff:idem:" .. tx.tag .. ":" .. digest end

function keys.lane(tx, path) return of_lane(tx.names, path).copy end
-- What a partition remembers of a lane.
function keys.lane_memory(tx, path) return of_lane(tx.names, path).memory end
function keys.lanes(tx) return "ff:idx:" .. tx.tag .. ":lanes" end
-- The queues of a lane, and the heads of those beside its main one.
function keys.queues(tx, lane) return "ff:idx:" .. tx.tag .. ":lane:" .. lane .. ":queues" end
function keys.heads(tx, path) return keys.place(tx, path, "heads") end
-- A queue by its name, which is its class and its kind.
function keys.queue_named(tx, path, name) return of_lane(tx.names, path).place .. "queue:" .. name end
function keys.queue(tx, path, class, kind)
  local lane = of_lane(tx.names, path)
  local known = lane.queues[class]
  local key = known and known[kind]
  if key == nil then
    key = lane.place .. "queue:" .. class .. ":" .. kind
    if tx.names.kept >= kept_max then return key end
    tx.names.kept = tx.names.kept + 1
    if known == nil then
      known = {}
      lane.queues[class] = known
    end
    known[kind] = key
  end
  return key
end
function keys.fair(tx, lane) return "ff:idx:" .. tx.tag .. ":lane:" .. lane .. ":fair" end
-- `place`: delayed, suspended, terminal, blocked:route, …
function keys.place(tx, path, place)
  local lane = of_lane(tx.names, path)
  local key = lane.places[place]
  if key == nil then
    key = lane.place .. place
    lane.places[place] = key
  end
  return key
end

-- Who waits for a budget, by queue score; who waits for a quota that is not there.
function keys.awaits(tx, id) return "ff:idx:" .. tx.tag .. ":awaits:" .. id end
function keys.missing(tx) return "ff:idx:" .. tx.tag .. ":missing" end

function keys.timers(tx) return tx.names.timers end
function keys.stuck(tx) return "ff:idx:" .. tx.tag .. ":timers:stuck" end
function keys.told(tx) return "ff:idx:" .. tx.tag .. ":told" end
function keys.leases(tx, instance) return tx.names.workers .. instance end

function keys.all(tx) return tx.names.all end
function keys.kind(tx, kind)
  local names = tx.names
  local key = names.kinds[kind]
  if key == nil then
    if names.kept >= kept_max then names.lanes, names.kinds, names.kept = {}, {}, 0 end
    key = names.idx .. "kind:" .. keys.digest(kind)
    names.kept = names.kept + 1
    names.kinds[kind] = key
  end
  return key
end
function keys.tag(tx, name, value)
  return "ff:idx:" .. tx.tag .. ":tag:" .. keys.digest(#name .. ":" .. name .. value)
end

function keys.events(tx) return tx.names.events end
-- How many events the partition ever had.
function keys.event_count(tx) return tx.names.event_count end
function keys.outbox(tx) return tx.names.outbox end
-- What was counted of the events.
function keys.tally(tx) return "ff:tally:" .. tx.tag end
-- What is owed to receivers outside: a webhook, each receiver's line of them by the time of the next try, and the
-- receivers by the heads of their lines.
function keys.webhook(tx, id) return "ff:hook:" .. tx.tag .. ":" .. id end
function keys.receiver(tx, digest) return "ff:outbox:" .. tx.tag .. ":receiver:" .. digest end
function keys.receivers(tx) return "ff:outbox:" .. tx.tag .. ":receivers" end

-- A schedule, what it submits, its last firings by number, and what it submitted and has not ended, by number.
-- `path` is "namespace/name".
function keys.schedules(tx) return "ff:idx:" .. tx.tag .. ":schedules" end
function keys.schedule(tx, path) return "ff:schedule:" .. tx.tag .. ":" .. path .. ":core" end
function keys.schedule_action(tx, path) return "ff:schedule:" .. tx.tag .. ":" .. path .. ":action" end
function keys.firings(tx, path) return "ff:schedule:" .. tx.tag .. ":" .. path .. ":firings" end
function keys.schedule_live(tx, path) return "ff:schedule:" .. tx.tag .. ":" .. path .. ":live" end

function keys.quotas(tx) return "ff:idx:" .. tx.tag .. ":quotas" end
function keys.quota(tx, id) return "ff:quota:" .. tx.tag .. ":" .. id .. ":core" end
-- The keys of a quota that are in use, by the order of their first use.
function keys.quota_keys(tx, id) return "ff:quota:" .. tx.tag .. ":" .. id .. ":keys" end
-- `part`: key, rate, weighted, weights, waiters, asked, oversized, called; `digest` is that of the quota's key.
function keys.quota_part(tx, id, part, digest)
  return "ff:quota:" .. tx.tag .. ":" .. id .. ":" .. part .. ":" .. digest
end

-- `set` names where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest>`, …
function keys.capacity(tx, set) return "ff:quota:" .. tx.tag .. ":" .. set .. ":capacity" end
function keys.holders(tx, set) return "ff:quota:" .. tx.tag .. ":" .. set .. ":holders" end

-- A budget, what is held against it, the reports it knows by their keys and by time, and the budgets right below it.
function keys.budget(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":core" end
function keys.budget_holds(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":holds" end
function keys.budget_reports(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":reports" end
function keys.budget_report_times(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":report_times" end
function keys.budget_children(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":children" end
function keys.budgets(tx) return "ff:idx:" .. tx.tag .. ":budgets" end
-- Budgets that had room again, until whoever waits for them was told.
function keys.cleared(tx) return "ff:idx:" .. tx.tag .. ":cleared" end

-- Budgets or quotas that were deleted, by time.
function keys.gone(tx) return "ff:idx:" .. tx.tag .. ":gone" end

-- Of the fleet: the budgets of namespaces, lanes and flows.
function keys.scopes(tx) return "ff:idx:" .. tx.tag .. ":scopes" end

function keys.worker(tx, instance) return "ff:worker:" .. tx.tag .. ":" .. instance end
function keys.workers(tx) return "ff:idx:" .. tx.tag .. ":workers" end
function keys.draining(tx) return "ff:idx:" .. tx.tag .. ":draining" end
function keys.keyring(tx) return "ff:keyring:" .. tx.tag end
-- Of the fleet: who may do what by the token they bear, and the digests of those tokens.
function keys.access(tx) return "ff:access:" .. tx.tag end
function keys.access_digests(tx) return "ff:access:" .. tx.tag .. ":digests" end
function keys.servers(tx) return "ff:idx:" .. tx.tag .. ":servers" end

return keys
