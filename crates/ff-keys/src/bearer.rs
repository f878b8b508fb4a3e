//! Bearer tokens, with which clients of the HTTP API authenticate.

use std::fmt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::Error;
use crate::claims::fill_random;
use crate::file::{self, Locked};

/// The name of the root token's file in the data directory.
const FILE_NAME: &str = "root-token";
const PREFIX: &str = "ff_";
const SECRET_LEN: usize = 32;

/// A bearer token. It is a secret: `Debug` does not show it, and dropping it wipes it.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(Zeroizing<String>);

impl BearerToken {
    #[must_use]
    pub fn mint() -> Self {
        let mut secret = Zeroizing::new([0; SECRET_LEN]);
        fill_random(secret.as_mut());
        let mut text = Zeroizing::new(String::with_capacity(64));
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(secret.as_ref(), &mut text);
        Self(text)
    }

    /// Parses a token, ignoring white space around it. `None` if the text cannot be a token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = (16..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// The secret itself, to send or store it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The digest by which the store knows the token.
    #[must_use]
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(self.0.as_bytes()))
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(redacted)")
    }
}

/// The root token of a data directory. Creates one, readable by this user only, if there is none.
pub fn root_token(directory: &Path) -> Result<(BearerToken, Made), Error> {
    if let Some(token) = known_root_token(directory)? {
        return Ok((token, Made::Before));
    }
    file::make_directory(directory)?;
    let path = directory.join(FILE_NAME);
    let locked = Locked::wait(&path)?;
    // The previous holder of the lock may have created it.
    if let Some(token) = known_root_token(directory)? {
        return Ok((token, Made::Before));
    }
    let token = BearerToken::mint();
    locked.store(&Zeroizing::new(format!("{}\n", token.reveal())))?;
    Ok((token, Made::Now))
}

/// The root token of a data directory; `None` if no server has created one.
pub fn known_root_token(directory: &Path) -> Result<Option<BearerToken>, Error> {
    let path = directory.join(FILE_NAME);
    match file::read(&path)? {
        None => Ok(None),
        Some((text, _)) => BearerToken::parse(&text).map(Some).ok_or_else(|| Error::Malformed {
            place: path.display().to_string(),
            source: crate::BadKeys { line: 1, problem: "is not a token" },
        }),
    }
}

/// When a root token was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// By an earlier start.
    Before,
    /// Just now: it must be shown to the operator.
    Now,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_token_is_made_once_and_kept_private() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        assert_eq!(known_root_token(&data).unwrap(), None);
        let (token, made) = root_token(&data).unwrap();
        assert_eq!(made, Made::Now);
        assert_eq!(root_token(&data).unwrap(), (token.clone(), Made::Before));
        assert_eq!(known_root_token(&data).unwrap(), Some(token.clone()));
        assert!(token.reveal().len() > 40 && !format!("{token:?}").contains(token.reveal()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let path = data.join(FILE_NAME);
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            assert!(matches!(root_token(&data), Err(Error::OpenToOthers { mode: 0o644, .. })));
        }
    }

    #[test]
    fn no_two_tokens_are_alike_and_what_cannot_be_one_is_none() {
        assert_ne!(BearerToken::mint(), BearerToken::mint());
        for text in ["", "short", "has a space in the middle of it", "\u{fc}mlaut-is-not-ascii-graphic"] {
            assert_eq!(BearerToken::parse(text), None, "{text}");
        }
    }
}
