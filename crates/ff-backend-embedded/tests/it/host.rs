//! The host's promises beyond single commands: groups, failures, the directory, messages, the sandbox.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use crate::support::{
    Fixture, NOW_MS, commands, decode, encode, invocation, open, open_strict, options, options as options_of, show,
    text,
};
use ff_backend_embedded::{DumpValue, Embedded};
use ff_script::{Content, Contents, Host, HostError, Invocation, Route, ScanCursor, WakeUp};
use rmpv::Value;

fn named(name: &str, value: Value) -> Value {
    Value::Map(vec![(Value::from(name), value)])
}

fn string_of(fixture: &std::collections::BTreeMap<String, DumpValue>, key: &str) -> Option<Vec<u8>> {
    match fixture.get(key) {
        Some(DumpValue::String(bytes)) => Some(bytes.clone()),
        _ => None,
    }
}

#[tokio::test]
async fn msgpack_round_trips() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let all: Vec<u8> = (0..=255).collect();
    let mut values = vec![
        Value::Nil,
        Value::from(true),
        Value::from(false),
        Value::from(0.5),
        Value::from(-1e300),
        text(&all),
        text(""),
        text("x".repeat(31)),
        text("x".repeat(32)),
        text("x".repeat(255)),
        text("x".repeat(256)),
        text("x".repeat(65_536)),
        Value::Array(vec![]),
        Value::Array((0..16).map(Value::from).collect()),
        Value::Array((0..70_000).map(Value::from).collect()),
    ];
    for exponent in [0, 5, 6, 7, 8, 15, 16, 31, 32, 52, 53] {
        for offset in [-1i64, 0, 1] {
            let n = (1i64 << exponent) + offset;
            if n <= 1 << 53 {
                values.push(Value::from(n));
                values.push(Value::from(-n));
            }
        }
    }
    values.push(named(
        "a",
        Value::Array(vec![named("b", Value::Array(vec![Value::from(1), named("c", Value::from("d"))]))]),
    ));
    for value in values {
        if value.is_nil() {
            continue; // an absent field, by design
        }
        let reply = fixture.call("t_echo", named("v", value.clone())).await.unwrap();
        let back =
            reply.as_map().unwrap().iter().find(|(k, _)| k.as_str() == Some("v")).map(|(_, v)| v.clone()).unwrap();
        let same = match (&back, &value) {
            (Value::F32(a), Value::F64(b)) => f64::from(*a) == *b,
            _ => back == value,
        };
        assert!(same, "{value} came back as {back}");
    }
}

#[tokio::test]
async fn packing_takes_the_forms_valkey_takes() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    for (name, bytes) in [
        ("empty", &[0x90][..]),
        ("array", &[0x93, 1, 2, 3]),
        ("map", &[0x81, 0xa1, b'a', 1]),
        ("half", &[0xca, 0x3f, 0, 0, 0]),
        ("tenth", &[0xcb, 0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a]),
        ("yes", &[0xc3]),
        ("big", &[0xcf, 0, 0x20, 0, 0, 0, 0, 0, 0]),
        ("negative", &[0xd3, 0xff, 0xe0, 0, 0, 0, 0, 0, 0]),
        ("infinite", &[0xca, 0x7f, 0x80, 0, 0]),
        ("zero", &[0x00]),
        ("missing", &[0xc0]),
    ] {
        let reply = fixture.host.call(invocation("t_pack", named("name", Value::from(name)))).await.unwrap();
        assert_eq!(reply, bytes, "{name}");
    }
    let holes = fixture.call("t_pack", named("name", Value::from("holes"))).await.unwrap();
    assert!(holes.is_map(), "an array with holes is a map");
    fixture.call("t_deep", named("depth", Value::from(16))).await.unwrap();
    assert!(fixture.call("t_deep", named("depth", Value::from(17))).await.is_err());
}

