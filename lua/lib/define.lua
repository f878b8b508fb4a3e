-- Binds contracts to operations, and runs lists of them: each is checked, planned, committed and answered on its own.
local define = {}

local functions = {} -- name -> contract
local order = {}
local booted = false

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
  booted = true
end

-- What raised, as text.
local function text_of(problem)
  if type(problem) == "table" then return problem.err or "unknown" end
  return problem
end

-- Plans and commits. Answers the reply, or nil and the text of what raised.
local function carry_out(contract, tx, args)
  local fine, answer = pcall(contract.call, tx, args, tx.now)
  if not fine then
    answer = text_of(answer)
    local refusal = require("lib.reply").corrupt(answer)
    if refusal then return refusal end
    return nil, answer
  end
  if answer.ok and not contract.read_only then
    local committed, busy = pcall(tx.commit, tx)
    if not committed then return nil, text_of(busy) end
    if busy then return { err = "try_again", detail = { problem = busy } } end
  end
  return answer
end

-- An operation: { name, route, arguments, the time or nil, whether its store calls are counted }.
local function operate(shared, operation, at)
  local contract = functions[operation[1]]
  if contract == nil then return { unknown = operation[1] } end
  if shared.kind == "read" and not contract.read_only then
    return { raised = contract.name .. " writes and cannot be called read-only" }
  end
  local args = operation[3]
  local answer, problem = contract.check(args), nil
  local tx
  if answer == nil then
    tx = shared.Tx.new(shared, operation[2], operation[4] or nil, at)
    if redis.begin then redis.begin(at) end
    answer, problem = carry_out(contract, tx, args)
    if redis.settle then redis.settle(problem and "raised" or answer.err and "refused" or "ok") end
    if answer == nil then return { raised = problem } end
  end
  if operation[5] then answer.calls = tx and tx.calls or 0 end
  return answer
end

-- Runs a list: what holds for all of it, then its operations. `kind` is the class of the function it came by.
function define.run(kind, argv)
  if not booted then boot() end
  local list = cmsgpack.unpack(argv[1])
  local Tx = require "lib.tx"
  local shared = Tx.share(kind, list[1])
  local answers = {}
  for at = 1, #list - 1 do answers[at] = cmsgpack.pack(operate(shared, list[at + 1], at)) end
  Tx.say(shared)
  return answers
end

-- The one function that is called by its own name: what is loaded, asked before anything else is.
function define.library()
  if not booted then boot() end
  return cmsgpack.pack(functions.ff_library.call())
end

return define
