#!lua name=t
-- Functions that run whatever commands they are given.
local function each(args, run)
  local a = cmsgpack.unpack(args[1])
  local replies = {}
  for i, command in ipairs(a.commands) do
    replies[i] = run(unpack(command))
  end
  return cmsgpack.pack(replies)
end

redis.register_function{ function_name = "t_run", callback = function(_, args)
  return each(args, redis.pcall)
end }

redis.register_function{ function_name = "t_read", callback = function(_, args)
  return each(args, redis.pcall)
end, flags = { "no-writes" } }

-- Raises at the first refusal.
redis.register_function{ function_name = "t_call", callback = function(_, args)
  return each(args, redis.call)
end }

-- Commits the commands as one plan.
redis.register_function{ function_name = "t_commit", callback = function(_, args)
  return cmsgpack.pack(redis.commit(cmsgpack.unpack(args[1]).commands))
end }

-- Commits, and swallows a refusal.
redis.register_function{ function_name = "t_try_commit", callback = function(_, args)
  local ok, why = pcall(redis.commit, cmsgpack.unpack(args[1]).commands)
  return cmsgpack.pack({ ok, why })
end }

redis.register_function{ function_name = "t_write_then_raise", callback = function(_, args)
  each(args, redis.call)
  error("after the writes")
end }

redis.register_function{ function_name = "t_write_then_refuse", callback = function(_, args)
  each(args, redis.call)
  return cmsgpack.pack({ calls = 1, err = "no" })
end }

redis.register_function{ function_name = "t_echo", callback = function(_, args)
  return cmsgpack.pack(cmsgpack.unpack(args[1]))
end, flags = { "no-writes" } }

-- Packs literals by name, so that the encoder is seen without the decoder.
redis.register_function{ function_name = "t_pack", callback = function(_, args)
  local values = {
    empty = {}, array = { 1, 2, 3 }, map = { a = 1 }, holes = { [1] = 1, [3] = 3 }, half = 0.5, tenth = 0.1, yes = true,
    big = 2^53, negative = -2^53, huge = 1e300, infinite = math.huge, zero = -0.0,
  }
  return cmsgpack.pack(values[cmsgpack.unpack(args[1]).name])
end, flags = { "no-writes" } }

redis.register_function{ function_name = "t_deep", callback = function(_, args)
  local value = 1
  for _ = 1, cmsgpack.unpack(args[1]).depth do value = { value } end
  return cmsgpack.pack(value)
end, flags = { "no-writes" } }

redis.register_function{ function_name = "t_eval", callback = function(_, args)
  local probes = {
    global_read = function() return nothing end,
    global_write = function() something = 1 end,
    module_write = function() string.extra = 1 end,
    redis_write = function() redis.extra = 1 end,
    no_os = function() return os end,
    no_io = function() return io end,
    no_debug = function() return debug end,
    no_load = function() return loadstring end,
    no_require = function() return require end,
    no_coroutine = function() return coroutine end,
    no_globals = function() return _G end,
    no_setfenv = function() return setfenv end,
    random = function() return math.random() end,
    dump = function() return string.dump(function() end) end,
    endless = function() while true do end end,
    not_a_string = function() redis.call("GET", {}) end,
    no_command = function() redis.call() end,
    load_time_only = function() redis["register_function"]("x", function() end) end,
    sha1 = function() return redis.sha1hex("abc") end,
    numbers = function() return redis.call("ZADD", "{p:1}n", 1700000000123, 17) end,
    overwrite_global = function() pairs = 1 end,
    overwrite_module = function() string.format = 1 end,
    overwrite_redis = function() redis.call = 1 end,
    table_error = function() error("plain", 0) end,
  }
  local ok, result = pcall(probes[cmsgpack.unpack(args[1]).probe])
  return cmsgpack.pack({ ok, type(result) == "userdata" and tostring(result) or result })
end }

redis.register_function("t_number_reply", function() return 1 end)

redis.register_function{ function_name = "t_endless", callback = function() while true do end end, flags = { "no-writes" } }

redis.register_function{ function_name = "t_stubborn", callback = function()
  while true do pcall(function() while true do end end) end
end, flags = { "no-writes" } }