#[tokio::test]
async fn bad_input_is_refused_by_unpack() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let mut deep = vec![0x81, 0xa1, b'v'];
    deep.extend(std::iter::repeat_n(0x91, 1_000_000));
    let lies: Vec<Vec<u8>> = vec![
        vec![0x81],
        vec![0x81, 0xa5, b'a'],
        vec![0x81, 0xa1, b'v', 0xdd, 0xff, 0xff, 0xff, 0xff],
        vec![0x81, 0xa1, b'v', 0xdf, 0xff, 0xff, 0xff, 0xff],
        vec![0x81, 0xa1, b'v', 0xdb, 0xff, 0xff, 0xff, 0xff],
        vec![0x81, 0xc0, 0x01],
        vec![0x81, 0xa1, b'v', 0xc1],
        vec![0x81, 0xa1, b'v', 0xd4, 0, 0],
        deep,
    ];
    for args in lies {
        let call = Invocation {
            route: Route::Fleet,
            function: "t_echo",
            read_only: true,
            args,
            now_ms: None,
            count_calls: false,
            terms: ff_script::Terms::default(),
        };
        assert!(matches!(fixture.host.call(call).await, Err(HostError::Raised { .. })));
    }
    assert_eq!(fixture.one("SET s v").await, "{ok=OK}");
}

#[tokio::test]
async fn the_sandbox_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let (mut options, _) = options(directory.path());
    options.instructions_max = 1_000_000;
    let host = Embedded::open(options).unwrap();
    for (probe, expected) in [
        ("global_read", "nonexistent global variable 'nothing'"),
        ("global_write", "readonly table"),
        ("module_write", "readonly table"),
        ("redis_write", "readonly table"),
        ("no_os", "nonexistent global variable 'os'"),
        ("no_io", "nonexistent global variable 'io'"),
        ("no_debug", "nonexistent global variable 'debug'"),
        ("no_load", "nonexistent global variable 'loadstring'"),
        ("no_require", "nonexistent global variable 'require'"),
        ("no_coroutine", "nonexistent global variable 'coroutine'"),
        ("no_globals", "nonexistent global variable '_G'"),
        ("no_setfenv", "nonexistent global variable 'setfenv'"),
        ("random", "attempt to call field 'random'"),
        ("dump", "attempt to call field 'dump'"),
        ("not_a_string", "must be strings or integers"),
        ("no_command", "at least one argument"),
        ("load_time_only", "attempt to call field 'register_function'"),
        ("table_error", "plain"),
    ] {
        let reply = host.call(invocation("t_eval", named("probe", Value::from(probe)))).await.unwrap();
        let reply = decode(&reply);
        assert_eq!(reply[0], Value::from(false), "{probe} succeeded");
        assert!(show(&reply[1]).contains(expected), "{probe}: {}", show(&reply[1]));
    }
    for (probe, expected) in [("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"), ("numbers", "#1")] {
        let reply = decode(&host.call(invocation("t_eval", named("probe", Value::from(probe)))).await.unwrap());
        assert_eq!(show(&reply[1]), expected);
    }
    for function in ["t_endless", "t_stubborn"] {
        let endless = host.call(invocation(function, named("x", Value::from(1)))).await;
        assert!(
            matches!(&endless, Err(HostError::Raised { detail, .. }) if detail.contains("instructions")),
            "{endless:?}"
        );
    }
    let number = host.call(invocation("t_number_reply", named("x", Value::from(1)))).await;
    assert!(matches!(number, Err(HostError::Raised { .. })));
    let unknown = host.call(invocation("t_unknown", named("x", Value::from(1)))).await;
    assert!(matches!(unknown, Err(HostError::Refused { .. })));
}

#[tokio::test]
async fn in_test_mode_no_global_can_be_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open_strict(directory.path());
    for probe in ["overwrite_global", "overwrite_module", "overwrite_redis", "global_write", "module_write"] {
        let reply = fixture.call("t_eval", named("probe", Value::from(probe))).await.unwrap();
        assert!(show(&reply[1]).contains("readonly table"), "{probe}: {reply}");
    }
}

#[tokio::test]
async fn a_library_that_does_not_load_is_refused() {
    for library in [
        "this is not lua",
        "error('no')",
        "redis.call('GET', 'x')",
        "local t = type(1)",
        "redis.register_function('a-b', function() end)",
        "redis.register_function('a', function() end) redis.register_function('a', function() end)",
        "while true do end",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (mut options, _) = options(directory.path());
        options.library = library.to_owned();
        assert!(matches!(Embedded::open(options).err(), Some(HostError::Refused { .. })), "{library}");
    }
}

