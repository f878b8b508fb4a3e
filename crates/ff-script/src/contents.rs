//! The raw content of a store, key by key, which an export reads and an import writes.

use async_trait::async_trait;

use crate::host::{Host, HostError};

/// The most pairs, members or values one command carries.
const PER_COMMAND: usize = 256;

/// A command of a store: its name, then its arguments.
pub type Command = Vec<Vec<u8>>;

/// An entry of a stream: its id, and its fields in their original order.
pub type Entry = ((u64, u64), Vec<(Vec<u8>, Vec<u8>)>);

/// The content of one key.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Fields and values.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// Members and scores.
    Zset(Vec<(Vec<u8>, f64)>),
    /// Plain bytes.
    Text(Vec<u8>),
    /// Entries in the order of their ids, and the last id ever used.
    Stream {
        entries: Vec<Entry>,
        /// Later entries get higher ids than this one, even if its entry is gone.
        last: (u64, u64),
    },
}

impl Content {
    /// The commands that write this content to an empty key.
    pub fn commands(&self, key: &[u8]) -> Vec<Command> {
        let begin = |name: &str| vec![name.as_bytes().to_vec(), key.to_vec()];
        let id = |(ms, seq): (u64, u64)| format!("{ms}-{seq}").into_bytes();
        match self {
            Content::Text(text) => vec![begin("SET").into_iter().chain([text.clone()]).collect()],
            Content::Hash(pairs) => pairs
                .chunks(PER_COMMAND)
                .map(|pairs| {
                    let pairs = pairs.iter().flat_map(|(field, value)| [field.clone(), value.clone()]);
                    begin("HSET").into_iter().chain(pairs).collect()
                })
                .collect(),
            Content::Zset(members) => members
                .chunks(PER_COMMAND)
                .map(|members| {
                    let members =
                        members.iter().flat_map(|(member, score)| [score.to_string().into_bytes(), member.clone()]);
                    begin("ZADD").into_iter().chain(members).collect()
                })
                .collect(),
            Content::Stream { entries, last } => {
                let add = |at: (u64, u64), pairs: &[(Vec<u8>, Vec<u8>)]| -> Command {
                    let pairs = pairs.iter().flat_map(|(field, value)| [field.clone(), value.clone()]);
                    begin("XADD").into_iter().chain([id(at)]).chain(pairs).collect()
                };
                let mut commands: Vec<Command> = entries.iter().map(|(at, pairs)| add(*at, pairs)).collect();
                // Adding an entry with the last id and removing it leaves the stream with this last id.
                if entries.last().is_none_or(|(at, _)| at < last) && *last > (0, 0) {
                    commands.push(add(*last, &[(b"-".to_vec(), b"-".to_vec())]));
                    commands.push(begin("XDEL").into_iter().chain([id(*last)]).collect());
                }
                commands
            }
        }
    }
}

/// A host whose content can be moved. Never use it beside a running engine: these calls check no invariants.
#[async_trait]
pub trait Contents: Host {
    /// The content of these keys; `None` for absent ones.
    async fn read_keys(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Content>>, HostError>;

    /// Writes keys that do not exist yet. Only the embedded store writes the keys of one call atomically.
    async fn write_keys(&self, keys: Vec<(Vec<u8>, Content)>) -> Result<(), HostError>;

    /// Removes keys; absent ones are ignored.
    async fn remove_keys(&self, keys: Vec<Vec<u8>>) -> Result<(), HostError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(content: &Content) -> Vec<String> {
        let text = |command: &Command| {
            command.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" ")
        };
        content.commands(b"k").iter().map(text).collect()
    }

    #[test]
    fn a_key_is_made_by_plain_commands() {
        let pair = |a: &str, b: &str| (a.as_bytes().to_vec(), b.as_bytes().to_vec());
        assert_eq!(said(&Content::Text(b"x".to_vec())), ["SET k x"]);
        assert_eq!(said(&Content::Hash(vec![pair("a", "1"), pair("b", "2")])), ["HSET k a 1 b 2"]);
        assert_eq!(
            said(&Content::Zset(vec![(b"m".to_vec(), 1.5), (b"n".to_vec(), 2e15)])),
            ["ZADD k 1.5 m 2000000000000000 n"]
        );
        let whole = Content::Stream { entries: vec![((5, 0), vec![pair("f", "v")])], last: (5, 0) };
        assert_eq!(said(&whole), ["XADD k 5-0 f v"]);
        let trimmed = Content::Stream { entries: Vec::new(), last: (5, 1) };
        assert_eq!(said(&trimmed), ["XADD k 5-1 - -", "XDEL k 5-1"]);
        let many = Content::Hash((0..600).map(|n| pair(&n.to_string(), "")).collect());
        assert_eq!(said(&many).len(), 3);
    }
}
