//! The text of a token: `wp1.<key id>.<claims>.<mac>`; claims and mac are base64url without padding.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ff_core::types::WaitpointToken;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::claims::push_field;
use crate::{Claims, Error, KeyId};

const VERSION: &str = "wp1";

/// The longest possible token. Longer texts fail without being parsed.
pub const TOKEN_BYTES_MAX: usize = 1_024;

/// The SHA-256 of the token's text in hex, which the store keeps instead of the token.
#[must_use]
pub fn digest(token: &WaitpointToken) -> String {
    hex::encode(Sha256::digest(token.as_str()))
}

/// Reads the claims of a token for its holder. The signature is not verified, because that needs the key.
#[must_use]
pub fn read_claims(token: &str) -> Option<Claims> {
    Claims::decode(&Unchecked::read(token)?.claims)
}

/// The mac over version, key id and claims, each preceded by its length.
fn mac(secret: &[u8], id: &str, claims: &[u8]) -> Hmac<Sha256> {
    let mut header = Vec::with_capacity(64);
    push_field(&mut header, VERSION.as_bytes());
    push_field(&mut header, id.as_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length will do");
    mac.update(&header);
    mac.update(claims);
    mac
}

/// Signs the claims.
pub(crate) fn sign(secret: &[u8], id: &KeyId, claims: &Claims) -> Result<WaitpointToken, Error> {
    let claims = claims.encode()?;
    let mac = mac(secret, id.as_str(), &claims).finalize().into_bytes();
    Ok(WaitpointToken::new(spell(id.as_str(), &claims, &mac)))
}

/// The only text of a token. It is allocated once, so that no copy of a part stays in memory.
fn spell(id: &str, claims: &[u8], mac: &[u8]) -> String {
    let mut text = String::with_capacity(TOKEN_BYTES_MAX);
    text.push_str(VERSION);
    text.push('.');
    text.push_str(id);
    text.push('.');
    URL_SAFE_NO_PAD.encode_string(claims, &mut text);
    text.push('.');
    URL_SAFE_NO_PAD.encode_string(mac, &mut text);
    text
}

/// A text with the parts of a token, not yet verified.
pub(crate) struct Unchecked<'a> {
    text: &'a str,
    /// The id of the key it claims to be signed with.
    pub(crate) key_id: &'a str,
    claims: Vec<u8>,
    mac: [u8; 32],
}

impl<'a> Unchecked<'a> {
    /// Splits the text into the parts of a token.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        if text.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (version, rest) = text.split_once('.')?;
        let (key_id, rest) = rest.split_once('.')?;
        let (claims, mac_text) = rest.split_once('.')?;
        if version != VERSION {
            return None;
        }
        let mut mac = [0; 32];
        // The decoder rejects padding, other alphabets and stray bits at the end.
        if URL_SAFE_NO_PAD.decode_slice(mac_text, &mut mac).ok()? != mac.len() {
            return None;
        }
        Some(Self { text, key_id, claims: URL_SAFE_NO_PAD.decode(claims).ok()?, mac })
    }

    /// Returns the claims if they were signed with this secret. Compares the mac in constant time.
    pub(crate) fn check(&self, secret: &[u8]) -> Option<Claims> {
        mac(secret, self.key_id, &self.claims).verify_slice(&self.mac).ok()?;
        let claims = Claims::decode(&self.claims)?;
        // Each token has exactly one text, because the store knows it by the digest of that text.
        (spell(self.key_id, &self.claims, &self.mac) == self.text).then_some(claims)
    }
}