#[tokio::test]
async fn a_list_is_answered_one_by_one_in_its_order() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let mut operations: Vec<Invocation> = (0..150)
        .map(|n| invocation("t_run", commands(&[&["ZADD", "z", "1", &format!("m{n}")], &["ZCARD", "z"]])))
        .collect();
    operations[3].function = "t_write_then_raise";
    operations[70].function = "t_nowhere";
    operations[71].args = vec![0xc0];
    let mut expected = 0;
    for (n, answer) in fixture.host.run(operations).await.into_iter().enumerate() {
        match (n, answer) {
            (3, Err(HostError::Raised { detail, .. })) => assert!(detail.contains("taken back"), "{detail}"),
            (70, Err(HostError::Refused { detail })) => assert!(detail.contains("t_nowhere"), "{detail}"),
            (71, Err(HostError::Refused { detail })) => assert!(detail.contains("msgpack map"), "{detail}"),
            (_, Ok(reply)) => {
                expected += 1;
                assert_eq!(show(&decode(&reply)[1]), format!("#{expected}"), "operation {n}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(expected, 147);
}

#[tokio::test]
async fn a_store_of_another_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let config = |format: &[(&str, &str)]| {
        let fields = [("executions", "16")].iter().chain(format);
        let fields = fields.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
        vec![(b"ff:config:partitions".to_vec(), Content::Hash(fields))]
    };
    let fixture = open(directory.path());
    fixture.host.write_keys(config(&[])).await.unwrap();
    fixture.host.close().await;
    let refused = Embedded::open(options(directory.path()).0).err();
    let Some(HostError::Refused { detail }) = refused else { panic!("{refused:?}") };
    assert!(detail.contains("has format 1") && detail.contains("reads format 3"), "{detail}");
}

#[tokio::test]
async fn a_raise_takes_back_what_the_call_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    fixture.run(&[&["HSET", "h", "a", "1"], &["ZADD", "z", "1", "m"]]).await;
    let before = fixture.host.dump().await.unwrap();
    let writes = commands(&[
        &["HSET", "h", "a", "2", "b", "3"],
        &["ZADD", "z", "2", "m"],
        &["XADD", "x", "*", "f", "v"],
        &["DEL", "z"],
    ]);
    let raised = fixture.call("t_write_then_raise", writes).await;
    assert!(
        matches!(&raised, Err(HostError::Raised { detail, .. }) if detail.contains("after the writes")),
        "{raised:?}"
    );
    assert_eq!(fixture.host.dump().await.unwrap(), before);
    let mixed = commands(&[&["SET", "s", "v"], &["HGET", "s", "f"]]);
    assert!(matches!(fixture.call("t_call", mixed).await, Err(HostError::Raised { .. })));
    assert_eq!(fixture.host.dump().await.unwrap(), before);
}

/// Calls that share a group see each other's writes, and never a write that was undone.
#[tokio::test]
async fn calls_of_one_group_see_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Arc::new(open(directory.path()));
    let mut tasks = Vec::new();
    for i in 0..200 {
        let fixture = Arc::clone(&fixture);
        tasks.push(tokio::spawn(async move {
            let member = format!("m{i}");
            let list: &[&[&str]] = &[&["ZADD", "z", "1", &member], &["HSET", "h", &member, "1"]];
            if i % 3 == 0 {
                assert!(fixture.call("t_write_then_raise", commands(list)).await.is_err());
            } else {
                let replies = fixture.run(list).await;
                assert_eq!((show(&replies[0]), show(&replies[1])), ("#1".to_owned(), "#1".to_owned()));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(fixture.one("ZCARD z").await, "#133");
    assert_eq!(fixture.one("HLEN h").await, "#133");
    let dump = fixture.host.dump().await.unwrap();
    let (DumpValue::Zset(z), DumpValue::Hash(h)) = (&dump["z"], &dump["h"]) else { panic!("{dump:?}") };
    assert_eq!((z.len(), h.len()), (133, 133));
    assert_eq!(fixture.host.entries_behind_keys().await.unwrap(), 266);
}

#[tokio::test]
async fn strict_mode_reports_what_a_store_would_punish() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open_strict(directory.path());
    let raised = |result: Result<Value, HostError>, expected: &str| match result {
        Err(HostError::Raised { detail, .. }) => assert!(detail.contains(expected), "{detail}"),
        other => panic!("{other:?} instead of {expected}"),
    };
    let own = commands(&[&["SET", "ff:exec:{p:1}:x", "v"]]);
    fixture.call("t_run", own.clone()).await.unwrap();
    raised(fixture.call("t_run", commands(&[&["SET", "ff:exec:{p:2}:x", "v"]])).await, "is not a key of ff:{p:1}");
    raised(fixture.call("t_run", commands(&[&["DEL", "ff:exec:{p:1}:y", "plain"]])).await, "plain is not a key");
    raised(fixture.call("t_run", commands(&[&["SPUBLISH", "ff:wake:{w}", "v"]])).await, "is not a key");
    raised(fixture.call("t_run", commands(&[&["EXPIRE", "ff:exec:{p:1}:x", "1"]])).await, "Unknown command");
    let reads = Invocation { read_only: true, ..invocation("t_read", own.clone()) };
    raised(fixture.host.call(reads).await.map(|bytes| decode(&bytes)), "not allowed from read-only");
    raised(fixture.call("t_write_then_raise", own.clone()).await, "after a write");
    raised(fixture.call("t_write_then_refuse", own.clone()).await, "refused after a write");
    let mut config = invocation("t_run", commands(&[&["HSET", "ff:config:partitions", "p", "16"]]));
    config.route = Route::Config;
    fixture.host.call(config).await.unwrap();
    let mut config = invocation("t_run", commands(&[&["HSET", "ff:config:other", "p", "16"]]));
    config.route = Route::Config;
    assert!(matches!(fixture.host.call(config).await, Err(HostError::Raised { .. })));
    assert_eq!(fixture.host.dump().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_function_that_writes_cannot_be_called_read_only() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let mut call = invocation("t_read", commands(&[&["SET", "s", "v"], &["GET", "s"]]));
    call.read_only = true;
    let reply = decode(&fixture.host.call(call).await.unwrap());
    assert!(show(&reply[0]).contains("read-only"), "{reply}");
    assert_eq!(show(&reply[1]), "false");
}

#[tokio::test]
async fn the_call_s_own_time_wins_over_the_clock() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let mut call = invocation("t_run", commands(&[&["TIME"], &["XADD", "x", "*", "f", "v"]]));
    call.now_ms = Some(42_007);
    let reply = decode(&fixture.host.call(call).await.unwrap());
    assert_eq!(show(&reply), "[[42 7000] 42007-0]");
    fixture.clock.advance_ms(1_000);
    assert_eq!(fixture.clock.now_ms(), NOW_MS + 1_000);
    assert_eq!(fixture.one("TIME").await, "[1700000001 123000]");
}

#[tokio::test]
async fn the_envelope_reaches_the_function() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let mut call = invocation("t_echo", named("a", Value::from(1)));
    call.now_ms = Some(7);
    call.count_calls = true;
    fixture.host.set_listening(true);
    let reply = decode(&fixture.host.call(call).await.unwrap());
    let mut pairs: Vec<String> =
        reply.as_map().unwrap().iter().map(|(k, v)| format!("{}={}", show(k), show(v))).collect();
    pairs.sort();
    assert_eq!(pairs, ["_calls=#true", "_listen=#true", "_now=#7", "a=#1"]);
}

#[tokio::test]
async fn messages_reach_subscribers_of_their_route_only() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let mut watch = fixture.host.watch();
    fixture.run(&[&["SPUBLISH", "ff:wake:{p:1}", "before"]]).await;
    fixture.host.subscribe(&[Route::Execution(1), Route::Fleet]).await.unwrap();
    fixture.host.subscribe(&[Route::Fleet]).await.unwrap();
    fixture.run(&[&["SPUBLISH", "ff:wake:{p:2}", "other"], &["SPUBLISH", "ff:wake:{p:1}", "mine"]]).await;
    let _ = fixture.call("t_write_then_raise", commands(&[&["SPUBLISH", "ff:wake:{p:1}", "taken back"]])).await;
    fixture.run(&[&["SPUBLISH", "ff:wake:{w}", "fleet"]]).await;
    let fresh = vec![Route::Execution(1), Route::Fleet];
    assert_eq!(watch.recv().await.unwrap(), WakeUp::Resubscribed { routes: fresh });
    assert_eq!(watch.recv().await.unwrap(), WakeUp::Message { route: Route::Execution(1), payload: b"mine".to_vec() });
    assert_eq!(watch.recv().await.unwrap(), WakeUp::Message { route: Route::Fleet, payload: b"fleet".to_vec() });
    assert!(watch.try_recv().is_err());
}

#[tokio::test]
async fn scanning_gives_every_key_of_ours_once() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let mut expected: Vec<String> = (0..25).map(|i| format!("ff:exec:{i:02}")).collect();
    expected.push(format!("ff:{}", "long".repeat(200)));
    for key in expected.iter().map(String::as_str).chain(["other", "ff", "fg:"]) {
        fixture.run(&[&["SET", key, "v"]]).await;
    }
    let (mut cursor, mut keys) = (ScanCursor::Start, Vec::new());
    while cursor != ScanCursor::End {
        let page = fixture.host.scan(cursor, 10).await.unwrap();
        assert!(page.keys.len() <= 10);
        keys.extend(page.keys.into_iter().map(|key| String::from_utf8(key).unwrap()));
        cursor = page.next;
    }
    assert_eq!(keys, expected);
}

#[tokio::test]
async fn what_was_answered_is_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let before = {
        let fixture = open(directory.path());
        fixture
            .run(&[
                &["HSET", "h", "a", "1"],
                &["ZADD", "z", "1", "m"],
                &["XADD", "x", "*", "f", "v"],
                &["SET", "s", "v"],
            ])
            .await;
        fixture.host.dump().await.unwrap()
    };
    let fixture = open(directory.path());
    assert_eq!(fixture.host.dump().await.unwrap(), before);
    fixture.run(&[&["ZADD", "z2", "5", "other"]]).await;
    assert_eq!(fixture.one("ZRANGE z 0 -1").await, "[m]");
    fixture.host.close().await;
    assert_eq!(fixture.call("t_run", commands(&[])).await, Err(HostError::Closed));
    assert_eq!(fixture.host.dump().await.err(), Some(HostError::Closed));
    assert!(!fixture.host.facts().healthy);
    open(directory.path());
}

