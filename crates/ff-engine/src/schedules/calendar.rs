//! When a schedule's times come: moments of a time zone, one after the other.
//!
//! A local time that does not exist comes at the first moment after the gap. One that exists twice comes once, at the
//! first. Times of one schedule that meet are one.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp};

use super::cron::Cron;

/// A time of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// What a cron expression means in the schedule's zone.
    Cron(Cron),
    /// Every so many milliseconds, counted from the anchor.
    Every {
        /// The distance.
        every_ms: i64,
        /// One of the times.
        anchor_at: i64,
    },
    /// Once.
    At(i64),
}

/// The times of a schedule in its zone, from its start to its end.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// The times.
    pub times: Vec<When>,
    /// The zone of cron expressions.
    pub zone: TimeZone,
    /// Nothing comes before this time.
    pub starts_at: Option<i64>,
    /// Nothing comes after this time.
    pub ends_at: Option<i64>,
}

impl Calendar {
    /// The first time after this one; nothing when none is left.
    #[must_use]
    pub fn next(&self, after_ms: i64) -> Option<i64> {
        let after = after_ms.max(self.starts_at.map_or(i64::MIN, |start| start - 1));
        let next = self.times.iter().filter_map(|when| self.next_of(when, after)).min()?;
        self.ends_at.is_none_or(|end| next <= end).then_some(next)
    }

    /// The first time after this one that the store does not reckon by itself.
    #[must_use]
    pub fn next_supplied(&self, after_ms: i64) -> Option<i64> {
        let supplied = self.times.iter().filter(|when| !matches!(when, When::Every { .. })).cloned().collect();
        Self { times: supplied, ..self.clone() }.next(after_ms)
    }

    /// True when it has times that the store does not reckon by itself.
    #[must_use]
    pub fn is_supplied(&self) -> bool {
        self.times.iter().any(|when| !matches!(when, When::Every { .. }))
    }

    fn next_of(&self, when: &When, after: i64) -> Option<i64> {
        match when {
            When::At(at) => (*at > after).then_some(*at),
            When::Every { every_ms, anchor_at } => {
                Some(anchor_at + ((after - anchor_at).div_euclid(*every_ms) + 1) * every_ms)
            }
            When::Cron(cron) => next_of_cron(cron, &self.zone, after),
        }
    }
}

fn next_of_cron(cron: &Cron, zone: &TimeZone, after_ms: i64) -> Option<i64> {
    let after = Timestamp::from_millisecond(after_ms).ok()?;
    // Before a gap ends, the clocks show a time before it: what lies in the gap is still to come.
    let mut from = zone.to_datetime(after);
    loop {
        let local = cron.next_from(from)?;
        let at = moment(zone, local)?;
        if at > after {
            return Some(at.as_millisecond());
        }
        from = local.checked_add(Span::new().seconds(1)).ok()?;
    }
}

