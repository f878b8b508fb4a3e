//! The slot of a key in a cluster.

/// The number of slots of every cluster.
pub(crate) const SLOTS: usize = 16_384;

/// The slot of a key: of its hash tag if it has one, otherwise of the whole key.
pub(crate) fn slot(key: &[u8]) -> u16 {
    crc16(tag(key)) % SLOTS as u16
}

/// The text between the first `{` and the next `}`, or the whole key if that text is empty or missing.
fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else {
        return key;
    };
    let rest = &key[open + 1..];
    match rest.iter().position(|&byte| byte == b'}') {
        Some(length) if length > 0 => &rest[..length],
        _ => key,
    }
}

/// CRC16 as clusters use it (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0_u16, |crc, &byte| {
        (0..8).fold(
            crc ^ (u16::from(byte) << 8),
            |crc, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        let table: [(&str, u16); 6] = [
            ("123456789", 0x31c3),
            ("foo", 12_182),
            ("{foo}.bar", 12_182),
            ("ff:{foo}:bar{x}", 12_182),
            ("{}foo", 9_500),
            ("", 0),
        ];
        for (key, expected) in table {
            assert_eq!(slot(key.as_bytes()), expected, "{key:?}");
        }
    }
}
