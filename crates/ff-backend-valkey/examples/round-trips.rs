//! Measures calls per second at 1, 16 and 64 in flight; `cargo run --release --example round-trips [URL]`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_valkey::{Durability, Options, ValkeyHost};
use ff_script::{Host, Invocation, Library, Route};
use ff_testkit::{Aof, TestServer};

const LUA: &str = r#"#!lua name=ff_round_trips
redis.register_function{ function_name = "ff_library", flags = { "no-writes" }, callback = function(keys, args)
  return cmsgpack.pack({ ok = { is = "library", number = 1, hash = "round-trips" } })
end }
redis.register_function{ function_name = "ff_nothing", flags = { "no-writes" }, callback = function(keys, args)
  return cmsgpack.pack({ ok = { is = "nothing" } })
end }
redis.register_function("ff_write", function(keys, args)
  redis.call("HSET", keys[1] .. ":h", "f", "v")
  return cmsgpack.pack({ ok = { is = "written" } })
end)
"#;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let given = std::env::args().nth(1);
    for (aof, durability) in [
        (Aof::None, Some(Durability::None)),
        (Aof::EverySecond, None),
        (Aof::Always, None),
        (Aof::EverySecond, Some(Durability::Fsync)),
    ] {
        let server = match &given {
            Some(_) => None,
            None => Some(TestServer::start(ff_testkit::Options { aof, ..Default::default() })?),
        };
        let url = given.clone().or(server.as_ref().map(TestServer::url)).unwrap_or_default();
        let library = Library {
            name: "ff_round_trips",
            number: 1,
            hash: "round-trips".to_owned(),
            text: ff_testkit::in_lists(LUA),
        };
        let host = Arc::new(ValkeyHost::connect(Options { durability, ..Options::new(url, library) }).await?);
        for function in ["ff_nothing", "ff_write"] {
            let mut line = format!("{aof:?} {}: {function}", host.facts().durability);
            for in_flight in [1, 16, 64] {
                let rate = measure(&host, function, in_flight, Duration::from_secs(2)).await?;
                line.push_str(&format!("  {in_flight}: {rate:.0}/s"));
            }
            println!("{line}");
        }
        if given.is_some() {
            break;
        }
    }
    Ok(())
}

async fn measure(
    host: &Arc<ValkeyHost>,
    function: &'static str,
    in_flight: u16,
    time: Duration,
) -> anyhow::Result<f64> {
    let started = Instant::now();
    let callers: Vec<_> = (0..in_flight)
        .map(|caller| {
            let host = Arc::clone(host);
            tokio::spawn(async move {
                let mut calls = 0_u64;
                while started.elapsed() < time {
                    let invocation = Invocation {
                        route: Route::Execution(caller),
                        function,
                        read_only: function == "ff_nothing",
                        args: vec![0x80],
                        now_ms: None,
                        count_calls: false,
                        terms: ff_script::Terms::default(),
                    };
                    host.call(invocation).await?;
                    calls += 1;
                }
                Ok::<u64, ff_script::HostError>(calls)
            })
        })
        .collect();
    let mut calls = 0;
    for caller in callers {
        calls += caller.await??;
    }
    Ok(calls as f64 / started.elapsed().as_secs_f64())
}