/// When a local time comes.
fn moment(zone: &TimeZone, local: DateTime) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(local).ok()
        }
        AmbiguousOffset::Gap { before, .. } => {
            // With the offset of before, it lies at the end of the gap or behind it: the end is the transition before.
            let behind = before.to_timestamp(local).ok()?;
            let ends = zone.preceding(behind.checked_add(Span::new().nanoseconds(1)).ok()?).next()?;
            Some(ends.timestamp())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE_MS: i64 = 60_000;
    const HOUR_MS: i64 = 60 * MINUTE_MS;

    fn calendar(cron: &str, zone: &str) -> Calendar {
        let zone = TimeZone::get(zone).expect("a zone");
        Calendar { times: vec![When::Cron(cron.parse().expect(cron))], zone, starts_at: None, ends_at: None }
    }

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().expect(text).as_millisecond()
    }

    #[test]
    fn clocks_that_change_move_and_repeat_nothing() {
        for (cron, zone, after, times) in [
            // 02:30 does not exist: it comes at 03:00, the first moment after the gap.
            (
                "30 2 * * *",
                "Europe/Berlin",
                "2026-03-28T00:00:00Z",
                &["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"][..],
            ),
            // 02:30 exists twice: it comes at the first.
            ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
            // Every time of the gap comes at its end, and is one.
            (
                "*/20 * * * *",
                "America/New_York",
                "2026-03-08T06:40:00Z",
                &["2026-03-08T07:00:00Z", "2026-03-08T07:20:00Z"],
            ),
            // The second time an hour passes, nothing comes.
            (
                "*/30 * * * *",
                "America/New_York",
                "2026-11-01T05:00:00Z",
                &["2026-11-01T05:30:00Z", "2026-11-01T07:00:00Z"],
            ),
            // Half an hour is skipped.
            ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", &["2026-10-03T15:30:00Z"]),
            // A midnight that does not exist.
            ("@daily", "Asia/Beirut", "2026-03-28T12:00:00Z", &["2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"]),
            // A day that was skipped whole.
            ("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", &["2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"]),
        ] {
            let calendar = calendar(cron, zone);
            let mut next = ms(after);
            for time in times {
                next = calendar.next(next).expect("there is a next one");
                assert_eq!(next, ms(time), "{cron} in {zone}: {}", Timestamp::from_millisecond(next).unwrap());
            }
        }
    }

    #[test]
    fn times_begin_and_end_and_those_that_meet_are_one() {
        let mut all = calendar("0 * * * *", "UTC");
        all.times.push(When::Every { every_ms: 30 * MINUTE_MS, anchor_at: 0 });
        all.times.push(When::At(90 * MINUTE_MS));
        (all.starts_at, all.ends_at) = (Some(HOUR_MS), Some(2 * HOUR_MS));
        let mut times = Vec::new();
        while let Some(next) = all.next(times.last().copied().unwrap_or(-1)) {
            times.push(next);
        }
        assert_eq!(times, [HOUR_MS, 90 * MINUTE_MS, 2 * HOUR_MS]);
        assert_eq!(all.next_supplied(HOUR_MS), Some(90 * MINUTE_MS));
    }

    /// The local times of the minutes between two moments, and the latest there was before.
    fn minutes(zone: &TimeZone, from: i64, to: i64) -> (DateTime, Vec<(i64, DateTime)>) {
        let local = |at: i64| zone.to_datetime(Timestamp::from_millisecond(at).unwrap());
        let latest = (0..=8).map(|n| local(from - n * HOUR_MS / 2)).max().unwrap();
        let each = (from + MINUTE_MS..=to).step_by(usize::try_from(MINUTE_MS).unwrap());
        (latest, each.map(|at| (at, local(at))).collect())
    }

    /// When the expression comes, minute by minute.
    fn walked(cron: &Cron, (latest, minutes): &(DateTime, Vec<(i64, DateTime)>)) -> Vec<i64> {
        let (mut latest, mut found) = (*latest, Vec::new());
        for (at, here) in minutes {
            let mut due = false;
            // Whatever lies between is passed now: one minute, or those of a gap. In the second pass it is nothing.
            while latest < *here {
                latest = latest.checked_add(Span::new().minutes(1)).unwrap();
                due |= cron.matches(latest);
            }
            if due {
                found.push(*at);
            }
        }
        found
    }

    fn listed(calendar: &Calendar, from: i64, to: i64) -> Vec<i64> {
        let mut found = Vec::new();
        let mut at = from;
        while let Some(next) = calendar.next(at).filter(|next| *next <= to) {
            found.push(next);
            at = next;
        }
        found
    }

    /// Zones of both hemispheres, with clocks that change by an hour, by half an hour, at midnight, or not at all.
    const ZONES: [&str; 10] = [
        "Europe/Berlin",
        "Europe/Dublin",
        "America/New_York",
        "America/St_Johns",
        "America/Santiago",
        "America/Asuncion",
        "Australia/Lord_Howe",
        "Pacific/Auckland",
        "Africa/Casablanca",
        "Asia/Tokyo",
    ];

    #[test]
    fn every_change_of_the_clocks_in_ten_zones_is_as_a_walk_by_minutes_says() {
        let (from, to) = (ms("2018-01-01T00:00:00Z"), ms("2034-01-01T00:00:00Z"));
        for name in ZONES {
            let zone = TimeZone::get(name).expect("a zone");
            let start = Timestamp::from_millisecond(from).unwrap();
            let changes: Vec<i64> = zone
                .following(start)
                .map(|change| change.timestamp().as_millisecond())
                .take_while(|at| *at < to)
                .collect();
            assert!(name == "Asia/Tokyo" || !changes.is_empty(), "the clocks of {name} change");
            for change in changes {
                let (before, after) = (change - 14 * HOUR_MS, change + 14 * HOUR_MS);
                let minutes = minutes(&zone, before, after);
                for cron in ["*/15 * * * *", "30 2 * * *", "0 0 * * *", "10 1-3 * * *", "59 23 L * *"] {
                    let calendar = calendar(cron, name);
                    let When::Cron(parsed) = &calendar.times[0] else { unreachable!("it is a cron") };
                    let walked = walked(parsed, &minutes);
                    assert_eq!(listed(&calendar, before, after), walked, "{cron} in {name} around {change}");
                }
            }
        }
    }

    fn field(max: u32) -> impl Strategy<Value = String> {
        prop_oneof![
            Just("*".to_owned()),
            (2..=max).prop_map(|step| format!("*/{step}")),
            (1..=max, 0..=max).prop_map(|(a, b)| format!("{}-{}", a.min(b).max(1), a.max(b).max(1))),
            proptest::collection::vec(1..=max, 1..4).prop_map(|all| all
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(",")),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_comes_next_is_what_a_walk_by_minutes_finds(
            minute in field(59), hour in field(23), day in field(28), month in field(12), weekday in field(6),
            zone in proptest::sample::select(&ZONES[..]),
            start in 1_420_070_400_000_i64..2_000_000_000_000,
        ) {
            let cron = format!("{minute} {hour} {day} {month} {weekday}");
            let calendar = calendar(&cron, zone);
            let When::Cron(parsed) = &calendar.times[0] else { unreachable!("it is a cron") };
            let from = start - start.rem_euclid(MINUTE_MS);
            let to = from + 3 * 24 * HOUR_MS;
            prop_assert_eq!(listed(&calendar, from, to), walked(parsed, &minutes(&calendar.zone, from, to)), "{} in {}", cron, zone);
        }
    }
}