#[tokio::test]
async fn a_directory_in_use_names_its_holder() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let error = Embedded::open(options(directory.path()).0).err().unwrap();
    let expected = format!("directory {} is in use by process {}", directory.path().display(), std::process::id());
    assert_eq!(error, HostError::Refused { detail: expected });
    fixture.host.close().await;
    open(directory.path());
}

#[cfg(unix)]
#[tokio::test]
async fn the_directory_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("deep/store");
    let _fixture = open(&directory);
    assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(&directory).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0);
    }
}

#[tokio::test]
async fn a_backup_taken_while_calls_run_opens_like_the_original() {
    let directory = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let fixture = Arc::new(open(directory.path()));
    let writer = {
        let fixture = Arc::clone(&fixture);
        tokio::spawn(async move {
            for i in 0..300 {
                let n = i.to_string();
                fixture.run(&[&["SET", &format!("k{n}"), &n], &["ZADD", "z", &n, &n]]).await;
            }
        })
    };
    while fixture.one("ZCARD z").await == "#0" {
        tokio::task::yield_now().await;
    }
    fixture.host.backup(copy.path().join("b")).await.unwrap();
    writer.await.unwrap();
    let again = fixture.host.backup(copy.path().join("b")).await;
    assert!(again.is_err(), "a backup never overwrites a store");
    let restored = open(&copy.path().join("b"));
    let dump = restored.host.dump().await.unwrap();
    let DumpValue::Zset(members) = &dump["z"] else { panic!("{dump:?}") };
    assert!(!members.is_empty());
    assert_eq!(dump.len(), members.len() + 1, "every call is in the copy as a whole");
    restored.run(&[&["SET", "new", "v"]]).await;
}

