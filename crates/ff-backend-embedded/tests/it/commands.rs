//! Every command replies as Valkey does, including edge cases.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Fixture, commands, open, show, text};
use rmpv::Value;

/// Runs `command | command => reply` lines on a fresh store, and checks the last reply of each line.
async fn check(table: &[(&str, &str)]) {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    for (command, expected) in table {
        assert_eq!(fixture.one(command).await, *expected, "{command}");
    }
}

const WRONG: &str = "{err=WRONGTYPE Operation against a key holding the wrong kind of value}";
const ARITY: &str = "{err=ERR Wrong number of args calling command from script}";
const SYNTAX: &str = "{err=ERR syntax error}";

#[tokio::test]
async fn strings_and_keys() {
    check(&[
        ("GET s", "false"),
        ("SET s v1", "{ok=OK}"),
        ("GET s", "v1"),
        ("SET s v2", "{ok=OK}"),
        ("get s", "v2"),
        ("MGET none s", "[false v2]"),
        ("EXISTS s none s", "#2"),
        ("HGET s f", WRONG),
        ("ZADD s 1 a", WRONG),
        ("XADD s * f v", WRONG),
        ("HSET s f v", WRONG),
        ("DEL s none", "#1"),
        ("EXISTS s", "#0"),
        ("HSET h f v", "#1"),
        ("GET h", WRONG),
        ("MGET h none", "[false false]"),
        ("SET h text", "{ok=OK}"),
        ("GET h", "text"),
        ("ZADD z 1 a 2 b", "#2"),
        ("SET z text", "{ok=OK}"),
        ("DEL z h", "#2"),
        ("TIME", "[1700000000 123000]"),
        ("GET", ARITY),
        ("GET a b", ARITY),
        ("EXPIRE s 1", "{err=ERR Unknown command called from script: EXPIRE}"),
    ])
    .await;
}

#[tokio::test]
async fn hashes() {
    check(&[
        ("HGET h f", "false"),
        ("HGETALL h", "[]"),
        ("HLEN h", "#0"),
        ("HMGET h a b", "[false false]"),
        ("HSET h b 2 a 1", "#2"),
        ("HSET h b 3 c 4", "#1"),
        ("HGET h b", "3"),
        ("HGET h none", "false"),
        ("HMGET h c none a", "[4 false 1]"),
        ("HGETALL h", "[a 1 b 3 c 4]"),
        ("HLEN h", "#3"),
        ("HEXISTS h a", "#1"),
        ("HEXISTS h none", "#0"),
        ("HSET h odd", ARITY),
        ("HSET h f v odd", "{err=ERR wrong number of arguments for 'hset' command}"),
        ("HDEL h none", "#0"),
        ("HDEL h a b", "#2"),
        ("HDEL h c", "#1"),
        ("EXISTS h", "#0"),
        ("HDEL h c", "#0"),
        ("ZADD z 1 a", "#1"),
        ("HDEL z a", WRONG),
        ("HGETALL z", WRONG),
        ("HLEN z", WRONG),
        ("HMGET z a", WRONG),
        ("HSET e f ", "#1"),
        ("HGET e f", ""),
    ])
    .await;
}

