-- Binds contracts to functions: checks arguments, runs the function, commits its plan, packs the reply.
local define = {}

local functions = {} -- name -> contract
local order = {}
local booted = false

-- Registers a function with its contract. `each` names an argument whose items are checked one by one
-- by the function itself, so that one bad item of a batch does not refuse the others.
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
    if name ~= contract.each then fields[#fields + 1] = { name, spec } end
  end
  table.sort(fields, function(a, b) return a[1] < b[1] end)
  return fields
end

-- The outer shape of a batch: a list that is neither empty nor too long.
local function batch_problem(items, max)
  if items == nil then return "is missing" end
  local count = require("lib.check").list_length(items)
  if count == nil then return "must be a list" end
  if count == 0 or count > max then return string.format("must hold 1 to %d items, got %d", max, count) end
end

local function compile(contract)
  local check = require "lib.check"
  local limits = require "lib.limits"
  local whole = check.struct(argument_fields(contract))
  contract.check = function(args)
    local items
    if contract.each then
      items = args[contract.each]
      local text = batch_problem(items, limits.batch_max)
      if text then return check.refusal(text, contract.each) end
      args[contract.each] = nil
    end
    local problem, at, code = whole(args)
    if problem then return check.refusal(problem, at, code) end
    if contract.each then args[contract.each] = items end
  end
  for _, flag in ipairs(contract.flags or {}) do
    if flag == "no-writes" then contract.read_only = true end
  end
end

local function boot()
  for _, module in ipairs(require "manifest") do require(module) end
  for _, name in ipairs(order) do compile(functions[name]) end
  booted = true
end

local function run(contract, tx, args)
  local fine, answer = pcall(contract.call, tx, args, tx.now)
  if fine then return answer end
  if type(answer) == "table" then answer = answer.err or "unknown" end
  return require("lib.reply").raised(answer)
end

function define.invoke(name, keys, argv)
  if not booted then boot() end
  local contract = functions[name]
  local args = cmsgpack.unpack(argv[1])
  local envelope = { guard = args._guard, listen = args._listen, now = args._now }
  local count = args._calls
  args._guard, args._listen, args._now, args._calls = nil, nil, nil, nil

  local answer = contract.check(args)
  local tx
  if answer == nil then
    tx = require("lib.tx").new(keys[1], envelope, LIBRARY.test)
    answer = run(contract, tx, args)
    if answer.ok and not contract.read_only then
      local busy = tx:commit()
      if busy then answer = { err = "try_again", detail = { problem = busy } } end
    end
  end
  if count then answer.calls = tx and tx.calls or 0 end
  return cmsgpack.pack(answer)
end

return define