async fn count_of_commands(fixture: &Fixture) -> u64 {
    fixture.host.store_commands().await.unwrap()
}

#[tokio::test]
async fn every_command_is_counted_and_so_is_the_call() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    fixture.run(&[&["TIME"], &["SET", "s", "v"]]).await;
    assert_eq!(count_of_commands(&fixture).await, 3);
    fixture.call("t_commit", commands(&[&["SET", "s", "v"], &["DEL", "s"]])).await.unwrap();
    assert_eq!(count_of_commands(&fixture).await, 6);
}

#[tokio::test]
async fn a_failing_disk_refuses_the_call_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    fixture.run(&[&["SET", "a", "1"]]).await;
    fixture.host.faults().fail_command(2);
    let failed = fixture.call("t_run", commands(&[&["SET", "a", "2"], &["SET", "b", "2"]])).await;
    assert!(matches!(failed, Err(HostError::Unavailable { .. })), "{failed:?}");
    assert!(!fixture.host.facts().healthy);
    assert_eq!(fixture.one("GET a").await, "1");
    assert_eq!(fixture.one("EXISTS b").await, "#0");
    assert!(!fixture.host.facts().healthy, "a read says nothing about writing");
    fixture.run(&[&["SET", "a", "3"]]).await;
    assert!(fixture.host.facts().healthy);
}