#[tokio::test]
async fn sorted_sets() {
    check(&[
        ("ZSCORE z a", "false"),
        ("ZCARD z", "#0"),
        ("ZRANK z a", "false"),
        ("ZRANGE z 0 -1", "[]"),
        ("ZADD z 2 b 1 a 3 c -5 n", "#4"),
        ("ZADD z 2.5 b 3 c 4 d", "#1"),
        ("ZCARD z", "#5"),
        ("ZSCORE z b", "2.5"),
        ("ZSCORE z n", "-5"),
        ("ZSCORE z none", "false"),
        ("ZMSCORE z n none b", "[-5 false 2.5]"),
        ("ZMSCORE none a b", "[false false]"),
        ("ZRANK z n", "#0"),
        ("ZRANK z d", "#4"),
        ("ZRANK z none", "false"),
        ("ZRANGE z 0 -1", "[n a b c d]"),
        ("ZRANGE z 0 -1 REV", "[d c b a n]"),
        ("ZRANGE z 0 1 WITHSCORES", "[n -5 a 1]"),
        ("ZRANGE z -1 -1", "[d]"),
        ("ZRANGE z 3 3", "[c]"),
        ("ZRANGE z 3 3 REV", "[a]"),
        ("ZRANGE z -2 -1 REV", "[a n]"),
        ("ZRANGE z 1 -2", "[a b c]"),
        ("ZRANGE z 5 9", "[]"),
        ("ZRANGE z -100 0", "[n]"),
        ("ZRANGE z 2 1", "[]"),
        ("ZRANGE z 1 3 BYSCORE", "[a b c]"),
        ("ZRANGE z (1 (3 BYSCORE", "[b]"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 1 2", "[a b]"),
        ("ZRANGE z -inf inf BYSCORE LIMIT 0 1 WITHSCORES", "[n -5]"),
        ("ZRANGE z +inf -inf BYSCORE REV LIMIT 0 2", "[d c]"),
        ("ZRANGE z 3 1 BYSCORE REV", "[c b a]"),
        ("ZRANGE z 3 1 BYSCORE", "[]"),
        ("ZRANGE z (3 3 BYSCORE", "[]"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 2 -1", "[b c d]"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT -1 2", "[]"),
        ("ZRANGE z -inf +inf BYSCORE LIMIT 0 0", "[]"),
        (
            "ZRANGE z 0 1 LIMIT 0 1",
            "{err=ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX}",
        ),
        ("ZRANGE z 0 1 BYSCORE LIMIT 0", SYNTAX),
        ("ZRANGE z 0 1 NONSENSE", SYNTAX),
        ("ZRANGE z a 1", "{err=ERR value is not an integer or out of range}"),
        ("ZRANGE z a 1 BYSCORE", "{err=ERR min or max is not a float}"),
        ("ZCOUNT z -inf +inf", "#5"),
        ("ZCOUNT z 1 3", "#3"),
        ("ZCOUNT z (1 3", "#2"),
        ("ZCOUNT z 1 (3", "#2"),
        ("ZCOUNT z 5 1", "#0"),
        ("ZCOUNT z x 1", "{err=ERR min or max is not a float}"),
        ("ZCOUNT none 0 1", "#0"),
        ("ZADD z x a", "{err=ERR value is not a valid float}"),
        ("ZADD z nan a", "{err=ERR value is not a valid float}"),
        ("ZADD z 1 a 2", SYNTAX),
        ("ZADD z inf i -inf j", "#2"),
        ("ZRANGE z 0 -1 WITHSCORES", "[j -inf n -5 a 1 b 2.5 c 3 d 4 i inf]"),
        ("ZCOUNT z (-inf (+inf", "#5"),
        ("ZREM z i j none", "#2"),
        ("ZREM z a b c d n", "#5"),
        ("EXISTS z", "#0"),
        ("ZREM z a", "#0"),
        ("ZADD z 1700000000123 t 9007199254740992 m -8999999999999 p", "#3"),
        ("ZRANGE z 0 -1 WITHSCORES", "[p -8999999999999 t 1700000000123 m 9007199254740992]"),
        ("HSET h f v", "#1"),
        ("ZADD h 1 a", WRONG),
        ("ZREM h a", WRONG),
        ("ZRANGE h 0 -1", WRONG),
        ("ZRANGE h 0 1 BYSCORE", WRONG),
        ("ZCARD h", WRONG),
        ("ZSCORE h a", WRONG),
        ("ZMSCORE h a", WRONG),
        ("ZRANK h a", WRONG),
        ("ZCOUNT h 0 1", WRONG),
    ])
    .await;
}

#[tokio::test]
async fn members_with_equal_scores_are_in_byte_order() {
    check(&[
        ("ZADD z 1 b 1 a 1 ab 1 B", "#4"),
        ("ZRANGE z 0 -1", "[B a ab b]"),
        ("ZRANGE z 1 1 BYSCORE REV", "[b ab a B]"),
        ("ZRANK z ab", "#2"),
    ])
    .await;
}

#[tokio::test]
async fn streams() {
    check(&[
        ("XLEN s", "#0"),
        ("XRANGE s - +", "[]"),
        ("XADD s * f 1 g 2", "1700000000123-0"),
        ("XADD s * f 2", "1700000000123-1"),
        ("XADD s * f 3", "1700000000123-2"),
        ("XLEN s", "#3"),
        ("XRANGE s - +", "[[1700000000123-0 [f 1 g 2]] [1700000000123-1 [f 2]] [1700000000123-2 [f 3]]]"),
        ("XRANGE s - + COUNT 1", "[[1700000000123-0 [f 1 g 2]]]"),
        ("XRANGE s (1700000000123-0 + COUNT 1", "[[1700000000123-1 [f 2]]]"),
        ("XRANGE s 1700000000123-2 1700000000123", "[[1700000000123-2 [f 3]]]"),
        ("XRANGE s - (1700000000123-1", "[[1700000000123-0 [f 1 g 2]]]"),
        ("XREVRANGE s + - COUNT 2", "[[1700000000123-2 [f 3]] [1700000000123-1 [f 2]]]"),
        ("XREVRANGE s (1700000000123-1 -", "[[1700000000123-0 [f 1 g 2]]]"),
        ("XRANGE s + -", "[]"),
        ("XRANGE s x +", "{err=ERR Invalid stream ID specified as stream command argument}"),
        ("XRANGE s - + LIMIT 1", SYNTAX),
        ("XRANGE s - + COUNT 0", "false"),
        ("XDEL s 1700000000123-1 5-5", "#1"),
        ("XLEN s", "#2"),
        ("XADD s MAXLEN ~ 2 * f 4", "1700000000123-3"),
        ("XLEN s", "#2"),
        ("XTRIM s MINID ~ 1700000000123-3", "#1"),
        ("XTRIM s MINID ~ 9999999999999", "#1"),
        ("XLEN s", "#0"),
        ("EXISTS s", "#1"),
        ("XADD s * f 5", "1700000000123-4"),
        ("XTRIM s MAXLEN ~ 1", SYNTAX),
        ("XADD s 1-1 f v", "{err=ERR The ID specified in XADD is equal or smaller than the target stream top item}"),
        ("XADD s 0-0 f v", "{err=ERR The ID specified in XADD must be greater than 0-0}"),
        ("XADD s x f v", "{err=ERR Invalid stream ID specified as stream command argument}"),
        (
            "XADD s 1700000000123-4 f v",
            "{err=ERR The ID specified in XADD is equal or smaller than the target stream top item}",
        ),
        ("XADD s 1700000000123-9 f v", "1700000000123-9"),
        ("XTRIM s MINID = 1700000000123-9", "#1"),
        ("XADD s * f", ARITY),
        ("XADD s * f v g", "{err=ERR wrong number of arguments for 'xadd' command}"),
        ("DEL s", "#1"),
        ("XADD s * f 6", "1700000000123-0"),
        ("HSET h f v", "#1"),
        ("XADD h * f v", WRONG),
        ("XLEN h", WRONG),
        ("XRANGE h - +", WRONG),
        ("XDEL h 1-1", WRONG),
        ("XTRIM h MINID ~ 1", WRONG),
    ])
    .await;
}

#[tokio::test]
async fn stream_ids_increase_when_the_clock_goes_back() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    assert_eq!(fixture.one("XADD s * f v").await, "1700000000123-0");
    fixture.clock.set_ms(5);
    assert_eq!(fixture.one("XADD s * f v").await, "1700000000123-1");
    fixture.clock.set_ms(1_700_000_000_124);
    assert_eq!(fixture.one("XADD s * f v").await, "1700000000124-0");
}

