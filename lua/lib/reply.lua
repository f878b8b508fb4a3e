-- The two shapes of an answer: a variant with its fields, or a refusal with its detail.
local reply = {}

function reply.ok(variant, fields)
  return { ok = variant, fields = fields }
end

-- Details are texts, so that every host and client reads them alike.
function reply.err(code, detail)
  local texts = {}
  for name, value in pairs(detail or {}) do
    if type(value) == "number" then value = string.format("%.0f", value) end
    if type(value) == "boolean" then value = value and "true" or "false" end
    texts[name] = value
  end
  return { err = code, detail = texts }
end

-- The refusal for a record that cannot be read; nil for any other raise, which is a defect.
function reply.corrupt(problem)
  local key, field = string.match(problem, "CORRUPT (%S+) (%S+)")
  return key and reply.err("corrupt_record", { key = key, field = field }) or nil
end

return reply
