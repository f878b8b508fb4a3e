//! A small library and helpers to call it.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::Path;
use std::sync::Arc;

use ff_backend_embedded::{Embedded, Options, VirtualClock};
use ff_script::{Host, HostError, Invocation, Route};
use rmpv::Value;

/// Functions that run any commands they are given.
pub const LIBRARY: &str = include_str!("library.lua");

pub const NOW_MS: i64 = 1_700_000_000_123;

pub struct Fixture {
    pub host: Embedded,
    pub clock: Arc<VirtualClock>,
}

pub fn options(directory: &Path) -> (Options, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::at_ms(NOW_MS));
    let mut options = Options::new(directory, ff_testkit::in_lists(LIBRARY));
    options.clock = clock.clone();
    options.map_size = 1 << 30;
    (options, clock)
}

pub fn open(directory: &Path) -> Fixture {
    let (options, clock) = options(directory);
    Fixture { host: Embedded::open(options).expect("the store opens"), clock }
}

pub fn open_strict(directory: &Path) -> Fixture {
    let (mut options, clock) = options(directory);
    options.strict = true;
    Fixture { host: Embedded::open(options).expect("the store opens"), clock }
}

pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    rmpv::encode::write_value(&mut out, value).expect("writing to memory cannot fail");
    out
}

pub fn decode(bytes: &[u8]) -> Value {
    rmpv::decode::read_value(&mut &bytes[..]).expect("a reply is msgpack")
}

/// Bytes in msgpack's str family, whatever they contain.
pub fn text(bytes: impl AsRef<[u8]>) -> Value {
    let mut raw = Vec::new();
    let bytes = bytes.as_ref();
    rmp::encode::write_str_len(&mut raw, bytes.len() as u32).expect("writing to memory cannot fail");
    raw.extend_from_slice(bytes);
    decode(&raw)
}

pub fn invocation(function: &'static str, args: Value) -> Invocation {
    Invocation {
        route: Route::Execution(1),
        function,
        read_only: false,
        args: encode(&args),
        now_ms: None,
        count_calls: false,
        terms: ff_script::Terms::default(),
    }
}

/// `[["HSET", key, ...], ...]` as the argument map of `t_run` and its relatives.
pub fn commands(list: &[&[&str]]) -> Value {
    let list = list.iter().map(|command| Value::Array(command.iter().map(text).collect())).collect();
    Value::Map(vec![(Value::from("commands"), Value::Array(list))])
}

impl Fixture {
    pub async fn call(&self, function: &'static str, args: Value) -> Result<Value, HostError> {
        self.host.call(invocation(function, args)).await.map(|bytes| decode(&bytes))
    }

    /// Runs commands one by one. A refused one returns `{err = text}`.
    pub async fn run(&self, list: &[&[&str]]) -> Vec<Value> {
        let reply = self.call("t_run", commands(list)).await.expect("t_run answers");
        reply.as_array().expect("one reply per command").clone()
    }

    /// Runs one command and shows its reply as text.
    pub async fn one(&self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        show(&self.run(&[&words]).await[0])
    }
}

/// A reply in a form that fits a table: `nil` as false, arrays in brackets.
pub fn show(value: &Value) -> String {
    match value {
        Value::Boolean(false) => "false".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" ")),
        Value::Map(pairs) => {
            let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{}={}", show(k), show(v))).collect();
            format!("{{{}}}", pairs.join(" "))
        }
        Value::String(s) => String::from_utf8_lossy(s.as_bytes()).into_owned(),
        other => format!("#{other}"),
    }
}