#[tokio::test]
async fn publishing_answers_the_number_of_receivers_known_inside_a_call() {
    check(&[("SPUBLISH ff:wake:{p:1} hello", "#0"), ("SPUBLISH ff:wake:{p:1}", ARITY)]).await;
}

/// A member longer than an LMDB key is stored as a digest and returned whole.
#[tokio::test]
async fn long_keys_fields_and_members_come_back_whole() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let names: Vec<String> = (0..4).map(|i| format!("{}{}", "x".repeat(600), i)).collect();
    let key = &names[0];
    fixture.run(&[&["ZADD", key, "1", &names[0], "1", &names[1], "0", "short"]]).await;
    let replies = fixture
        .run(&[&["ZRANGE", key, "0", "-1", "WITHSCORES"], &["ZSCORE", key, &names[1]], &["ZSCORE", key, &names[2]]])
        .await;
    let mut members: Vec<String> = replies[0].as_array().unwrap().iter().step_by(2).map(show).collect();
    assert_eq!(members.remove(0), "short");
    members.sort();
    assert_eq!(members, names[..2]);
    assert_eq!(show(&replies[1]), "1");
    assert_eq!(show(&replies[2]), "false");
    let big = &names[3];
    let mut set = vec!["HSET".to_owned(), big.clone()];
    for i in 0..300 {
        set.extend([format!("{}{i}", "f".repeat(500)), format!("v{i}")]);
    }
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    fixture.run(&[&set]).await;
    let field = format!("{}{}", "f".repeat(500), 299);
    let replies = fixture.run(&[&["HGET", big, &field], &["HLEN", big], &["HGETALL", big]]).await;
    assert_eq!(show(&replies[0]), "v299");
    assert_eq!(show(&replies[1]), "#300");
    assert!(replies[2].as_array().unwrap().iter().any(|v| show(v) == field));
    let dump = fixture.host.dump().await.unwrap();
    assert!(dump.contains_key(key.as_str()) && dump.contains_key(big.as_str()));
    fixture.run(&[&["DEL", key, big]]).await;
    assert_eq!(fixture.host.entries_behind_keys().await.unwrap(), 0);
    assert!(fixture.host.dump().await.unwrap().is_empty());
}

