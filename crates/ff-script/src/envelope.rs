//! The fields a host adds to the arguments of every call.

use rmp::Marker;

use crate::host::HostError;
use crate::wire::{Wire, write_bytes, write_map_len};

/// What a host tells the library beside the arguments; a field that is off is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The commit touches its keys before it writes: needed where slots move.
    pub guard: bool,
    /// Someone reads events: announce them.
    pub listen: bool,
    /// The time to use instead of the store's clock; honoured by the test bundle only.
    pub now_ms: Option<i64>,
    /// The reply carries the number of store calls.
    pub count_calls: bool,
}

impl Envelope {
    /// The arguments with the envelope's fields appended.
    ///
    /// `args` is a msgpack map, as [`crate::Call::encode`] writes it; anything else is refused.
    pub fn seal(&self, args: &[u8]) -> Result<Vec<u8>, HostError> {
        let Some((len, header)) = map_header(args) else {
            return Err(HostError::Refused { detail: "the arguments of a call must be a msgpack map".to_owned() });
        };
        let extra = usize::from(self.guard)
            + usize::from(self.listen)
            + usize::from(self.now_ms.is_some())
            + usize::from(self.count_calls);
        let mut out = Vec::with_capacity(args.len() + 48);
        write_map_len(&mut out, len + extra);
        out.extend_from_slice(&args[header..]);
        if self.guard {
            field(&mut out, "_guard", &true);
        }
        if self.listen {
            field(&mut out, "_listen", &true);
        }
        if let Some(now_ms) = self.now_ms {
            field(&mut out, "_now", &now_ms);
        }
        if self.count_calls {
            field(&mut out, "_calls", &true);
        }
        Ok(out)
    }
}

fn field<T: Wire>(out: &mut Vec<u8>, name: &str, value: &T) {
    write_bytes(out, name.as_bytes());
    value.write(out);
}

/// The number of entries of the map that starts here, and the length of its header.
fn map_header(bytes: &[u8]) -> Option<(usize, usize)> {
    match Marker::from_u8(*bytes.first()?) {
        Marker::FixMap(len) => Some((usize::from(len), 1)),
        Marker::Map16 => Some((usize::from(u16::from_be_bytes(bytes.get(1..3)?.try_into().ok()?)), 3)),
        Marker::Map32 => {
            let len = u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?);
            Some((usize::try_from(len).ok()?, 5))
        }
        // An empty Lua table, passed on as it came.
        Marker::FixArray(0) => Some((0, 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::wire::{Fields, parse};

    #[test]
    fn an_empty_envelope_changes_nothing() {
        let args = [0x81, 0xa1, b'a', 0x07];
        assert_eq!(Envelope::default().seal(&args).unwrap(), args);
        assert_eq!(Envelope::default().seal(&[0x90]).unwrap(), [0x80]);
        assert!(matches!(Envelope::default().seal(&[0xc0]), Err(HostError::Refused { .. })));
    }

    #[test]
    fn fields_are_appended_whatever_the_size_of_the_map() {
        let full = Envelope { guard: true, listen: true, now_ms: Some(1_700_000_000_000), count_calls: true };
        for size in [0_i64, 3, 11, 12, 15, 16, 65_533, 70_000] {
            let map: BTreeMap<String, i64> = (0..size).map(|n| (format!("k{n}"), n)).collect();
            let mut args = Vec::new();
            map.write(&mut args);
            let sealed = full.seal(&args).unwrap();
            let value = parse(&sealed).unwrap();
            let fields = Fields::of(&value).unwrap();
            assert_eq!(fields.entries().len() as i64, size + 4);
            assert_eq!(fields.read::<i64>("_now").unwrap(), 1_700_000_000_000);
            for name in ["_guard", "_listen", "_calls"] {
                assert!(fields.read::<bool>(name).unwrap(), "{name}");
            }
        }
    }
}
