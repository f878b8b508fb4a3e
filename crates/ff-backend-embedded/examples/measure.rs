//! Prints the cost of the host's parts: a store command, a planned command, packing, a call, a commit.
//!
//! `cargo run --release -p ff-backend-embedded --example measure`

use std::sync::Arc;
use std::time::Instant;

use ff_backend_embedded::{Durability, Embedded, Options};
use ff_script::{Host, Invocation, Route};

const LIBRARY: &str = r#"#!lua name=measure
local function loop(name, flags, body)
  redis.register_function{ function_name = name, flags = flags, callback = function(keys, args)
    local a = cmsgpack.unpack(args[1])
    body(a.n, a.base or 0)
    return cmsgpack.pack({ ok = {} })
  end }
end
local ro = { "no-writes" }
loop("m_empty", ro, function(n) for _ = 1, n do end end)
loop("m_time", ro, function(n) for _ = 1, n do redis.call("TIME") end end)
loop("m_hget", ro, function(n) for _ = 1, n do redis.call("HGET", "ff:exec:{p:1}:0192f0c1-7d2a-7000-8000-000000000001:core", "field17") end end)
loop("m_hmget", ro, function(n) for _ = 1, n do redis.call("HMGET", "ff:exec:{p:1}:0192f0c1-7d2a-7000-8000-000000000001:core", "field3", "field17", "field29") end end)
loop("m_hgetall", ro, function(n) for _ = 1, n do redis.call("HGETALL", "ff:exec:{p:1}:0192f0c1-7d2a-7000-8000-000000000001:core") end end)
loop("m_zscore", ro, function(n) for _ = 1, n do redis.call("ZSCORE", "ff:idx:{p:1}:all", "m500") end end)
loop("m_zrange", ro, function(n) for _ = 1, n do redis.call("ZRANGE", "ff:idx:{p:1}:all", "-inf", "+inf", "BYSCORE", "LIMIT", "0", "4", "WITHSCORES") end end)
loop("m_hset", {}, function(n) for i = 1, n do redis.call("HSET", "ff:exec:{p:1}:0192f0c1-7d2a-7000-8000-000000000001:core", "field17", "value" .. i) end end)
loop("m_zadd", {}, function(n, base) for i = 1, n do redis.call("ZADD", "ff:idx:{p:1}:all", string.format("%.0f", 1700000000000 + base + i), "0192f0c1-7d2a-7000-8000-" .. string.format("%012d", base + i)) end end)
loop("m_zrem", {}, function(n, base) for i = 1, n do redis.call("ZREM", "ff:idx:{p:1}:all", "0192f0c1-7d2a-7000-8000-" .. string.format("%012d", base + i)) end end)
loop("m_xadd", {}, function(n) for i = 1, n do redis.call("XADD", "ff:events:{p:1}", "MAXLEN", "~", "100000", "*", "e", "0123456789012345678901234567890123456789") end end)
loop("m_commit", {}, function(n, base)
  for i = 1, n do
    local id = "0192f0c1-7d2a-7000-8000-" .. string.format("%012d", base + i)
    local core = "ff:exec:{p:1}:" .. id .. ":core"
    redis.commit({
      { "HSET", core, "state", "runnable", "lane", "default/work", "created", "1700000000000", "priority", "0", "input", "0123456789" },
      { "ZADD", "ff:idx:{p:1}:lane:default/work:eligible", "1700000000000", id },
      { "ZADD", "ff:idx:{p:1}:all", "1700000000000", id },
      { "ZADD", "ff:idx:{p:1}:timers", "1700000000000", id },
      { "XADD", "ff:events:{p:1}", "MAXLEN", "~", "100000", "*", "e", "0123456789012345678901234567890123456789" },
    })
  end
end)
loop("m_pack", ro, function(n)
  local v = { kind = "render", lane = "default", id = "0192f0c1-7d2a-7000-8000-000000000001", tags = { a = "b", c = "d" }, list = { 1, 2, 3 }, n = 12345678 }
  for _ = 1, n do cmsgpack.pack(v) end
end)
loop("m_unpack", ro, function(n)
  local v = cmsgpack.pack({ kind = "render", lane = "default", id = "0192f0c1-7d2a-7000-8000-000000000001", tags = { a = "b", c = "d" }, list = { 1, 2, 3 }, n = 12345678 })
  for _ = 1, n do cmsgpack.unpack(v) end
end)
loop("m_seed", {}, function(n)
  for i = 0, 39 do redis.call("HSET", "ff:exec:{p:1}:0192f0c1-7d2a-7000-8000-000000000001:core", "field" .. i, "a value of some length " .. i) end
  for i = 1, n do redis.call("ZADD", "ff:idx:{p:1}:all", i, "m" .. i) end
end)
"#;

fn invocation(function: &'static str, read_only: bool, n: u32, base: u64) -> Invocation {
    let mut args = Vec::new();
    let sink = "writing to memory cannot fail";
    rmp::encode::write_map_len(&mut args, 2).expect(sink);
    rmp::encode::write_str(&mut args, "n").expect(sink);
    rmp::encode::write_uint(&mut args, u64::from(n)).expect(sink);
    rmp::encode::write_str(&mut args, "base").expect(sink);
    rmp::encode::write_uint(&mut args, base).expect(sink);
    Invocation {
        route: Route::Execution(1),
        function,
        read_only,
        args,
        now_ms: None,
        count_calls: false,
        terms: ff_script::Terms::default(),
    }
}

#[tokio::main]
async fn main() {
    for durability in [Durability::Fsync, Durability::Relaxed] {
        let directory = tempfile::tempdir().expect("a directory for the store");
        let mut options = Options::new(directory.path(), ff_testkit::in_lists(LIBRARY));
        options.durability = durability;
        options.instructions_max = u64::MAX;
        let host = Arc::new(Embedded::open(options).expect("the store opens"));
        println!("== {}", host.facts().durability);
        host.call(invocation("m_seed", false, 1_000, 0)).await.expect("seeded");
        let n = 100_000;
        for (function, read_only) in [
            ("m_empty", true),
            ("m_time", true),
            ("m_hget", true),
            ("m_hmget", true),
            ("m_hgetall", true),
            ("m_zscore", true),
            ("m_zrange", true),
            ("m_pack", true),
            ("m_unpack", true),
            ("m_hset", false),
            ("m_zadd", false),
            ("m_zrem", false),
            ("m_xadd", false),
            ("m_commit", false),
        ] {
            let start = Instant::now();
            host.call(invocation(function, read_only, n, 0)).await.expect(function);
            println!("{function:12} {:8.0} ns", start.elapsed().as_nanos() as f64 / f64::from(n));
        }
        for in_flight in [1u64, 16, 64, 256] {
            let calls = 200 * in_flight.min(64);
            let start = Instant::now();
            let tasks: Vec<_> = (0..in_flight)
                .map(|lane| {
                    let host = Arc::clone(&host);
                    tokio::spawn(async move {
                        for i in 0..calls / in_flight {
                            let base = 1_000_000 * (1 + lane) + i + in_flight * 1_000_000_000;
                            host.call(invocation("m_commit", false, 1, base)).await.expect("committed");
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("finished");
            }
            let per_second = calls as f64 / start.elapsed().as_secs_f64();
            println!("calls of one 5-command plan, {in_flight:3} in flight: {per_second:9.0} /s");
        }
    }
}
