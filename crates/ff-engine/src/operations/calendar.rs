//! When the day or month of a time zone ends: the store knows milliseconds, calendars are ours.

use ff_script::generated::{BudgetReset, ResetType};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// A time zone nobody knows, or a time no calendar has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadZone(String);

/// The end of the calendar period that `now_ms` is in; nothing for a reset that does not follow a calendar.
///
/// A period ends with the first moment of the next day or month in the zone (UTC unless one is named), whatever the clocks
/// do that night.
pub fn next_reset(reset: &BudgetReset, now_ms: i64) -> Result<Option<i64>, BadZone> {
    let step = match reset.r#type {
        ResetType::None | ResetType::Interval => return Ok(None),
        ResetType::Day => Span::new().days(1),
        ResetType::Month => Span::new().months(1),
    };
    let zone = reset.zone.as_deref().unwrap_or("UTC");
    let zone = TimeZone::get(zone).map_err(|_| BadZone(format!("unknown time zone {zone:?}")))?;
    let out_of_range = |error: jiff::Error| BadZone(error.to_string());
    let today = Timestamp::from_millisecond(now_ms).map_err(out_of_range)?.to_zoned(zone.clone()).date();
    let first = if reset.r#type == ResetType::Month { today.first_of_month() } else { today };
    let next: Zoned = first.checked_add(step).and_then(|date| date.to_zoned(zone)).map_err(out_of_range)?;
    Ok(Some(next.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().expect("a time").as_millisecond()
    }

    #[test]
    fn a_period_ends_with_the_day_or_month_of_its_zone() {
        for (kind, zone, now, next) in [
            (ResetType::Day, None, "2026-03-28T12:00:00Z", "2026-03-29T00:00:00Z"),
            (ResetType::Day, None, "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"),
            // The night the clocks go forward, and the one they go back.
            (ResetType::Day, Some("Europe/Berlin"), "2026-03-28T12:00:00Z", "2026-03-28T23:00:00Z"),
            (ResetType::Day, Some("Europe/Berlin"), "2026-03-29T12:00:00Z", "2026-03-29T22:00:00Z"),
            (ResetType::Day, Some("Europe/Berlin"), "2026-10-25T12:00:00Z", "2026-10-25T23:00:00Z"),
            // A day whose midnight does not exist begins at one.
            (ResetType::Day, Some("Asia/Beirut"), "2026-03-28T12:00:00Z", "2026-03-28T22:00:00Z"),
            (ResetType::Day, Some("Asia/Tokyo"), "2026-01-01T16:00:00Z", "2026-01-02T15:00:00Z"),
            (ResetType::Month, None, "2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z"),
            (ResetType::Month, Some("America/New_York"), "2026-03-01T04:59:59Z", "2026-03-01T05:00:00Z"),
            (ResetType::Month, Some("America/New_York"), "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z"),
            (ResetType::Month, None, "2026-12-05T00:00:00Z", "2027-01-01T00:00:00Z"),
        ] {
            let reset = BudgetReset { r#type: kind, interval_ms: None, zone: zone.map(str::to_owned) };
            assert_eq!(next_reset(&reset, ms(now)), Ok(Some(ms(next))), "{kind:?} in {zone:?} at {now}");
        }
    }

    #[test]
    fn a_zone_nobody_knows_is_refused_by_name() {
        let reset = BudgetReset { r#type: ResetType::Day, interval_ms: None, zone: Some("Mars/Olympus".to_owned()) };
        assert_eq!(next_reset(&reset, 0).unwrap_err().to_string(), "unknown time zone \"Mars/Olympus\"");
    }
}
