//! The same random commands on a real server and on this host give the same replies and leave the same data.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::support::{Fixture, LIBRARY, decode, encode, open, options, text};
use ff_backend_embedded::{Durability, Embedded};
use ff_testkit::TestServer;
use rmpv::Value;

/// The part of the server's protocol that FUNCTION LOAD and FCALL need.
struct Server {
    _server: TestServer,
    stream: BufReader<TcpStream>,
}

impl Server {
    fn start() -> Server {
        let options = ff_testkit::Options { aof: ff_testkit::Aof::None, ..Default::default() };
        let server = TestServer::start(options).expect("a server to compare with");
        let address = server.url().trim_start_matches("valkey://").trim_start_matches("redis://").to_owned();
        let stream = TcpStream::connect(address.trim_end_matches('/')).expect("the server listens");
        let mut server = Server { _server: server, stream: BufReader::new(stream) };
        server.command(&[b"FUNCTION", b"LOAD", LIBRARY.as_bytes()]).expect("the library loads");
        server
    }

    fn command(&mut self, words: &[&[u8]]) -> Result<Vec<u8>, String> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&request).expect("the server reads");
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the server answers");
        match line.split_at(1) {
            ("$", len) => {
                let len: usize = len.trim().parse().expect("a length");
                let mut bytes = vec![0; len + 2];
                self.stream.read_exact(&mut bytes).expect("the server answers in full");
                bytes.truncate(len);
                Ok(bytes)
            }
            ("-", error) => Err(error.trim().to_owned()),
            other => panic!("unexpected reply {other:?}"),
        }
    }

    fn call(&mut self, function: &str, args: &Value) -> Result<Value, String> {
        self.command(&[b"FCALL", function.as_bytes(), b"1", b"ff:{p:1}", &encode(args)]).map(|bytes| decode(&bytes))
    }
}

struct Seeded(u64);

impl Seeded {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed ^ (mixed >> 33)) % n
    }

    fn pick(&mut self, choices: &[&str]) -> String {
        choices[self.below(choices.len() as u64) as usize].to_owned()
    }
}

const KEYS: &[&str] = &["ff:{p:1}a", "ff:{p:1}b", "ff:{p:1}c", "ff:{p:1}d"];
const NAMES: &[&str] = &["a", "b", "c", "dd", "e", "", "z", "ab"];
const SCORES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2.5",
    "1700000000123",
    "-1e300",
    "9007199254740992",
    "0.1",
    "inf",
    "-inf",
    "3",
    "1e-7",
    "123456.789",
    "nan",
    "x",
];
const EDGES: &[&str] = &["-inf", "+inf", "(1", "1", "(2.5", "2.5", "0", "(-1", "1700000000123", "(x", "inf"];
const INDICES: &[&str] = &["0", "1", "2", "3", "-1", "-2", "-3", "100", "-100", "x"];

/// A random command; `#n` stands for the n-th stream id of a host.
fn command(random: &mut Seeded) -> Vec<String> {
    let key = random.pick(KEYS);
    let name = |random: &mut Seeded| random.pick(NAMES);
    let id = |random: &mut Seeded| match random.below(6) {
        0 => "-".to_owned(),
        1 => "+".to_owned(),
        2 => format!("(#{}", random.below(8)),
        3 => random.pick(&["0", "5-5", "9999999999999", "x", "("]),
        _ => format!("#{}", random.below(8)),
    };
    let words: Vec<String> = match random.below(25) {
        0 if random.below(2) == 0 => vec!["MGET".into(), key, random.pick(KEYS)],
        0 => vec!["GET".into(), key],
        1 => vec!["SET".into(), key, name(random)],
        2 => vec!["DEL".into(), key, random.pick(KEYS)],
        3 => vec!["EXISTS".into(), key, random.pick(KEYS)],
        4 => vec!["HGET".into(), key, name(random)],
        5 => vec!["HMGET".into(), key, name(random), name(random), name(random)],
        6 => vec!["HGETALL".into(), key],
        7 => vec!["HLEN".into(), key],
        8 => vec!["HEXISTS".into(), key, name(random)],
        9 | 10 => vec!["HSET".into(), key, name(random), name(random), name(random), random.pick(SCORES)],
        11 => vec!["HDEL".into(), key, name(random), name(random)],
        12 if random.below(2) == 0 => vec!["ZMSCORE".into(), key, name(random), name(random)],
        12 => vec!["ZSCORE".into(), key, name(random)],
        13 => vec!["ZCARD".into(), key],
        14 => vec!["ZCOUNT".into(), key, random.pick(EDGES), random.pick(EDGES)],
        15 => vec!["ZRANK".into(), key, name(random)],
        16 | 17 => vec!["ZADD".into(), key, random.pick(SCORES), name(random), random.pick(SCORES), name(random)],
        18 => vec!["ZREM".into(), key, name(random), name(random)],
        19 => {
            let mut words = vec!["ZRANGE".into(), key];
            let by_score = random.below(2) == 0;
            let edges = if by_score { EDGES } else { INDICES };
            words.extend([random.pick(edges), random.pick(edges)]);
            if by_score {
                words.push("BYSCORE".into());
            }
            if random.below(2) == 0 {
                words.push("REV".into());
            }
            if random.below(3) == 0 {
                words.extend(["LIMIT".into(), random.pick(INDICES), random.pick(INDICES)]);
            }
            if random.below(2) == 0 {
                words.push("WITHSCORES".into());
            }
            words
        }
        20 => vec!["XADD".into(), key, "*".into(), name(random), name(random)],
        21 => {
            let mut words = vec![random.pick(&["XRANGE", "XREVRANGE"]), key, id(random), id(random)];
            if random.below(2) == 0 {
                words.extend(["COUNT".into(), random.pick(INDICES)]);
            }
            words
        }
        22 => vec!["XLEN".into(), key],
        23 => vec!["XDEL".into(), key, id(random), id(random)],
        _ => vec!["XTRIM".into(), key, "MINID".into(), "=".into(), id(random)],
    };
    // Occasionally too few words.
    if random.below(40) == 0 { words[..words.len() - 1].to_vec() } else { words }
}

