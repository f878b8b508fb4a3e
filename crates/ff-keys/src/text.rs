//! The text form of a key ring, used by keys files and `FF_KEYS`: a header, then one key per line.
//!
//! ```text
//! flowfabric keys 1
//! # Keep this file secret: it allows signing waitpoint tokens.
//! sign   k7m2p9xa made_at=1767225600000 secret=…
//! accept b4n8q3zt made_at=1764547200000 until=1767312000000 secret=…
//! ```

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ff_core::types::TimestampMs;
use zeroize::Zeroizing;

use crate::ring::{Key, Retiring, SECRET_LEN, Secret};
use crate::{BadKeys, KeyRing};

const HEADER: &str = "flowfabric keys 1";
const COMMENT: &str = "# Keep this file secret: it allows signing waitpoint tokens. The first key signs, the others are accepted for a while.";

impl KeyRing {
    /// The ring as text, secrets included.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        // The capacity is enough for everything: a buffer that grows leaves copies of secrets in memory.
        let mut text = Zeroizing::new(String::with_capacity(256 + 256 * (1 + self.accepted.len())));
        text.push_str(HEADER);
        text.push('\n');
        text.push_str(COMMENT);
        text.push('\n');
        push_key(&mut text, "sign  ", &self.signing, None);
        for Retiring { key, until } in &self.accepted {
            push_key(&mut text, "accept", key, Some(*until));
        }
        text
    }

    /// Parses a ring. Empty lines and lines that start with `#` are ignored.
    pub fn from_text(text: &str) -> Result<Self, BadKeys> {
        let mut lines = text.lines().zip(1..);
        if lines.next().is_none_or(|(header, _)| header.trim_end() != HEADER) {
            return Err(BadKeys { line: 1, problem: "must be: flowfabric keys 1" });
        }
        let mut signing: Option<Key> = None;
        let mut accepted: Vec<Retiring> = Vec::new();
        for (content, line) in lines {
            let content = content.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let bad = |problem| BadKeys { line, problem };
            let (key, until) = read_key(content).map_err(bad)?;
            let known = signing.iter().chain(accepted.iter().map(|retiring| &retiring.key));
            if known.into_iter().any(|other| other.id == key.id) {
                return Err(bad("names a key that stands further up"));
            }
            match until {
                Some(until) => accepted.push(Retiring { key, until }),
                None if signing.is_some() => return Err(bad("is a second signing key")),
                None => signing = Some(key),
            }
        }
        let signing = signing.ok_or(BadKeys { line: 1, problem: "no signing key follows" })?;
        Ok(Self { signing, accepted })
    }
}

fn push_key(text: &mut Zeroizing<String>, role: &str, key: &Key, until: Option<TimestampMs>) {
    text.push_str(role);
    text.push(' ');
    text.push_str(key.id.as_str());
    text.push_str(&format!(" made_at={}", key.made_at));
    if let Some(until) = until {
        text.push_str(&format!(" until={until}"));
    }
    text.push_str(" secret=");
    URL_SAFE_NO_PAD.encode_string(key.secret.as_bytes(), text);
    text.push('\n');
}

/// A key, and until when it is accepted; `None` if it signs. The error says nothing about the line's content.
fn read_key(line: &str) -> Result<(Key, Option<TimestampMs>), &'static str> {
    let mut words = line.split_ascii_whitespace();
    let signs = match words.next() {
        Some("sign") => true,
        Some("accept") => false,
        _ => return Err("must start with sign or accept"),
    };
    let id = words.next().and_then(|word| word.parse().ok()).ok_or("has no key id")?;
    let made_at = read_time(words.next(), "made_at=").ok_or("has no made_at in milliseconds after the key id")?;
    let until = if signs {
        None
    } else {
        Some(read_time(words.next(), "until=").ok_or("has no until in milliseconds after made_at")?)
    };
    let secret = words.next().and_then(|word| word.strip_prefix("secret=")).ok_or("has no secret at its end")?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * SECRET_LEN));
    let decoded = secret.len() < 2 * SECRET_LEN && URL_SAFE_NO_PAD.decode_vec(secret, &mut bytes).is_ok();
    let secret = Some(bytes).filter(|_| decoded).and_then(Secret::from_bytes);
    let secret = secret.ok_or("has a secret that is not 32 bytes in base64url")?;
    if words.next().is_some() {
        return Err("goes on after the secret");
    }
    Ok((Key { id, made_at, secret }, until))
}

fn read_time(word: Option<&str>, name: &str) -> Option<TimestampMs> {
    word?.strip_prefix(name)?.parse().ok().map(TimestampMs::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const A: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    #[test]
    fn a_ring_reads_back_as_written() {
        let mut ring = KeyRing::generate();
        ring.rotate(Duration::from_secs(60));
        ring.rotate(Duration::from_secs(60));
        let text = ring.to_text();
        let again = KeyRing::from_text(&text).unwrap();
        assert_eq!(*again.to_text(), *text);
        assert_eq!(again.facts(), ring.facts());
        assert!(text.starts_with("flowfabric keys 1\n# "));
        assert_eq!(text.lines().count(), 5);
    }

    #[test]
    fn people_may_add_comments_and_space() {
        let text = format!("flowfabric keys 1\r\n\n  # mine\n  sign\tk1  made_at=5   secret={A}  \n");
        let facts = KeyRing::from_text(&text).unwrap().facts();
        assert_eq!((facts[0].id.as_str(), facts[0].made_at.as_millis(), facts.len()), ("k1", 5, 1));
    }

    #[test]
    fn a_bad_line_is_named_by_number_and_never_shown() {
        let canary = "Q0FOQVJZ";
        let sign = format!("sign k1 made_at=1 secret={A}");
        for (rest, line, problem) in [
            (String::new(), 1, "no signing key follows"),
            (format!("accept k1 made_at=1 until=2 secret={A}"), 1, "no signing key follows"),
            (format!("\n{canary}"), 3, "must start with sign or accept"),
            (format!("{sign}\n{sign}"), 3, "names a key that stands further up"),
            (format!("{sign}\nsign k2 made_at=1 secret={A}"), 3, "is a second signing key"),
            (format!("sign k.{canary} made_at=1 secret={A}"), 2, "has no key id"),
            (format!("sign k1 made_at={canary} secret={A}"), 2, "has no made_at in milliseconds after the key id"),
            (format!("accept k1 made_at=1 secret={A}"), 2, "has no until in milliseconds after made_at"),
            (format!("sign k1 made_at=1 {canary}"), 2, "has no secret at its end"),
            (format!("sign k1 made_at=1 secret={canary}"), 2, "has a secret that is not 32 bytes in base64url"),
            (format!("sign k1 made_at=1 secret={A}="), 2, "has a secret that is not 32 bytes in base64url"),
            (format!("sign k1 made_at=1 secret={}B", &A[1..]), 2, "has a secret that is not 32 bytes in base64url"),
            (format!("sign k1 made_at=1 secret={}", A.repeat(9)), 2, "has a secret that is not 32 bytes in base64url"),
            (format!("{sign} {canary}"), 2, "goes on after the secret"),
        ] {
            let error = KeyRing::from_text(&format!("flowfabric keys 1\n{rest}")).unwrap_err();
            assert_eq!(error, BadKeys { line, problem }, "{rest}");
            assert!(!format!("{error} {error:?}").contains(canary));
        }
        for text in ["", "flowfabric keys 2\n", &sign] {
            assert_eq!(KeyRing::from_text(text).unwrap_err().to_string(), "line 1: must be: flowfabric keys 1");
        }
    }
}
