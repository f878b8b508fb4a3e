//! Times and durations, as people write and read them.

use std::time::SystemTime;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp, Unit};

/// A duration of the command line, in milliseconds: `500ms`, `5m`, `1h30m`, `7d`.
pub fn duration(text: &str) -> Result<i64, String> {
    if !text.is_empty() && text != "0" && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{text} has no unit; say {text}s, {text}m, {text}h, {text}d or {text}ms"));
    }
    let wrong = || format!("{text:?} is not a duration; it looks like 30s, 5m, 1h30m, 7d or 500ms");
    let span: Span = if text == "0" { Span::new() } else { text.parse().map_err(|_| wrong())? };
    let ms = span.total((Unit::Millisecond, SpanRelativeTo::days_are_24_hours())).map_err(|_| wrong())?;
    if ms < 0.0 {
        return Err(wrong());
    }
    Ok(ms.round() as i64)
}

/// A time of the command line, in epoch milliseconds: `2026-11-20T09:00` in this machine's time zone, `2026-11-20T08:00Z`, or
/// milliseconds since 1970.
pub fn time(text: &str) -> Result<i64, String> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    let here = text.parse::<DateTime>().ok().and_then(|time| time.to_zoned(TimeZone::system()).ok());
    here.map(|time| time.timestamp().as_millisecond()).ok_or_else(|| {
        format!("{text:?} is not a time; it looks like 2026-11-20T09:00, 2026-11-20T08:00Z or 2026-11-20")
    })
}

/// A time, or how long ago it was: `1h`.
pub fn since(text: &str) -> Result<i64, String> {
    match duration(text) {
        Ok(ago) => Ok(now_ms().saturating_sub(ago)),
        Err(wrong) => time(text)
            .map_err(|_| wrong.replace("is not a duration; it", "is neither a duration nor a time; a duration")),
    }
}

/// Epoch milliseconds as a UTC time.
pub fn moment(ms: i64) -> String {
    match Timestamp::from_millisecond(ms) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string(),
        Err(_) => ms.to_string(),
    }
}

/// Now, in epoch milliseconds.
pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_millis());
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// An age in its largest unit.
pub fn span(ms: Option<i64>) -> String {
    let Some(seconds) = ms.map(|ms| ms.max(0) / 1_000) else { return "-".to_owned() };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A duration in all its units, as [`duration`] reads it: `1h30m`.
pub fn length(ms: i64) -> String {
    let (mut left, mut text) = (ms.max(0), String::new());
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if left >= size {
            text.push_str(&format!("{}{unit}", left / size));
            left %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_as_people_write_it() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("0", 0),
            ("1h 30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("2 hours", 7_200_000),
        ] {
            assert_eq!(duration(text), Ok(ms), "{text}");
        }
        assert!(duration("5").is_err_and(|error| error.contains("5 has no unit; say 5s")));
        for text in ["", "soon", "-5m", "5x"] {
            assert!(duration(text).is_err_and(|error| error.contains("1h30m")), "{text}");
        }
    }

    #[test]
    fn a_length_is_read_as_it_is_written() {
        for (ms, text) in [(0, "0s"), (1, "1ms"), (1_500, "1s500ms"), (5_400_000, "1h30m"), (604_800_000, "7d")] {
            assert_eq!(length(ms), text);
            assert_eq!(duration(text), Ok(ms));
        }
    }

    #[test]
    fn a_time_has_a_zone_or_is_of_this_machine() {
        assert_eq!(time("2026-11-20T09:00Z"), Ok(1_795_165_200_000));
        assert_eq!(time("2026-11-20T10:00+01:00"), Ok(1_795_165_200_000));
        assert_eq!(time("1795165200000"), Ok(1_795_165_200_000));
        for text in ["2026-11-20T09:00", "2026-11-20 09:00", "2026-11-20T09:00:00.250", "2026-11-20"] {
            assert!(time(text).is_ok(), "{text}");
        }
        for text in ["tomorrow", "2026-13-01", "09:00"] {
            assert!(time(text).is_err_and(|error| error.contains("2026-11-20T09:00")), "{text}");
        }
        let hour = now_ms() - since("1h").expect("an hour ago");
        assert!((3_600_000..3_660_000).contains(&hour), "{hour}");
        assert_eq!(since("2026-11-20T09:00Z"), Ok(1_795_165_200_000));
    }

    #[test]
    fn a_span_is_short() {
        for (ms, shown) in
            [(0, "0s"), (-5, "0s"), (119_999, "119s"), (120_000, "2m"), (7_200_000, "2h"), (172_800_000, "2d")]
        {
            assert_eq!(span(Some(ms)), shown);
        }
        assert_eq!(span(None), "-");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(moment(0), "1970-01-01 00:00:00.000");
        assert_eq!(moment(1_709_251_199_999), "2024-02-29 23:59:59.999");
        assert_eq!(moment(1_794_781_129_219), "2026-11-15 22:18:49.219");
    }
}