/// The forms of a hash differ only inside: the same commands give the same replies below and above the limit.
#[tokio::test]
async fn a_hash_answers_the_same_whatever_its_size() {
    for count in [1, 255, 256, 257, 600] {
        let directory = tempfile::tempdir().unwrap();
        let fixture = open(directory.path());
        let names: Vec<String> = (0..count).map(|i| format!("f{i:04}")).collect();
        for chunk in names.chunks(100) {
            let mut set = vec!["HSET", "h"];
            for name in chunk {
                set.extend([name.as_str(), name.as_str()]);
            }
            assert_eq!(show(&fixture.run(&[&set]).await[0]), format!("#{}", chunk.len()));
        }
        assert_eq!(fixture.one("HLEN h").await, format!("#{count}"));
        let all = names.iter().map(|n| format!("{n} {n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(fixture.one("HGETALL h").await, format!("[{all}]"));
        assert_eq!(fixture.one("HSET h f0000 new").await, "#0");
        assert_eq!(fixture.one("HMGET h f0000 none").await, "[new false]");
        assert_eq!(fixture.one("HEXISTS h f0000").await, "#1");
        let mut remove = vec!["HDEL", "h", "none"];
        remove.extend(names.iter().map(String::as_str));
        assert_eq!(show(&fixture.run(&[&remove]).await[0]), format!("#{count}"));
        assert_eq!(fixture.one("EXISTS h").await, "#0");
        assert_eq!(fixture.host.entries_behind_keys().await.unwrap(), 0);
    }
}

#[tokio::test]
async fn binary_survives_in_every_place() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    let all: Vec<u8> = (0..=255).collect();
    let command = |words: &[&[u8]]| Value::Array(words.iter().map(text).collect());
    let list = vec![
        command(&[b"SET", b"s", &all]),
        command(&[b"GET", b"s"]),
        command(&[b"HSET", b"h", &all, &all]),
        command(&[b"HGET", b"h", &all]),
        command(&[b"ZADD", b"z", b"1", &all]),
        command(&[b"ZRANGE", b"z", b"0", b"-1"]),
        command(&[b"XADD", b"x", b"*", &all, &all]),
        command(&[b"XRANGE", b"x", b"-", b"+"]),
    ];
    let args = Value::Map(vec![(Value::from("commands"), Value::Array(list))]);
    let replies = fixture.call("t_run", args).await.unwrap();
    let bytes = |value: &Value| match value {
        Value::String(s) => s.as_bytes().to_vec(),
        other => panic!("{other} is not a string"),
    };
    assert_eq!(bytes(&replies[1]), all);
    assert_eq!(bytes(&replies[3]), all);
    assert_eq!(bytes(&replies[5][0]), all);
    assert_eq!(bytes(&replies[7][0][1][0]), all);
    assert_eq!(bytes(&replies[7][0][1][1]), all);
}

async fn committed(fixture: &Fixture, list: &[&[&str]]) -> String {
    show(&fixture.call("t_try_commit", commands(list)).await.unwrap())
}

#[tokio::test]
async fn a_plan_happens_as_a_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    fixture
        .run(&[
            &["HSET", "h", "a", "1", "b", "2"],
            &["ZADD", "z", "1", "m"],
            &["XADD", "x", "*", "f", "v"],
            &["SET", "s", "old"],
        ])
        .await;
    let before = fixture.host.dump().await.unwrap();
    let failing: &[&[&str]] = &[
        &["HSET", "h", "a", "changed", "c", "3"],
        &["HDEL", "h", "b", "a", "c"],
        &["HSET", "h", "again", "1"],
        &["ZADD", "z", "5", "m", "6", "n"],
        &["ZREM", "z", "m"],
        &["XADD", "x", "MAXLEN", "~", "1", "*", "f", "w"],
        &["SET", "s", "new"],
        &["DEL", "x", "z"],
        &["ZADD", "z", "9", "fresh"],
        &["HSET", "fresh", "f", "v"],
        &["SPUBLISH", "ff:wake:{p:1}", "lost"],
        &["HSET", "s", "f", "v"],
    ];
    assert!(committed(&fixture, failing).await.contains("WRONGTYPE"));
    assert_eq!(fixture.host.dump().await.unwrap(), before);
    assert_eq!(committed(&fixture, &failing[..11]).await, "[#true #11]");
    assert_ne!(fixture.host.dump().await.unwrap(), before);
    assert_eq!(fixture.one("HGETALL h").await, "[again 1]");
    assert_eq!(fixture.one("ZRANGE z 0 -1").await, "[fresh]");
    assert_eq!(fixture.one("EXISTS x").await, "#0");
    assert_eq!(show(&fixture.call("t_commit", commands(&[])).await.unwrap()), "#0");
}

#[tokio::test]
async fn removing_every_key_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    for i in 0..50 {
        let key = format!("k{i}");
        let key = key.as_str();
        fixture
            .run(&[
                &["ZADD", &format!("{key}z"), "1", "a", "2", "b"],
                &["XADD", &format!("{key}x"), "*", "f", "v"],
                &["HSET", &format!("{key}h"), "f", "v"],
                &["SET", &format!("{key}s"), "v"],
                &["ZADD", &format!("{key}s"), "1", "a"],
            ])
            .await;
    }
    assert_eq!(fixture.host.dump().await.unwrap().len(), 200);
    for i in 0..50 {
        let key = |suffix: &str| format!("k{i}{suffix}");
        fixture
            .run(&[
                &["ZREM", &key("z"), "a", "b"],
                &["DEL", &key("x")],
                &["HDEL", &key("h"), "f"],
                &["DEL", &key("s"), &key("z")],
            ])
            .await;
    }
    assert!(fixture.host.dump().await.unwrap().is_empty());
    assert_eq!(fixture.host.entries_behind_keys().await.unwrap(), 0);
}
