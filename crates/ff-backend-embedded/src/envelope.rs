//! Adds the host's own fields to a call's argument map.

use ff_script::{HostError, Invocation};

/// The argument map of `invocation` with `_listen`, `_now` and `_calls` appended where they apply.
pub(crate) fn wrap(invocation: &Invocation, listening: bool) -> Result<Vec<u8>, HostError> {
    let args = &invocation.args;
    let (count, header_len) = map_header(args).ok_or_else(|| HostError::Refused {
        detail: format!("arguments of {} are not a msgpack map", invocation.function),
    })?;
    let extra = u32::from(listening) + u32::from(invocation.now_ms.is_some()) + u32::from(invocation.count_calls);
    let mut out = Vec::with_capacity(args.len() + 48);
    let sink = "writing to memory cannot fail";
    rmp::encode::write_map_len(&mut out, count + extra).expect(sink);
    out.extend_from_slice(&args[header_len..]);
    if listening {
        rmp::encode::write_str(&mut out, "_listen").expect(sink);
        rmp::encode::write_bool(&mut out, true).expect(sink);
    }
    if let Some(now_ms) = invocation.now_ms {
        rmp::encode::write_str(&mut out, "_now").expect(sink);
        rmp::encode::write_sint(&mut out, now_ms).expect(sink);
    }
    if invocation.count_calls {
        rmp::encode::write_str(&mut out, "_calls").expect(sink);
        rmp::encode::write_bool(&mut out, true).expect(sink);
    }
    Ok(out)
}

/// The number of entries of the map and the length of its header.
fn map_header(args: &[u8]) -> Option<(u32, usize)> {
    match args {
        [first @ 0x80..=0x8f, ..] => Some((u32::from(first & 0x0f), 1)),
        [0xde, a, b, ..] => Some((u32::from(u16::from_be_bytes([*a, *b])), 3)),
        [0xdf, a, b, c, d, ..] => Some((u32::from_be_bytes([*a, *b, *c, *d]), 5)),
        // An empty map may arrive as an empty array.
        [0x90] => Some((0, 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_script::Route;

    fn invocation(fields: usize, now_ms: Option<i64>, count_calls: bool) -> Invocation {
        let map = (0..fields).map(|i| (rmpv::Value::from(format!("f{i}")), rmpv::Value::from(i as u64))).collect();
        let mut args = Vec::new();
        rmpv::encode::write_value(&mut args, &rmpv::Value::Map(map)).unwrap();
        Invocation { route: Route::Fleet, function: "ff_x", read_only: false, args, now_ms, count_calls }
    }

    #[test]
    fn envelope_fields_are_appended_whatever_the_map_header() {
        for fields in [0, 1, 14, 15, 16, 17, 70_000] {
            let wrapped = wrap(&invocation(fields, Some(-5), true), true).unwrap();
            let value = rmpv::decode::read_value(&mut wrapped.as_slice()).unwrap();
            let map = value.as_map().unwrap();
            assert_eq!(map.len(), fields + 3);
            let get = |name: &str| map.iter().find(|(k, _)| k.as_str() == Some(name)).map(|(_, v)| v.clone());
            assert_eq!(get("_now"), Some(rmpv::Value::from(-5)));
            assert_eq!(get("_listen"), Some(rmpv::Value::from(true)));
            assert_eq!(get("_calls"), Some(rmpv::Value::from(true)));
        }
        let plain = invocation(3, None, false);
        assert_eq!(wrap(&plain, false).unwrap(), plain.args);
    }

    #[test]
    fn arguments_that_are_no_map_are_refused() {
        let mut bad = invocation(0, None, false);
        bad.args = vec![0xc0];
        assert!(matches!(wrap(&bad, false), Err(HostError::Refused { .. })));
    }
}