#[tokio::test]
async fn an_environment_that_gave_up_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    fixture.run(&[&["SET", "a", "1"]]).await;
    fixture.host.faults().poison();
    let failed = fixture.call("t_run", commands(&[&["SET", "a", "2"]])).await;
    assert!(matches!(failed, Err(HostError::Unavailable { .. })), "{failed:?}");
    assert!(!fixture.host.facts().healthy);
    assert_eq!(fixture.one("GET a").await, "1");
    fixture.run(&[&["SET", "a", "3"]]).await;
    assert!(fixture.host.facts().healthy);
    assert_eq!(string_of(&fixture.host.dump().await.unwrap(), "a"), Some(b"3".to_vec()));
    let second = Embedded::open(options(directory.path()).0).err().unwrap();
    assert!(second.to_string().contains("in use by process"), "{second}");
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_serves_reads() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    fixture.run(&[&["SET", "a", "1"]]).await;
    fixture.host.faults().set_full(true);
    let failed = fixture.call("t_run", commands(&[&["SET", "a", "2"]])).await;
    assert!(matches!(failed, Err(HostError::Full { .. })), "{failed:?}");
    let mut read = invocation("t_read", commands(&[&["GET", "a"]]));
    read.read_only = true;
    assert_eq!(show(&decode(&fixture.host.call(read).await.unwrap())), "[1]");
    assert!(!fixture.host.facts().healthy);
    fixture.host.faults().set_full(false);
    fixture.run(&[&["SET", "a", "2"]]).await;
    assert!(fixture.host.facts().healthy);
}

