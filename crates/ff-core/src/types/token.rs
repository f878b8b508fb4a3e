//! The secret that allows its holder to signal one waitpoint.

use std::fmt;

use serde::Deserialize;
use zeroize::Zeroizing;

/// A waitpoint token. It never prints its secret, and wipes it when dropped.
///
/// It cannot be serialized; [`WaitpointToken::as_str`] is the only access to the bytes.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct WaitpointToken(Zeroizing<String>);

impl WaitpointToken {
    /// The token with this text. Whether it is genuine is checked when it is used.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The secret itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for WaitpointToken {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for WaitpointToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitpointToken(redacted)")
    }
}

impl fmt::Display for WaitpointToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("redacted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_a_token_never_shows_its_secret() {
        let token = WaitpointToken::new("wp1.k.c.mac");
        assert_eq!(
            format!("{token} {token:?} {:?}", Some(&token)),
            "redacted WaitpointToken(redacted) Some(WaitpointToken(redacted))"
        );
        assert_eq!(token.as_str(), "wp1.k.c.mac");
        assert_eq!(token.clone(), token);
    }
}
