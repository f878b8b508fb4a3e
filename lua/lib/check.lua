-- Checks values against the types of contracts; a failure names the field and the bound.
local types = require "lib.types"

local check = {}
local named = {} -- type name -> function(value) -> problem, path, code

local function problem(text, code)
  return text, "", code
end

local function integer(v)
  return type(v) == "number" and v == math.floor(v) and v >= -9007199254740991 and v <= 9007199254740991
end

local scalars = {}

function scalars.bool()
  return function(v)
    if type(v) ~= "boolean" then return problem("must be true or false") end
  end
end

function scalars.int(t)
  return function(v)
    if not integer(v) then return problem("must be an integer") end
    if v < t.min or v > t.max then
      return problem(string.format("must be in %.0f..=%.0f, got %.0f", t.min, t.max, v))
    end
  end
end

-- True when every run of digits in a text is a number no larger than `max`, given as digits.
local function digits_within(v, max)
  for run in string.gmatch(v, "%d+") do
    local digits = string.gsub(run, "^0+", "")
    if #digits > #max or (#digits == #max and digits > max) then return false end
  end
  return true
end

function scalars.text(t)
  return function(v)
    if type(v) ~= "string" then return problem("must be text") end
    if #v < t.min or #v > t.max then
      return problem(string.format("must be %d to %d bytes long, got %d", t.min, t.max, #v), t.code)
    end
    if t.pattern and not string.find(v, t.pattern) then
      return problem("holds a character that is not allowed", t.code)
    end
    if t.digits_max and not digits_within(v, t.digits_max) then
      return problem("holds a number that is too large", t.code)
    end
    if t.refuse and string.find(v, t.refuse.pattern) then
      return problem(t.refuse.problem or "holds a character that is not allowed", t.code)
    end
  end
end

function scalars.bytes(t)
  return function(v)
    if type(v) ~= "string" then return problem("must be bytes") end
    if #v > t.max then return problem(string.format("must be at most %d bytes long, got %d", t.max, #v)) end
  end
end

function scalars.uuid()
  local pattern = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"
  return function(v)
    if type(v) ~= "string" or #v ~= 36 or not string.find(v, pattern) or string.find(v, "%u") then
      return problem("must be a UUID in lower case")
    end
  end
end

scalars["enum"] = function(t)
  local known = {}
  for _, value in ipairs(t.values) do known[value] = true end
  return function(v)
    if type(v) ~= "string" or not known[v] then return problem("must be one of " .. table.concat(t.values, ", ")) end
  end
end

-- Only in replies, which nothing checks.
function scalars.native()
  return function() return problem("is not for arguments") end
end

local compile

-- How many items a list holds, or nil when it is none. Entries are counted: the length operator may stop at either side
-- of a hole, and where depends on how the host built the table.
function check.list_length(v)
  if type(v) ~= "table" then return nil end
  local n, last = 0, 0
  for key in pairs(v) do
    if not integer(key) or key < 1 then return nil end
    n, last = n + 1, math.max(last, key)
  end
  if n == last then return n end
end

local function list_of(of, max, bytes_max)
  return function(v)
    local n = check.list_length(v)
    if n == nil then return problem("must be a list") end
    if max and n > max then return problem(string.format("must hold at most %d items, got %d", max, n)) end
    local bytes = 0
    for i = 1, n do
      local text, path, code = of(v[i])
      if text then return text, string.format("[%d]", i - 1) .. path, code end
      if bytes_max then bytes = bytes + #v[i] end
    end
    if bytes_max and bytes > bytes_max then
      return problem(string.format("must hold at most %d bytes in all, got %d", bytes_max, bytes))
    end
  end
end

local function map_of(key_check, value_check, max)
  return function(v)
    if type(v) ~= "table" then return problem("must be a map") end
    local n, worst, text, code = 0, nil, nil, nil
    for key, value in pairs(v) do
      n = n + 1
      local t, p, c = key_check(key)
      if not t then t, p, c = value_check(value) end
      local name = type(key) == "string" and key or "?"
      if t and (worst == nil or name .. p < worst) then worst, text, code = name .. p, t, c end
    end
    if max and n > max then return problem(string.format("must hold at most %d entries, got %d", max, n)) end
    if worst then return text, "." .. worst, code end
  end
end

-- `fields` is a list of { name, type }; the order decides which of two mistakes is reported.
function check.struct(fields)
  local checks, known, required = {}, {}, {}
  for i, field in ipairs(fields) do
    local spec = field[2]
    local optional = string.sub(spec, -1) == "?"
    if optional then spec = string.sub(spec, 1, -2) else required[#required + 1] = field[1] end
    local of = compile(spec)
    checks[i] = { field[1], of, optional, field.flat }
    known[field[1]] = of
  end

  -- Looks only at what is there, in any order: good enough to know that nothing is wrong.
  local function is_fine(v)
    for name, value in pairs(v) do
      local of = known[name]
      if of == nil or of(value) then return false end
    end
    for i = 1, #required do
      if v[required[i]] == nil then return false end
    end
    return true
  end

  return function(v)
    if type(v) ~= "table" then return problem("must be a map") end
    if is_fine(v) then return nil end
    local unknown
    for key in pairs(v) do
      if not known[key] then
        local name = type(key) == "string" and key or "?"
        if unknown == nil or name < unknown then unknown = name end
      end
    end
    if unknown then return "is not a known field", "." .. unknown end
    for i = 1, #checks do
      local name, of, optional = checks[i][1], checks[i][2], checks[i][3]
      local value = v[name]
      if value == nil then
        if not optional then return "is missing", "." .. name end
      else
        local text, path, code = of(value)
        -- A caller knows the fields of a flat struct as fields of this one.
        if text then return text, (checks[i][4] and "" or "." .. name) .. path, code end
      end
    end
  end
end

function compile(spec)
  local first = string.sub(spec, 1, 1)
  if first == "[" then return list_of(compile(string.sub(spec, 2, -2))) end
  if first == "{" then
    local key, value = string.match(spec, "^{([^:]+):(.+)}$")
    return map_of(compile(key), compile(value))
  end
  local known = named[spec]
  if known == nil then error("unknown type " .. spec) end
  return known
end

for _, t in ipairs(types.scalar) do named[t.name] = scalars[t.base](t) end
-- Lists, maps and structs may name each other in any order: each is compiled on first use.
local function later(name, make)
  local real
  named[name] = function(v)
    if real == nil then real = make() end
    return real(v)
  end
end
for _, t in ipairs(types.list) do
  later(t.name, function() return list_of(compile(t.of), t.max, t.bytes_max) end)
end
for _, t in ipairs(types.map) do
  later(t.name, function() return map_of(compile(t.key), compile(t.value), t.max) end)
end
for _, t in ipairs(types.struct) do
  later(t.name, function() return check.struct(t.fields) end)
end

function check.refusal(text, path, code)
  if string.sub(path, 1, 1) == "." then path = string.sub(path, 2) end
  return { err = code or "invalid_argument", detail = { field = path, problem = text } }
end

return check