#[tokio::test]
async fn a_full_map_refuses_what_does_not_fit_until_it_is_opened_larger() {
    let directory = tempfile::tempdir().unwrap();
    let (mut options, _) = options(directory.path());
    options.map_size = 1 << 20;
    let host = Arc::new(Embedded::open(options).unwrap());
    let big = "x".repeat(50_000);
    let mut accepted = Vec::new();
    let mut refused = 0;
    for i in 0..60 {
        let key = format!("k{i}");
        match host.call(invocation("t_run", commands(&[&["SET", &key, &big]]))).await {
            Ok(_) => accepted.push(key),
            Err(HostError::Full { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0 && !accepted.is_empty());
    assert!(!host.facts().healthy);
    let dump = host.dump().await.unwrap();
    assert_eq!(dump.len(), accepted.len());
    for key in &accepted {
        assert_eq!(string_of(&dump, key).map(|v| v.len()), Some(big.len()));
    }
    // One call of a group does not fit; the others still succeed.
    let tasks: Vec<_> = (0..20)
        .map(|i| {
            let host = Arc::clone(&host);
            let value = if i == 7 { "x".repeat(2_000_000) } else { "small".to_owned() };
            tokio::spawn(async move {
                host.call(invocation("t_run", commands(&[&["SET", &format!("g{i}"), &value]]))).await
            })
        })
        .collect();
    for (i, task) in tasks.into_iter().enumerate() {
        let result = task.await.unwrap();
        assert_eq!(result.is_ok(), i != 7, "call {i}: {result:?}");
    }
    drop(host);
    let (mut options, _) = options_of(directory.path());
    options.map_size = 4 << 20;
    let host = Embedded::open(options).unwrap();
    host.call(invocation("t_run", commands(&[&["SET", "after", &big]]))).await.unwrap();
    assert!(host.facts().healthy);
}

/// A crash is tried at every store command of a call. Afterwards the store holds what was acknowledged before, and
/// nothing else.
#[tokio::test]
async fn a_crash_at_any_command_loses_the_call_and_nothing_answered() {
    let plan: &[&[&str]] = &[
        &["HSET", "h", "b", "2"],
        &["ZADD", "z", "2", "n"],
        &["XADD", "x", "*", "f", "w"],
        &["DEL", "s"],
        &["HDEL", "h", "a"],
    ];
    for n in 1..=plan.len() as u64 {
        let directory = tempfile::tempdir().unwrap();
        let before = {
            let fixture = open(directory.path());
            fixture
                .run(&[
                    &["HSET", "h", "a", "1"],
                    &["ZADD", "z", "1", "m"],
                    &["XADD", "x", "*", "f", "v"],
                    &["SET", "s", "v"],
                ])
                .await;
            let before = fixture.host.dump().await.unwrap();
            fixture.host.faults().crash_at_command(n);
            assert_eq!(fixture.call("t_commit", commands(plan)).await, Err(HostError::Closed));
            assert_eq!(fixture.call("t_commit", commands(plan)).await, Err(HostError::Closed));
            before
        };
        let fixture = open(directory.path());
        assert_eq!(fixture.host.dump().await.unwrap(), before, "crash at command {n}");
        assert_eq!(show(&fixture.call("t_commit", commands(plan)).await.unwrap()), "#5");
    }
}

#[tokio::test]
async fn a_crash_between_commit_and_answer_keeps_the_call() {
    let directory = tempfile::tempdir().unwrap();
    {
        let fixture = open(directory.path());
        fixture.host.faults().crash_after_commit();
        assert_eq!(fixture.call("t_run", commands(&[&["SET", "s", "v"]])).await, Err(HostError::Closed));
    }
    assert_eq!(open(directory.path()).one("GET s").await, "v");
}

#[tokio::test]
async fn arguments_may_be_large() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let payload = vec![0xffu8; 4 << 20];
    let args = Value::Map(vec![(
        Value::from("commands"),
        Value::Array(vec![Value::Array(vec![text("SET"), text("s"), text(&payload)])]),
    )]);
    assert!(!encode(&args).is_empty());
    fixture.call("t_run", args).await.unwrap();
    assert_eq!(string_of(&fixture.host.dump().await.unwrap(), "s"), Some(payload));
}

#[tokio::test]
async fn keys_written_as_they_are_are_read_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let keys = vec![
        (b"ff:{p:1}:hash".to_vec(), Content::Hash(vec![(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), vec![0, 255])])),
        (b"ff:{p:1}:zset".to_vec(), Content::Zset(vec![(b"m".to_vec(), 1.25), (b"n".to_vec(), 1e15)])),
        (b"ff:{p:2}:text".to_vec(), Content::Text(b"x".to_vec())),
        (
            b"ff:{p:2}:stream".to_vec(),
            Content::Stream { entries: vec![((5, 1), vec![(b"f".to_vec(), b"v".to_vec())])], last: (9, 0) },
        ),
        (b"ff:{p:3}:trimmed".to_vec(), Content::Stream { entries: Vec::new(), last: (7, 3) }),
    ];
    fixture.host.write_keys(keys.clone()).await.unwrap();
    let names = keys.iter().map(|(key, _)| key.clone()).chain([b"ff:{p:4}:none".to_vec()]).collect();
    let read = fixture.host.read_keys(names).await.unwrap();
    let expected: Vec<Option<Content>> = keys.into_iter().map(|(_, content)| Some(content)).chain([None]).collect();
    assert_eq!(read, expected);
    let refused = fixture.host.write_keys(vec![(b"ff:{p:1}:hash".to_vec(), Content::Zset(vec![(b"m".to_vec(), 1.0)]))]);
    assert!(refused.await.is_err(), "a key that holds something else");
    let gone = vec![b"ff:{p:1}:hash".to_vec(), b"ff:{p:2}:stream".to_vec(), b"ff:{p:4}:none".to_vec()];
    fixture.host.remove_keys(gone.clone()).await.unwrap();
    assert_eq!(fixture.host.read_keys(gone).await.unwrap(), [None, None, None]);
    assert!(fixture.host.read_keys(vec![b"ff:{p:1}:zset".to_vec()]).await.unwrap()[0].is_some());
}
