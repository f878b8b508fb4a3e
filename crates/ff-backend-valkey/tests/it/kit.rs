//! A small test library, and short ways to call it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ff_backend_valkey::{Options, ValkeyHost};
use ff_script::{Host, HostError, Invocation, Library, Route, WakeUp, Watch};
use ff_testkit::tier::{Tier, tier};
use ff_testkit::{Aof, ServerBinary, TestServer};

/// The library: counters, a two-key write with and without the guard, an announcement, a raise, an echo.
pub fn library(number: u32, hash: &str) -> Library {
    let text = ff_testkit::in_lists(&LUA.replace("NUMBER", &number.to_string()).replace("HASH", hash));
    Library { name: "ff_host_test", number, hash: hash.to_owned(), text }
}

const LUA: &str = r#"#!lua name=ff_host_test
local function tag(keys) return string.match(keys[1], "{.-}") end
local function ok(fields) return cmsgpack.pack({ ok = fields }) end

redis.register_function{ function_name = "ff_library", flags = { "no-writes" }, callback = function(keys, args)
  return ok({ is = "library", number = NUMBER, hash = "HASH" })
end }

redis.register_function{ function_name = "ff_echo", flags = { "no-writes" }, callback = function(keys, args)
  return cmsgpack.pack({ ok = cmsgpack.unpack(args[1]) })
end }

-- Adds one to a counter, once for each request id.
redis.register_function("ff_count", function(keys, args)
  local a, t = cmsgpack.unpack(args[1]), tag(keys)
  local seen = "ff:seen:" .. t .. ":" .. a.request
  if redis.call("EXISTS", seen) == 0 then
    redis.call("SET", seen, "1")
    redis.call("HINCRBY", "ff:count:" .. t, "n", 1)
  end
  return ok({ is = "counted", n = tonumber(redis.call("HGET", "ff:count:" .. t, "n")) })
end)

redis.register_function{ function_name = "ff_read_count", flags = { "no-writes" }, callback = function(keys, args)
  return ok({ is = "count", n = tonumber(redis.call("HGET", "ff:count:" .. tag(keys), "n") or "0") })
end }

-- Writes one value into two keys; with the guard it touches both before the first write.
redis.register_function("ff_pair", function(keys, args)
  local a, t = cmsgpack.unpack(args[1]), tag(keys)
  local one, two = "ff:one:" .. t, "ff:two:" .. t
  if a._guard then redis.call("EXISTS", one, two) end
  redis.call("HSET", one, "v", a.value)
  redis.call("HSET", two, "v", a.value)
  return ok({ is = "written" })
end)

redis.register_function("ff_announce", function(keys, args)
  local a = cmsgpack.unpack(args[1])
  redis.call("SPUBLISH", "ff:wake:" .. tag(keys), a.payload)
  return ok({ is = "announced" })
end)

redis.register_function("ff_raise", function(keys, args)
  error("boom")
end)

redis.register_function("ff_kinds", function(keys, args)
  local t = tag(keys)
  redis.call("HSET", "ff:hash:" .. t, "f", "v\0\255")
  redis.call("ZADD", "ff:zset:" .. t, "1.5", "m")
  redis.call("SET", "ff:string:" .. t, "s")
  redis.call("XADD", "ff:stream:" .. t, "1-1", "b", "1", "a", "2")
  return ok({ is = "written" })
end)
"#;

pub fn options(url: &str) -> Options {
    Options::new(url, library(1, "aaaa"))
}

pub async fn connect(url: &str) -> Arc<ValkeyHost> {
    Arc::new(ValkeyHost::connect(options(url)).await.unwrap())
}

/// Every installed flavour; Valkey is required.
pub fn flavours() -> Vec<ServerBinary> {
    let mut flavours = vec![ServerBinary::valkey().unwrap()];
    if tier() > Tier::Quick {
        flavours.push(ServerBinary::redis().unwrap());
    }
    flavours
}

pub fn server(aof: Aof) -> TestServer {
    TestServer::start(ff_testkit::Options { aof, ..Default::default() }).unwrap()
}

pub fn server_of(binary: &ServerBinary, aof: Aof) -> TestServer {
    TestServer::start(ff_testkit::Options { binary: Some(binary.clone()), aof, ..Default::default() }).unwrap()
}

pub const fn route(n: u16) -> Route {
    Route::Execution(n)
}

pub fn invocation(route: Route, function: &'static str, read_only: bool, fields: &[(&str, &str)]) -> Invocation {
    let fields = fields.iter().map(|(name, value)| (rmpv::Value::from(*name), rmpv::Value::from(*value))).collect();
    let mut args = Vec::new();
    rmpv::encode::write_value(&mut args, &rmpv::Value::Map(fields)).unwrap();
    Invocation {
        route,
        function,
        read_only,
        args,
        now_ms: None,
        count_calls: false,
        terms: ff_script::Terms::default(),
    }
}

