//! Libraries of a few plain functions, for tests of hosts.

/// The functions of `text`, made to be called in lists as those of the real library are. Each gets `{route}` and its arguments, with
/// what the list's marks say as `_guard`, `_listen` and `_now`.
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
local function one(list, at)
  local operation = list[at + 1]
  local called, args = functions[operation[1]], operation[3]
  if called == nil then return cmsgpack.pack({ unknown = operation[1] }) end
  if list[1] % 2 == 1 then args._guard = true end
  if list[1] >= 2 then args._listen = true end
  args._now = operation[4]
  if operation[5] then args._calls = true end
  if redis.begin then redis.begin(at) end
  local fine, answer = pcall(called, { operation[2] }, { cmsgpack.pack(args) })
  if type(answer) == "table" then answer = answer.err end
  if redis.settle then
    local reply = fine and cmsgpack.unpack(answer)
    redis.settle(not fine and "raised" or type(reply) == "table" and reply.err and "refused" or "ok")
  end
  if fine then return answer end
  return cmsgpack.pack({ raised = answer })
end
local function run(_, args)
  local list, answers = cmsgpack.unpack(args[1]), {}
  for at = 1, #list - 1 do answers[at] = one(list, at) end
  return answers
end
redis.register_function{ function_name = "ff_read", callback = run, flags = { "no-writes" } }
redis.register_function{ function_name = "ff_run", callback = run }
redis.register_function{ function_name = "ff_end", callback = run, flags = { "allow-oom" } }
"#;
