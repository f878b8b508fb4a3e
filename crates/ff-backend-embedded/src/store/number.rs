//! Numbers in the form in which Valkey prints and reads them.

/// A double as Valkey prints it: integers in full, others with the fewest digits that read back exactly.
pub(crate) fn format_double(d: f64) -> String {
    if d.is_nan() {
        return "nan".to_owned();
    }
    if d.is_infinite() {
        return if d > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // Half of the range, as in Valkey, so that the cast is exact.
    if d.abs() <= (i64::MAX / 2) as f64 && d.trunc() == d {
        return (d as i64).to_string();
    }
    let scientific = format!("{:e}", d.abs());
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let count = digits.len() as i32;
    let k = exponent - (count - 1);
    let mut out = String::new();
    if d < 0.0 {
        out.push('-');
    }
    if k >= 0 && exponent.abs() < count + 7 {
        out.push_str(&digits);
        out.extend(std::iter::repeat_n('0', k as usize));
    } else if k < 0 && (k > -7 || exponent.abs() < 4) {
        let point = count + k;
        if point <= 0 {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', -point as usize));
            out.push_str(&digits);
        } else {
            out.push_str(&digits[..point as usize]);
            out.push('.');
            out.push_str(&digits[point as usize..]);
        }
    } else {
        out.push_str(&digits[..1]);
        if count > 1 {
            out.push('.');
            out.push_str(&digits[1..]);
        }
        out.push('e');
        out.push(if exponent < 0 { '-' } else { '+' });
        out.push_str(&exponent.abs().to_string());
    }
    out
}

/// A score; `None` for anything that is not a number, NaN included.
pub(crate) fn parse_double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let d: f64 = text.parse().ok()?;
    (!d.is_nan()).then_some(d)
}

pub(crate) fn parse_integer(text: &[u8]) -> Option<i64> {
    if text.first() == Some(&b'+') {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_valkey_prints_them() {
        for (d, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (-17.0, "-17"),
            (1.7e12, "1700000000000"),
            (9007199254740992.0, "9007199254740992"),
            (-8999999999999999.0, "-8999999999999999"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1234.5678, "1234.5678"),
            (0.000001, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-9, "1.5e-9"),
            (1e300, "1e+300"),
            (1.25e25, "1.25e+25"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(format_double(d), text);
            assert_eq!(parse_double(text.as_bytes()), Some(d));
        }
        assert_eq!(parse_double(b"nan"), None);
        assert_eq!(parse_double(b""), None);
        assert_eq!(parse_double(b" 1"), None);
    }
}
