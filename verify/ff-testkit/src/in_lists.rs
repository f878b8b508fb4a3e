//! Libraries of a few plain functions, for tests of hosts.

/// Wraps the functions of `text` so that they can be called in lists, like those of the real library. Each gets
/// `{route}` and its arguments, with the list's marks as `_guard`, `_listen` and `_now`.
pub fn in_lists(text: &str) -> String {
    let (first_line, rest) = text.split_once('\n').expect("a library begins with its name");
    let functions = rest.replace("redis.register_function", "register");
    format!("{first_line}\n{BEFORE}\n{functions}\n{AFTER}")
}

const BEFORE: &str = r#"
local functions = {}
local function register(first, second)
  local name = second and first or first.function_name
  functions[name] = second or first.callback
  if name == "ff_library" then redis.register_function(first) end
end
"#;

const AFTER: &str = r#"
local function one(marks, at, name, route, args, now, counted)
  local called = functions[name]
  if called == nil then return cmsgpack.pack(nil, "unknown", name) end
  if marks % 2 == 1 then args._guard = true end
  if marks % 4 >= 2 then args._listen = true end
  args._now = now
  if counted then args._calls = true end
  if redis.begin then redis.begin(at) end
  local fine, answer = pcall(called, { route }, { cmsgpack.pack(args) })
  if type(answer) == "table" then answer = answer.err end
  if redis.settle then
    local first = fine and cmsgpack.unpack(answer)
    local refused = fine and (first == false or type(first) == "table" and first.err)
    redis.settle(not fine and "raised" or refused and "refused" or "ok")
  end
  if fine then return answer end
  return cmsgpack.pack(nil, "raised", answer)
end
local function run(_, args)
  local marks, answers = cmsgpack.unpack(args[1]), {}
  for at = 2, #args do answers[at - 1] = one(marks, at - 1, cmsgpack.unpack(args[at])) end
  return answers
end
redis.register_function{ function_name = "ff_read", callback = run, flags = { "no-writes" } }
redis.register_function{ function_name = "ff_run", callback = run }
redis.register_function{ function_name = "ff_end", callback = run, flags = { "allow-oom" } }
"#;