/// Calls a function that writes, and returns the value under `ok`.
pub async fn write(
    host: &ValkeyHost,
    route: Route,
    function: &'static str,
    fields: &[(&str, &str)],
) -> Result<rmpv::Value, HostError> {
    host.call(invocation(route, function, false, fields)).await.map(|reply| ok(&reply))
}

/// Calls a function that only reads.
pub async fn read(
    host: &ValkeyHost,
    route: Route,
    function: &'static str,
    fields: &[(&str, &str)],
) -> Result<rmpv::Value, HostError> {
    host.call(invocation(route, function, true, fields)).await.map(|reply| ok(&reply))
}

pub async fn call(host: &ValkeyHost, invocation: Invocation) -> rmpv::Value {
    ok(&host.call(invocation).await.unwrap())
}

pub fn echo(now_ms: Option<i64>, count_calls: bool) -> Invocation {
    Invocation { now_ms, count_calls, ..invocation(route(0), "ff_echo", true, &[("a", "b")]) }
}

fn ok(reply: &[u8]) -> rmpv::Value {
    let mut rest = reply;
    let first = rmpv::decode::read_value(&mut rest).unwrap();
    // The shipped library returns an outcome and its fields.
    if first.is_str() { rmpv::decode::read_value(&mut rest).unwrap() } else { field(&first, "ok") }
}

pub fn field(value: &rmpv::Value, name: &str) -> rmpv::Value {
    let entries = value.as_map().unwrap_or_else(|| panic!("{value} is not a map"));
    entries.iter().find(|(key, _)| key.as_str() == Some(name)).map_or(rmpv::Value::Nil, |(_, value)| value.clone())
}

pub async fn count(host: &ValkeyHost, route: Route, request: &str) -> Result<i64, HostError> {
    let reply = write(host, route, "ff_count", &[("request", request)]).await?;
    Ok(field(&reply, "n").as_i64().unwrap())
}

pub async fn read_count(host: &ValkeyHost, route: Route) -> i64 {
    let reply = read(host, route, "ff_read_count", &[]).await.unwrap();
    field(&reply, "n").as_i64().unwrap()
}

/// The next wake-up, within five seconds.
pub async fn next(watch: &mut Watch) -> WakeUp {
    tokio::time::timeout(Duration::from_secs(120), watch.recv()).await.expect("no wake-up within two minutes").unwrap()
}

/// The next message; resubscriptions before it are skipped.
pub async fn next_message(watch: &mut Watch) -> (Route, Vec<u8>) {
    loop {
        if let WakeUp::Message { route, payload } = next(watch).await {
            return (route, payload);
        }
    }
}

/// Callers in the background that count, each request once, until they are stopped.
pub struct Calls {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    calling: tokio::task::JoinHandle<BTreeMap<Route, i64>>,
}

impl Calls {
    /// Waits until some more calls have replies, so that the next step meets callers at work.
    pub async fn go_on(&self) {
        let before = self.answered.load(Ordering::SeqCst);
        while self.answered.load(Ordering::SeqCst) < before + 10 {
            assert!(!self.calling.is_finished(), "a caller failed");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Lets them continue a little, stops them, and returns the number of requests for each route.
    pub async fn stop(self) -> BTreeMap<Route, i64> {
        self.go_on().await;
        self.stop.store(true, Ordering::SeqCst);
        self.calling.await.unwrap()
    }
}

pub fn load(host: &Arc<ValkeyHost>, callers: usize, routes: &[Route], pause: Duration) -> Calls {
    let (host, routes) = (Arc::clone(host), routes.to_vec());
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&answered));
    let calling = tokio::spawn(async move {
        let callers = (0..callers).map(|caller| {
            let (host, routes, stopped, counted) = (&host, &routes, &stopped, &counted);
            async move {
                let mut asked: BTreeMap<Route, i64> = BTreeMap::new();
                for n in 0.. {
                    if stopped.load(Ordering::SeqCst) {
                        break;
                    }
                    let route = routes[n % routes.len()];
                    count(host, route, &format!("{caller}/{n}")).await.unwrap();
                    *asked.entry(route).or_default() += 1;
                    counted.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(pause).await;
                }
                asked
            }
        });
        let mut all: BTreeMap<Route, i64> = BTreeMap::new();
        for (route, count) in futures::future::join_all(callers).await.into_iter().flatten() {
            *all.entry(route).or_default() += count;
        }
        all
    });
    Calls { stop, answered, calling }
}
