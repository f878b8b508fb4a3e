//! What the engine supplies to a schedule: the next times of its calendar, and what it has missed.

use ff_script::generated::MissedTimes;

use super::calendar::Calendar;

/// Times of one supply.
const PLANNED_MAX: usize = ff_core::limits::SCHEDULE_PLANNED_MAX as usize;
/// Times further away than this are supplied one at a time.
const AHEAD_MS: i64 = 3_600_000;
/// Missed times that are counted in one go.
const COUNTED_MAX: i64 = 200_000;

/// Times that follow one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// What came too long ago.
    pub missed: Option<MissedTimes>,
    /// The times behind it.
    pub times: Vec<i64>,
    /// All of them up to here are among `times`; nothing when there are no others at all.
    pub reckoned: Option<i64>,
}

/// What a schedule gets whose times up to `cursor` are decided: what has come before `too_late` is only counted, then
/// always the next time, and those of the next hour.
pub(crate) fn plan(calendar: &Calendar, cursor: i64, too_late: i64, now_ms: i64) -> Planned {
    let missed = missed(calendar, cursor, too_late);
    let from = missed.as_ref().map_or(cursor, |missed| missed.to);
    let (mut times, mut reckoned) = (Vec::new(), None);
    let mut after = from;
    while let Some(next) = calendar.next_supplied(after) {
        if times.len() == PLANNED_MAX || (!times.is_empty() && next > from.max(now_ms) + AHEAD_MS) {
            reckoned = Some(after);
            break;
        }
        times.push(next);
        after = next;
    }
    Planned { missed, times, reckoned }
}

fn missed(calendar: &Calendar, cursor: i64, too_late: i64) -> Option<MissedTimes> {
    let first = calendar.next(cursor).filter(|first| *first <= too_late)?;
    let Counted { count, last, whole } = count_between(calendar, cursor, too_late, COUNTED_MAX);
    Some(MissedTimes { count, first, last, to: if whole { too_late } else { last } })
}

/// How many times lie between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// So many, or the most that were to be counted.
    pub count: i64,
    /// The last one that was counted.
    pub last: i64,
    /// All of them were counted.
    pub whole: bool,
}

/// Counts the times after one and up to another, at most so many.
pub(crate) fn count_between(calendar: &Calendar, after: i64, to: i64, most: i64) -> Counted {
    let mut counted = Counted { count: 0, last: after, whole: true };
    while let Some(next) = calendar.next(counted.last).filter(|next| *next <= to) {
        if counted.count == most {
            counted.whole = false;
            break;
        }
        counted.count += 1;
        counted.last = next;
    }
    counted
}

/// The next times of a backfill, and up to where these are all.
pub(crate) fn backfill_of(calendar: &Calendar, after: i64, to: i64) -> (Vec<i64>, i64) {
    let mut times = Vec::new();
    while let Some(next) = calendar.next(times.last().copied().unwrap_or(after)).filter(|next| *next <= to) {
        if times.len() == PLANNED_MAX {
            return (times.clone(), times[PLANNED_MAX - 1]);
        }
        times.push(next);
    }
    (times, to)
}

#[cfg(test)]
mod tests {
    use super::super::calendar::When;
    use super::*;
    use jiff::tz::TimeZone;

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;

    fn calendar(cron: &str) -> Calendar {
        let times = vec![When::Cron(cron.parse().unwrap())];
        Calendar { times, zone: TimeZone::UTC, starts_at: None, ends_at: None }
    }

    #[test]
    fn always_the_next_time_is_supplied_and_those_of_an_hour_up_to_a_bound() {
        let daily = plan(&calendar("@daily"), 5, -1, 5);
        assert_eq!(daily, Planned { missed: None, times: vec![DAY], reckoned: Some(DAY) });
        let quarterly = plan(&calendar("*/15 * * * *"), 0, -1, 0);
        let quarters: Vec<i64> = (1..=4).map(|n| n * 15 * MINUTE).collect();
        assert_eq!(quarterly, Planned { missed: None, times: quarters, reckoned: Some(HOUR) });
        let each = plan(&calendar("* * * * * *"), 0, -1, 0);
        assert_eq!((each.times.len(), each.reckoned), (64, Some(64_000)));
        let mut once = calendar("@daily");
        once.times = vec![When::At(3 * DAY)];
        assert_eq!(plan(&once, 0, -1, 0), Planned { missed: None, times: vec![3 * DAY], reckoned: None });
        assert_eq!(plan(&once, 3 * DAY, -1, 0), Planned { missed: None, times: vec![], reckoned: None });
    }

    #[test]
    fn what_was_missed_is_counted_once_and_the_rest_goes_on_behind_it() {
        let hourly = calendar("0 * * * *");
        let planned = plan(&hourly, 0, DAY + MINUTE, DAY + 2 * MINUTE);
        assert_eq!(planned.missed, Some(MissedTimes { count: 24, first: HOUR, last: DAY, to: DAY + MINUTE }));
        assert_eq!(planned.times, [25 * HOUR]);
        // More than is counted in one go.
        let each = calendar("* * * * * *");
        let planned = plan(&each, 0, 10 * DAY, 10 * DAY);
        let to = COUNTED_MAX * 1_000;
        assert_eq!(planned.missed, Some(MissedTimes { count: COUNTED_MAX, first: 1_000, last: to, to }));
    }

    #[test]
    fn a_backfill_goes_on_where_its_last_piece_ended() {
        let each = calendar("* * * * *");
        let (mut after, mut all) = (-1, Vec::new());
        let to = 1_000 * MINUTE - 1;
        while after < to {
            let (times, reckoned) = backfill_of(&each, after, to);
            all.extend(times);
            after = reckoned;
        }
        let whole: Vec<i64> = (0..1_000).map(|n| n * MINUTE).collect();
        assert_eq!(all, whole);
        assert_eq!(count_between(&each, -1, to, 10_000).count, 1_000);
    }
}
