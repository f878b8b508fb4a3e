-- Binds contracts to operations, and runs lists of them: each is checked, planned and answered on its own.
local define = {}

local functions = {} -- name -> contract
local order = {}
local plain = {} -- variant without fields -> its packed answer
local tx -- the view of the partition that every operation gets
local pay -- pays what operations owe to other partitions

local pack, unpack_, pcall, type = cmsgpack.pack, cmsgpack.unpack, pcall, type
local settle_host = redis.settle

-- Makes an operation known by its contract.
function define.fn(contract)
  functions[contract.name] = contract
  order[#order + 1] = contract.name
end

function define.contracts()
  local list = {}
  for i, name in ipairs(order) do list[i] = functions[name] end
  return list
end

local function argument_fields(contract)
  local fields = {}
  for name, spec in pairs(contract.args) do
    fields[#fields + 1] = { name, spec }
  end
  table.sort(fields, function(a, b) return a[1] < b[1] end)
  return fields
end

local function compile(contract)
  local check = require "lib.check"
  local whole = check.struct(argument_fields(contract))
  contract.check = function(args)
    local problem, at, code = whole(args)
    if problem then return check.refusal(problem, at, code) end
  end
  for _, flag in ipairs(contract.flags or {}) do
    if flag == "no-writes" then contract.read_only = true end
  end
end

local function boot()
  for _, module in ipairs(require "manifest") do require(module) end
  for _, name in ipairs(order) do compile(functions[name]) end
  tx, pay = require "lib.tx", require "transition.pay"
end

-- A packed answer: the variant and its fields, or false, the code of a refusal and its detail. What raised, and what is
-- not known, is nil, the word and a text. The number of store calls comes last when it was asked for.
local function packed(answer, calls)
  local fields, variant = answer.fields, answer.ok
  if answer.bytes then return calls and answer.bytes .. pack(calls) or answer.bytes end
  if answer.err then return pack(false, answer.err, answer.detail, calls) end
  if calls == nil and fields == nil then
    local known = plain[variant]
    if known == nil then
      known = pack(variant, nil)
      plain[variant] = known
    end
    return known
  end
  return pack(variant, fields, calls)
end

-- The answer of an operation that raised.
local function raised(problem)
  if type(problem) == "table" then problem = problem.err or "unknown" end
  local refusal = require("lib.reply").corrupt(problem)
  return refusal and packed(refusal) or pack(nil, "raised", problem), refusal and "refused" or "raised"
end

-- An operation: its name, its route, its arguments, the time or nil, and whether its store calls are counted. `trusted`
-- says that the arguments were checked by the same rules.
local function operate(trusted, at, name, route, args, now, counted)
  local contract = functions[name]
  if contract == nil then return pack(nil, "unknown", name) end
  if tx.kind == "read" and not contract.read_only then
    return pack(nil, "raised", name .. " writes and cannot be called read-only")
  end
  if not trusted then
    local refusal = contract.check(args)
    if refusal then return packed(refusal, counted and 0 or nil) end
  end
  if tx:owing() > 0 and not contract.pays_later then pay.all(tx) end
  tx:operation(at, route, now)
  local fine, answer = pcall(contract.call, tx, args, tx.now)
  local reply, outcome
  if not fine then
    tx:reset()
    reply, outcome = raised(answer)
  elseif answer.err then
    tx:reset()
    reply, outcome = packed(answer, counted and tx.calls or nil), "refused"
  else
    if not contract.read_only then tx:finish() end
    reply, outcome = packed(answer, counted and tx.calls or nil), "ok"
  end
  if settle_host then settle_host(outcome) end
  return tx.lost or reply
end

-- Runs a list: `argv` holds what is true for all of it, then its operations. `kind` is the class of the function it
-- came by.
function define.run(kind, argv)
  if tx == nil then boot() end
  local marks, number, executions, budgets, quotas = unpack_(argv[1])
  tx:list(kind, marks, executions, budgets, quotas)
  local answers, trusted = tx.answers, number == LIBRARY.number
  for i = 2, #argv do
    -- An answer may be replaced while those behind it run.
    answers[i - 1] = operate(trusted, i - 1, unpack_(argv[i]))
  end
  tx:flush_all()
  if tx:owing() > 0 then pay.all(tx) end
  tx:close()
  return answers
end

-- The one function that is called by its own name: what is loaded, asked before anything else is. Every version reads
-- its reply, so it has a shape of its own.
function define.library()
  if tx == nil then boot() end
  return pack({ ok = functions.ff_library.call().fields })
end

return define
