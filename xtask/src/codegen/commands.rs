//! The store commands that the library may use. Both hosts implement exactly these.

use std::collections::BTreeSet;

use super::source::{Module, Source};
use super::tokens::{Kind, tokens};

/// Commands that read.
const READS: [&str; 18] = [
    "TIME",
    "EXISTS",
    "HGET",
    "HMGET",
    "MGET",
    "HGETALL",
    "HLEN",
    "HEXISTS",
    "GET",
    "ZSCORE",
    "ZMSCORE",
    "ZCARD",
    "ZCOUNT",
    "ZRANK",
    "ZRANGE",
    "XRANGE",
    "XREVRANGE",
    "XLEN",
];

/// Commands that write or announce.
const WRITES: [&str; 12] =
    ["HSET", "HDEL", "SET", "MSET", "DEL", "INCRBY", "ZADD", "ZREM", "XADD", "XDEL", "XTRIM", "SPUBLISH"];

/// Upper-case words in `lib/tx.lua` that are options or error codes, not commands.
const WORDS: [&str; 7] = ["BYSCORE", "REV", "LIMIT", "WITHSCORES", "COUNT", "MAXLEN", "MINID"];
const ERROR_WORDS: [&str; 4] = ["CLUSTERDOWN", "MOVED", "TRYAGAIN", "WRONGTYPE"];

/// The module that turns plans into commands. Every command word is in it or beside `redis.call`.
const TX: &str = "lib.tx";

/// The commands that the library uses, by name, for the Valkey ACL and the hosts' tests.
pub fn used(source: &Source) -> BTreeSet<&str> {
    source.modules.iter().flat_map(|module| words(module)).map(|(_, word)| word).filter(|word| is_known(word)).collect()
}

/// Words in the position of a command that are not allowed, with their lines.
pub fn unknown(module: &Module) -> Vec<(usize, &str)> {
    words(module).into_iter().filter(|(_, word)| !is_known(word)).collect()
}

fn is_known(word: &str) -> bool {
    READS.contains(&word) || WRITES.contains(&word)
}

/// All words in the position of a command.
fn words(module: &Module) -> Vec<(usize, &str)> {
    let list = tokens(&module.text);
    let mut found = Vec::new();
    for (at, token) in list.iter().enumerate() {
        let Kind::Text(word) = token.kind else {
            continue;
        };
        let called = at >= 2
            && list[at - 1].kind == Kind::Mark('(')
            && matches!(list[at - 2].kind, Kind::Name("call" | "pcall"))
            && at >= 4
            && list[at - 4].kind == Kind::Name("redis");
        let is_word = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        let planned = module.name == TX && is_word && !WORDS.contains(&word) && !ERROR_WORDS.contains(&word);
        if called || planned {
            found.push((token.line, word));
        }
    }
    found
}