/// One host's stream ids by key, in the order it created them.
#[derive(Default)]
struct Ids(HashMap<String, Vec<String>>);

impl Ids {
    fn fill_in(&self, words: &[String]) -> Vec<Value> {
        let known = |text: &str| -> Option<String> {
            let number: usize = text.strip_prefix('#')?.parse().ok()?;
            let ids = self.0.get(words.get(1)?)?;
            ids.get(ids.len().checked_sub(number + 1)?).cloned()
        };
        words
            .iter()
            .map(|word| {
                let (open, rest) = match word.strip_prefix('(') {
                    Some(rest) => ("(", rest),
                    None => ("", word.as_str()),
                };
                let filled =
                    if rest.starts_with('#') { known(rest).unwrap_or_else(|| "0".to_owned()) } else { rest.to_owned() };
                text(format!("{open}{filled}"))
            })
            .collect()
    }

    /// The reply with ids replaced by their position and unordered pairs sorted.
    fn normal(&mut self, words: &[String], reply: &Value) -> String {
        if words[0] == "XADD"
            && let Value::String(id) = reply
        {
            self.0.entry(words[1].clone()).or_default().push(String::from_utf8_lossy(id.as_bytes()).into_owned());
        }
        if words[0] == "HGETALL"
            && let Value::Array(pieces) = reply
        {
            let mut pairs: Vec<String> = pieces.chunks(2).map(|pair| format!("{pair:?}")).collect();
            pairs.sort();
            return format!("{pairs:?}");
        }
        let ids = words.get(1).and_then(|key| self.0.get(key)).map_or(&[][..], Vec::as_slice);
        shown(ids, reply)
    }
}

fn shown(ids: &[String], reply: &Value) -> String {
    match reply {
        Value::String(bytes) => {
            let text = String::from_utf8_lossy(bytes.as_bytes()).into_owned();
            match ids.iter().rposition(|id| *id == text) {
                Some(position) => format!("id {position}"),
                None => format!("{text:?}"),
            }
        }
        Value::Array(items) => format!("[{}]", items.iter().map(|item| shown(ids, item)).collect::<Vec<_>>().join(" ")),
        Value::Map(pairs) => {
            // The server's error table also says where the error occurred.
            let err = pairs.iter().find(|(name, _)| name.as_str() == Some("err"));
            match err {
                Some((_, text)) => format!("err {text}"),
                None => format!("{pairs:?}"),
            }
        }
        other => format!("{other}"),
    }
}

#[tokio::test]
async fn random_commands_answer_as_a_server_answers() {
    let rounds: u64 = ff_testkit::tier::rounds(10, 40, 2_000);
    let first_seed: u64 = std::env::var("FF_PARITY_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let (mut options, clock) = options(directory.path());
    options.durability = Durability::Relaxed;
    let fixture = Fixture { host: Embedded::open(options).unwrap(), clock };
    let (mut theirs, mut ours) = (Ids::default(), Ids::default());
    for seed in first_seed..first_seed + rounds {
        let mut random = Seeded(seed);
        for key in KEYS {
            let clear = Value::Map(vec![(
                Value::from("commands"),
                Value::Array(vec![Value::Array(vec![text("DEL"), text(key)])]),
            )]);
            server.call("t_run", &clear).unwrap();
            fixture.call("t_run", clear).await.unwrap();
        }
        for step in 0..60 {
            let words = command(&mut random);
            fixture.clock.advance_ms(1);
            let ask = |ids: &Ids| {
                Value::Map(vec![(Value::from("commands"), Value::Array(vec![Value::Array(ids.fill_in(&words))]))])
            };
            let their_reply = server.call("t_run", &ask(&theirs)).unwrap();
            let our_reply = fixture.call("t_run", ask(&ours)).await.unwrap();
            let (their_reply, our_reply) = (theirs.normal(&words, &their_reply[0]), ours.normal(&words, &our_reply[0]));
            assert_eq!(our_reply, their_reply, "seed {seed}, step {step}: {words:?}");
        }
    }
}

#[tokio::test]
async fn packing_gives_the_bytes_a_server_gives() {
    let mut server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    for name in
        ["empty", "array", "map", "half", "tenth", "yes", "big", "negative", "huge", "infinite", "zero", "missing"]
    {
        let args = Value::Map(vec![(Value::from("name"), Value::from(name))]);
        let theirs = server.command(&[b"FCALL", b"t_pack", b"1", b"ff:{p:1}", &encode(&args)]).unwrap();
        let ours = ff_script::Host::call(&fixture.host, crate::support::invocation("t_pack", args)).await.unwrap();
        assert_eq!(ours, theirs, "{name}");
    }
}

/// Each probe checks one thing that a function may see or do.
#[tokio::test]
async fn the_sandbox_refuses_what_a_server_refuses() {
    let mut server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let fixture = open(directory.path());
    for probe in [
        "global_read",
        "global_write",
        "module_write",
        "redis_write",
        "no_io",
        "no_debug",
        "no_require",
        "not_a_string",
        "no_command",
        "sha1",
        "numbers",
        "table_error",
    ] {
        let args = Value::Map(vec![(Value::from("probe"), Value::from(probe))]);
        let theirs = server.call("t_eval", &args).unwrap();
        let ours = fixture.call("t_eval", args).await.unwrap();
        assert_eq!(ours[0], theirs[0], "{probe}: {ours} here, {theirs} there");
    }
}
