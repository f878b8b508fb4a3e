//! The claims of a token, and their only encoding.

use ff_core::types::{ExecutionId, TimestampMs, WaitpointId};
use rand::TryRngCore;
use rand::rngs::OsRng;
use uuid::Uuid;

use crate::Error;

/// The longest namespace or approver label in bytes.
pub const CLAIM_BYTES_MAX: usize = 256;

/// The claims of a waitpoint token: which waitpoint its holder may signal, until when and how often.
///
/// Verifying a token checks none of these limits. The store checks them in the call that uses the token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claims {
    pub namespace: String,
    /// The waiting execution.
    pub execution_id: ExecutionId,
    /// The waitpoint it may signal.
    pub waitpoint_id: WaitpointId,
    /// The approver it was issued to; `None` if the waitpoint has one token for all approvers.
    pub approver: Option<String>,
    /// When it expires; `None` if it ends with its waitpoint.
    pub expires_at: Option<TimestampMs>,
    /// How often it may be used; `None` for no limit.
    pub uses: Option<u32>,
    /// Makes a reissued token differ from the one it replaces; see [`fresh_nonce`].
    pub nonce: [u8; 16],
}

/// A nonce that no other token has.
#[must_use]
pub fn fresh_nonce() -> [u8; 16] {
    let mut nonce = [0; 16];
    fill_random(&mut nonce);
    nonce
}

/// Fills the slice with cryptographically random bytes.
pub(crate) fn fill_random(bytes: &mut [u8]) {
    OsRng.try_fill_bytes(bytes).expect("the operating system has random bytes");
}

impl Claims {
    /// The fields in order, each preceded by its length. An optional field is empty, or a 1 and its value.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Error> {
        for (field, text) in [("namespace", Some(&self.namespace)), ("approver", self.approver.as_ref())] {
            let bytes = text.map_or(0, String::len);
            if bytes > CLAIM_BYTES_MAX {
                return Err(Error::ClaimTooLong { field, bytes });
            }
        }
        let mut out = Vec::with_capacity(128);
        push_field(&mut out, self.namespace.as_bytes());
        push_field(&mut out, self.execution_id.as_uuid().as_bytes());
        push_field(&mut out, self.waitpoint_id.as_uuid().as_bytes());
        push_optional(&mut out, self.approver.as_ref().map(|label| label.as_bytes()));
        push_optional(
            &mut out,
            self.expires_at.map(|at| at.as_millis().to_be_bytes()).as_ref().map(<[u8; 8]>::as_slice),
        );
        push_optional(&mut out, self.uses.map(u32::to_be_bytes).as_ref().map(<[u8; 4]>::as_slice));
        push_field(&mut out, &self.nonce);
        Ok(out)
    }

    /// Decodes the claims. Only exactly the bytes that [`Claims::encode`] writes are accepted.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let claims = Self {
            namespace: take_text(take_field(&mut rest)?)?,
            execution_id: ExecutionId::from_uuid(take_uuid(take_field(&mut rest)?)?),
            waitpoint_id: WaitpointId::from_uuid(take_uuid(take_field(&mut rest)?)?),
            approver: take_optional(&mut rest)?.map_or(Some(None), |label| take_text(label).map(Some))?,
            expires_at: take_optional(&mut rest)?.map_or(Some(None), |at| {
                Some(Some(TimestampMs::from_millis(i64::from_be_bytes(at.try_into().ok()?))))
            })?,
            uses: take_optional(&mut rest)?
                .map_or(Some(None), |uses| Some(Some(u32::from_be_bytes(uses.try_into().ok()?))))?,
            nonce: take_field(&mut rest)?.try_into().ok()?,
        };
        // Each claim has exactly one encoding, even if the reader above accepts more.
        (claims.encode().ok()? == bytes).then_some(claims)
    }
}

/// Appends the bytes after their length, so that different lists of fields never encode to the same bytes.
pub(crate) fn push_field(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).expect("every field is shorter than 64 KiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

fn push_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => push_field(out, &[]),
        Some(bytes) => push_field(out, &[&[1], bytes].concat()),
    }
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<2>()?;
    let (field, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    *rest = after;
    Some(field)
}

fn take_optional<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match take_field(rest)? {
        [] => Some(None),
        [1, value @ ..] => Some(Some(value)),
        _ => None,
    }
}

fn take_text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

fn take_uuid(bytes: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            namespace: "default".to_owned(),
            execution_id: ExecutionId::mint(),
            waitpoint_id: WaitpointId::mint(),
            approver: None,
            expires_at: None,
            uses: None,
            nonce: fresh_nonce(),
        }
    }

    #[test]
    fn absent_and_empty_are_different() {
        let none = claims();
        let empty = Claims { approver: Some(String::new()), ..none.clone() };
        assert_ne!(none.encode().unwrap(), empty.encode().unwrap());
        assert_eq!(Claims::decode(&empty.encode().unwrap()), Some(empty));
        assert_eq!(Claims::decode(&none.encode().unwrap()), Some(none));
    }

    #[test]
    fn bytes_that_are_not_exactly_claims_are_none() {
        let bytes = Claims { uses: Some(3), ..claims() }.encode().unwrap();
        for length in 0..bytes.len() {
            assert_eq!(Claims::decode(&bytes[..length]), None, "the first {length} bytes");
        }
        assert_eq!(Claims::decode(&[&bytes[..], &[0]].concat()), None);
        // A 2 in the flag of an optional field.
        let flag = bytes.len() - 18 - 5;
        let mut other = bytes.clone();
        assert_eq!(other[flag], 1);
        other[flag] = 2;
        assert_eq!(Claims::decode(&other), None);
    }

    #[test]
    fn a_claim_that_is_too_long_is_refused_by_name() {
        let long = |bytes| "x".repeat(bytes);
        assert!(Claims { namespace: long(256), approver: Some(long(256)), ..claims() }.encode().is_ok());
        let error = Claims { namespace: long(257), ..claims() }.encode().unwrap_err();
        assert_eq!(error.to_string(), "cannot sign a token: its namespace may be at most 256 bytes, not 257");
        let error = Claims { approver: Some(long(1_000_000)), ..claims() }.encode().unwrap_err();
        assert_eq!(error.to_string(), "cannot sign a token: its approver may be at most 256 bytes, not 1000000");
    }
}
