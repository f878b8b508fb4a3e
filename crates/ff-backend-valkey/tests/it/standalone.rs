//! One server: calls, errors, restarts.

use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::ValkeyHost;
use ff_script::dump::DumpValue;
use ff_script::{Content, Contents, Host, HostError, Invocation, ScanCursor};
use ff_testkit::{Aof, Options as ServerOptions, TestServer};

use crate::kit::*;

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_answered_on_every_flavour() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let host = connect(&server.url()).await;
        assert_eq!(count(&host, route(1), "a").await.unwrap(), 1);
        assert_eq!(count(&host, route(1), "b").await.unwrap(), 2);
        assert_eq!(count(&host, route(1), "b").await.unwrap(), 2, "a repetition answers the same");
        assert_eq!(read_count(&host, route(1)).await, 2);
        assert_eq!(read_count(&host, route(2)).await, 0);
        let facts = host.facts();
        assert_eq!((facts.kind, facts.durability.as_str(), facts.healthy), ("valkey", "relaxed", true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_envelope_carries_what_is_on() {
    let server = server(Aof::EverySecond);
    let host = connect(&server.url()).await;
    let plain = call(&host, echo(None, false)).await;
    assert_eq!(plain.as_map().unwrap().len(), 1, "{plain}");
    host.set_listening(true);
    let full = call(&host, echo(Some(1_700_000_000_123), true)).await;
    assert_eq!(field(&full, "_now").as_i64(), Some(1_700_000_000_123));
    assert_eq!(field(&full, "_calls").as_bool(), Some(true));
    assert_eq!(field(&full, "_listen").as_bool(), Some(true));
    assert!(field(&full, "_guard").is_nil(), "a single server moves no slots");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raise_is_reported_with_the_function_that_raised() {
    let server = server(Aof::EverySecond);
    let host = connect(&server.url()).await;
    match write(&host, route(0), "ff_raise", &[]).await {
        Err(HostError::Raised { function, detail }) => {
            assert_eq!(function, "ff_raise");
            assert!(detail.contains("boom"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
    match write(&host, route(0), "ff_unheard_of", &[]).await {
        Err(HostError::Refused { detail }) => assert!(detail.contains("ff_unheard_of"), "{detail}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_after_the_server_was_killed_and_started_again() {
    for binary in flavours() {
        let mut server = server_of(&binary, Aof::Always);
        let host = connect(&server.url()).await;
        assert_eq!(count(&host, route(1), "a").await.unwrap(), 1);
        server.kill_9();
        let during = tokio::spawn({
            let host = Arc::clone(&host);
            async move { count(&host, route(1), "b").await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!during.is_finished());
        server.restart().unwrap();
        assert_eq!(during.await.unwrap().unwrap(), 2, "the call waited for the restart");
        assert_eq!(count(&host, route(1), "c").await.unwrap(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_in_flight_survive_kills_and_each_request_counts_once() {
    let mut server = server(Aof::Always);
    let host = connect(&server.url()).await;
    let calls = load(&host, 16, &[route(7)], Duration::from_millis(2));
    for _ in 0..3 {
        calls.go_on().await;
        tokio::task::block_in_place(|| server.restart()).unwrap();
    }
    for (route, asked) in calls.stop().await {
        assert_eq!(read_count(&host, route).await, asked, "{route}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_server_is_unavailable_after_the_deadline_and_not_before() {
    let mut server = server(Aof::EverySecond);
    let mut options = options(&server.url());
    options.deadline = Duration::from_millis(600);
    let host = ValkeyHost::connect(options.clone()).await.unwrap();
    server.kill_9();
    let started = std::time::Instant::now();
    match count(&host, route(0), "a").await {
        Err(HostError::Unavailable { detail }) => assert!(detail.contains("ff_count"), "{detail}"),
        other => panic!("{other:?}"),
    }
    assert!(started.elapsed() > Duration::from_millis(300), "{:?}", started.elapsed());
    assert!(!host.facts().healthy);
    assert!(matches!(ValkeyHost::connect(options).await, Err(HostError::Unavailable { .. })));
    server.restart().unwrap();
    count(&host, route(0), "a").await.unwrap();
    assert!(host.facts().healthy);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_answering_is_unavailable_after_the_deadline() {
    let server = server(Aof::EverySecond);
    let mut options = options(&server.url());
    options.deadline = Duration::from_millis(1_500);
    options.attempt_limit = Duration::from_millis(400);
    let host = ValkeyHost::connect(options).await.unwrap();
    count(&host, route(0), "a").await.unwrap();
    let pid = server.pid().unwrap().to_string();
    let signal =
        |name: &str| assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-STOP");
    let outcome = count(&host, route(0), "b").await;
    signal("-CONT");
    assert!(matches!(outcome, Err(HostError::Unavailable { .. })), "{outcome:?}");
    assert_eq!(count(&host, route(0), "c").await.map(|n| n >= 2), Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_refused_and_the_right_one_works() {
    for binary in flavours() {
        let options = ServerOptions { binary: Some(binary), password: Some("sesame".into()), ..Default::default() };
        let server = TestServer::start(options).unwrap();
        let host = connect(&server.url()).await;
        count(&host, route(0), "a").await.unwrap();
        for url in [server.url().replace("sesame", "wrong"), format!("valkey://{}", server.address())] {
            match ValkeyHost::connect(crate::kit::options(&url)).await {
                Err(HostError::Refused { detail }) => {
                    assert!(!detail.contains("wrong@"), "{detail}")
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_is_full() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let host = connect(&server.url()).await;
        server.command::<String>(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
        let outcome = count(&host, route(0), "a").await;
        assert!(matches!(outcome, Err(HostError::Full { .. })), "{outcome:?}");
        assert_eq!(read_count(&host, route(0)).await, 0, "reads go on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_that_come_together_share_calls_and_nothing_else() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let host = connect(&server.url()).await;
        count(&host, route(0), "first").await.unwrap();
        server.command::<String>(&["CONFIG", "RESETSTAT"]).unwrap();
        let mut operations: Vec<Invocation> =
            (0..150).map(|n| invocation(route(n % 4), "ff_count", false, &[("request", &n.to_string())])).collect();
        operations[7] = invocation(route(0), "ff_raise", false, &[]);
        operations[70] = Invocation { function: "ff_nowhere", ..operations[70].clone() };
        operations[71].args = vec![0xc0];
        let answers = host.run(operations).await;
        for (n, answer) in answers.iter().enumerate() {
            match (n, answer) {
                (7, Err(HostError::Raised { function, detail })) => {
                    assert!(function == "ff_raise" && detail.contains("boom"), "{detail}");
                }
                (70, Err(HostError::Refused { detail })) => assert!(detail.contains("ff_nowhere"), "{detail}"),
                (71, Err(HostError::Refused { detail })) => assert!(detail.contains("msgpack map"), "{detail}"),
                (_, Ok(_)) if ![7, 70, 71].contains(&n) => {}
                other => panic!("{other:?}"),
            }
        }
        let sum: i64 = futures::future::join_all((0..4).map(|n| read_count(&host, route(n)))).await.iter().sum();
        assert_eq!(sum, 148, "each once, and the first");
        let stats = server.command::<String>(&["INFO", "commandstats"]).unwrap();
        let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_fcall:calls=")).expect("calls were made");
        let calls: u32 = calls.split(',').next().unwrap().parse().unwrap();
        // Three lists; the unknown operation is retried a few times alone.
        assert!((3..=8).contains(&calls), "{calls} calls");
        // An operation whose caller has gone is not sent.
        drop(host.call(invocation(route(0), "ff_count", false, &[("request", "never polled")])));
        assert_eq!(read_count(&host, route(0)).await + 1, count(&host, route(0), "last").await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_another_format_is_refused_and_keeps_its_library() {
    let server = server(Aof::EverySecond);
    server.command::<i64>(&["HSET", "ff:config:partitions", "executions", "256"]).unwrap();
    let refused = ValkeyHost::connect(options(&server.url())).await.unwrap_err();
    let HostError::Refused { detail } = refused else { panic!("{refused:?}") };
    assert!(detail.contains("has format 1") && detail.contains("reads format 3"), "{detail}");
    assert_eq!(server.command::<Vec<redis::Value>>(&["FUNCTION", "LIST"]).unwrap(), [], "nothing was loaded");
    server.command::<i64>(&["HSET", "ff:config:partitions", "format", "3"]).unwrap();
    connect(&server.url()).await;
    let loaded = server.command::<Vec<redis::Value>>(&["FUNCTION", "LIST"]).unwrap();
    assert_eq!(loaded.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_refused() {
    let server = server(Aof::EverySecond);
    let _ = connect(&server.url()).await;
    server.command::<String>(&["ACL", "SETUSER", "ann", "on", ">pw", "~ff:*", "&ff:*", "+@all", "-hincrby"]).unwrap();
    let host = connect(&server.url().replace("valkey://", "valkey://ann:pw@")).await;
    let outcome = count(&host, route(0), "a").await;
    assert!(matches!(outcome, Err(HostError::Refused { .. })), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_host_sends_nothing() {
    let server = server(Aof::EverySecond);
    let host = connect(&server.url()).await;
    host.subscribe(&[route(0), route(1)]).await.unwrap();
    count(&host, route(0), "a").await.unwrap();
    let before = host.store_commands().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let after = host.store_commands().await.unwrap();
    assert_eq!(after - before, 1, "only the INFO of the measurement");
}

#[tokio::test(flavor = "multi_thread")]
async fn scan_finds_every_key_of_ours_and_no_other() {
    let server = server(Aof::EverySecond);
    server.command::<String>(&["SET", "foreign", "1"]).unwrap();
    let host = connect(&server.url()).await;
    for n in 0..50 {
        count(&host, route(n), "a").await.unwrap();
    }
    let mut keys = std::collections::BTreeSet::new();
    let mut cursor = ScanCursor::Start;
    while cursor != ScanCursor::End {
        let page = host.scan(cursor, 10).await.unwrap();
        keys.extend(page.keys);
        cursor = page.next;
    }
    assert_eq!(keys.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_shows_every_kind_of_value() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let host = connect(&server.url()).await;
        write(&host, route(3), "ff_kinds", &[]).await.unwrap();
        let dump = host.dump().await.unwrap();
        assert_eq!(dump.len(), 4);
        assert_eq!(dump["ff:hash:{p:3}"], DumpValue::Hash([(b"f".to_vec(), b"v\0\xff".to_vec())].into()));
        assert_eq!(dump["ff:zset:{p:3}"], DumpValue::Zset([(b"m".to_vec(), 1.5)].into()));
        assert_eq!(dump["ff:string:{p:3}"], DumpValue::String(b"s".to_vec()));
        let fields = vec![(b"b".to_vec(), b"1".to_vec()), (b"a".to_vec(), b"2".to_vec())];
        assert_eq!(dump["ff:stream:{p:3}"], DumpValue::Stream(vec![("1-1".into(), fields)]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_permissions_suffice() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let host =
            "+fcall +fcall_ro +function|load +info +watch +multi +exec +set +del +ssubscribe +config|get +scan +hmget";
        let library = "+exists +hincrby +hget +spublish";
        let mut command = vec!["ACL", "SETUSER", "ann", "on", ">pw", "~ff:*", "&ff:wake:*"];
        command.extend(host.split(' ').chain(library.split(' ')));
        server.command::<String>(&command).unwrap();
        let host = connect(&server.url().replace("valkey://", "valkey://ann:pw@")).await;
        assert_eq!(count(&host, route(0), "a").await.unwrap(), 1);
        let mut watch = host.watch();
        host.subscribe(&[route(0)]).await.unwrap();
        write(&host, route(0), "ff_announce", &[("payload", "x")]).await.unwrap();
        assert_eq!(next_message(&mut watch).await, (route(0), b"x".to_vec()));
        assert_eq!(host.store_commands().await.map(|n| n > 0), Ok(true));
        host.scan(ScanCursor::Start, 10).await.unwrap();
        server.command::<String>(&["FUNCTION", "FLUSH", "SYNC"]).unwrap();
        assert_eq!(count(&host, route(0), "b").await.unwrap(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_not_permitted_is_refused() {
    let server = server(Aof::EverySecond);
    server.command::<String>(&["ACL", "SETUSER", "ann", "on", ">pw", "~*", "+@all", "resetchannels"]).unwrap();
    let host = connect(&server.url().replace("valkey://", "valkey://ann:pw@")).await;
    let outcome = host.subscribe(&[route(0)]).await;
    assert!(matches!(outcome, Err(HostError::Refused { .. })), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_written_as_they_are_are_read_as_they_were() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let host = connect(&server.url()).await;
        let keys = vec![
            (
                b"ff:{p:1}:hash".to_vec(),
                Content::Hash(vec![(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), vec![0, 255])]),
            ),
            (b"ff:{p:1}:zset".to_vec(), Content::Zset(vec![(b"m".to_vec(), 1.25), (b"n".to_vec(), 1e15)])),
            (b"ff:{p:2}:text".to_vec(), Content::Text(b"x".to_vec())),
            (
                b"ff:{p:2}:stream".to_vec(),
                Content::Stream { entries: vec![((5, 1), vec![(b"f".to_vec(), b"v".to_vec())])], last: (9, 0) },
            ),
            (b"ff:{p:3}:trimmed".to_vec(), Content::Stream { entries: Vec::new(), last: (7, 3) }),
        ];
        host.write_keys(keys.clone()).await.unwrap();
        let names = keys.iter().map(|(key, _)| key.clone()).chain([b"ff:{p:4}:none".to_vec()]).collect();
        let read = host.read_keys(names).await.unwrap();
        let expected: Vec<Option<Content>> = keys.into_iter().map(|(_, content)| Some(content)).chain([None]).collect();
        assert_eq!(read, expected, "{binary:?}");
        let refused = host.write_keys(vec![(b"ff:{p:1}:hash".to_vec(), Content::Zset(vec![(b"m".to_vec(), 1.0)]))]);
        assert!(refused.await.is_err(), "a key that holds something else");
        let gone = vec![b"ff:{p:1}:hash".to_vec(), b"ff:{p:2}:stream".to_vec(), b"ff:{p:4}:none".to_vec()];
        host.remove_keys(gone.clone()).await.unwrap();
        assert_eq!(host.read_keys(gone).await.unwrap(), [None, None, None]);
        assert!(host.read_keys(vec![b"ff:{p:1}:zset".to_vec()]).await.unwrap()[0].is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_any_size_is_read_in_pieces() {
    const MANY: u64 = 3_000;
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let host = connect(&server.url()).await;
        let text = |n: u64| format!("{n:05}").into_bytes();
        let keys = vec![
            (b"ff:{p:1}:hash".to_vec(), Content::Hash((0..MANY).map(|n| (text(n), text(n + 1))).collect())),
            (b"ff:{p:1}:zset".to_vec(), Content::Zset((0..MANY).map(|n| (text(n), n as f64)).collect())),
            (
                b"ff:{p:1}:stream".to_vec(),
                Content::Stream {
                    entries: (0..MANY).map(|n| ((1 + n / 7, n % 7), vec![(b"f".to_vec(), text(n))])).collect(),
                    last: (1 + MANY, 0),
                },
            ),
        ];
        host.write_keys(keys.clone()).await.unwrap();
        let read = host.read_keys(keys.iter().map(|(key, _)| key.clone()).collect()).await.unwrap();
        assert!(read.into_iter().eq(keys.into_iter().map(|(_, content)| Some(content))), "{binary:?}");
        let counts = server.command::<String>(&["INFO", "commandstats"]).unwrap();
        let calls = |command: &str| -> u64 {
            let line = counts.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
            line.and_then(|line| line.split(',').next()).and_then(|calls| calls.parse().ok()).unwrap_or(0)
        };
        for command in ["hscan", "zscan", "xrange"] {
            assert!(calls(command) > 3, "{command} of {binary:?}: {counts}");
        }
    }
}
