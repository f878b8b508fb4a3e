//! Cron expressions: five fields, or six with seconds first, with ranges, lists, steps, names, `L` and `@daily`.
//!
//! An expression says which local times it means; what these are in a time zone is decided in `calendar.rs`.
//!
//! As in the cron of Unix, a day matches when its day of the month or its day of the week does, if both are restricted.
//! A field that begins with `*` restricts nothing: then the other one decides.

use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, civil};

/// Days that are looked at for the next time: the 29th of February comes within eight years.
const DAYS_MAX: usize = 366 * 8 + 2;

/// An expression that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadCron(String);

/// A cron expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    seconds: u64,
    minutes: u64,
    hours: u64,
    months: u64,
    days: Days,
    weekdays: Weekdays,
}

/// Days of the month: by number, and counted from the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Days {
    numbers: u64,
    from_last: u64,
    open: bool,
}

/// Days of the week, Sunday is 0: every one, the last one of a month, and the first to the fifth one of a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Weekdays {
    every: u64,
    last: u64,
    nth: [u64; 5],
    open: bool,
}

/// One field of an expression.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    /// Names of values, the first one for `min`.
    names: &'static [&'static str],
}

const SECOND: Field = Field { name: "second", min: 0, max: 59, names: &[] };
const MINUTE: Field = Field { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: Field = Field { name: "hour", min: 0, max: 23, names: &[] };
const DAY: Field = Field { name: "day of the month", min: 1, max: 31, names: &[] };
const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const MONTH: Field = Field { name: "month", min: 1, max: 12, names: MONTHS };
/// 7 is Sunday, as 0.
const WEEKDAY: Field =
    Field { name: "day of the week", min: 0, max: 7, names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"] };

/// Days of the longest February to the longest December.
const LONGEST: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

impl Field {
    fn wrong(&self, problem: impl std::fmt::Display) -> BadCron {
        BadCron(format!("the {} {problem}", self.name))
    }

    fn value(&self, text: &str) -> Result<u32, BadCron> {
        if let Some(at) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.min + u32::try_from(at).expect("there are few names"));
        }
        let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse::<u32>().ok()).flatten();
        let number = number.ok_or_else(|| self.wrong(format_args!("cannot be {text:?}")))?;
        if (self.min..=self.max).contains(&number) {
            return Ok(number);
        }
        Err(self.wrong(format_args!("must be in {}..={}, got {number}", self.min, self.max)))
    }

    /// One item of a list: `*`, `5`, `1-5`, each with `/n` behind it.
    fn item(&self, text: &str) -> Result<u64, BadCron> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (text, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.min, self.max),
            Some((from, to)) => {
                let (from, to) = (self.value(from)?, self.value(to)?);
                // Sunday ends a week as well as it begins one.
                if self.max == 7 && to == 0 && from > 0 { (from, 7) } else { (from, to) }
            }
            None => {
                let from = self.value(range)?;
                (from, if step.is_some() { self.max } else { from })
            }
        };
        if from > to {
            return Err(self.wrong(format_args!("has a range that ends before it begins: {range}")));
        }
        let step = match step {
            None => 1,
            Some(step) => {
                let number = step.parse::<u32>().ok().filter(|n| (1..=self.max).contains(n) && step.len() <= 4);
                number.ok_or_else(|| self.wrong(format_args!("must have a step in 1..={}, got {step:?}", self.max)))?
            }
        };
        Ok((from..=to).step_by(step as usize).fold(0, |mask, n| mask | 1 << n))
    }

    fn list(&self, text: &str) -> Result<u64, BadCron> {
        self.items(text)?.try_fold(0, |mask, item| Ok(mask | self.item(item)?))
    }

    fn items<'a>(&self, text: &'a str) -> Result<impl Iterator<Item = &'a str>, BadCron> {
        if text.split(',').any(str::is_empty) {
            return Err(self.wrong(format_args!("has an empty item: {text:?}")));
        }
        Ok(text.split(','))
    }
}

impl Days {
    fn read(text: &str) -> Result<Self, BadCron> {
        if text == "?" {
            return Self::read("*");
        }
        let mut days = Self { open: text.starts_with('*'), ..Self::default() };
        for item in DAY.items(text)? {
            match item.strip_prefix(['L', 'l']) {
                Some("") => days.from_last |= 1,
                Some(rest) => {
                    let back = rest.strip_prefix('-').and_then(|n| n.parse::<u32>().ok()).filter(|n| *n <= 30);
                    days.from_last |= 1 << back.ok_or_else(|| DAY.wrong(format_args!("cannot be {item:?}")))?;
                }
                None => days.numbers |= DAY.item(item)?,
            }
        }
        Ok(days)
    }

    fn has(&self, date: Date) -> bool {
        let day = u32::from(date.day().unsigned_abs());
        let back = u32::from(date.days_in_month().unsigned_abs()) - day;
        bit(self.numbers, day) || bit(self.from_last, back)
    }

    /// True when a month of this length has such a day.
    fn fits(&self, length: u32) -> bool {
        (1..=length).any(|day| bit(self.numbers, day) || bit(self.from_last, length - day))
    }
}

impl Weekdays {
    fn read(text: &str) -> Result<Self, BadCron> {
        if text == "?" {
            return Self::read("*");
        }
        let mut days = Self { open: text.starts_with('*'), ..Self::default() };
        let day = |text: &str| WEEKDAY.value(text).map(|day| 1_u64 << (day % 7));
        for item in WEEKDAY.items(text)? {
            if let Some((name, n)) = item.split_once('#') {
                let n = n.parse::<usize>().ok().filter(|n| (1..=5).contains(n));
                let n = n.ok_or_else(|| WEEKDAY.wrong(format_args!("must have #1 to #5, got {item:?}")))?;
                days.nth[n - 1] |= day(name)?;
            } else if item.eq_ignore_ascii_case("L") {
                // The last day of a week.
                days.every |= 1 << 6;
            } else if let Some(name) = item.strip_suffix(['L', 'l']) {
                days.last |= day(name)?;
            } else {
                let mask = WEEKDAY.item(item)?;
                days.every |= (mask | mask >> 7) & 0x7f;
            }
        }
        Ok(days)
    }

    fn has(&self, date: Date) -> bool {
        let weekday = u32::from(date.weekday().to_sunday_zero_offset().unsigned_abs());
        let before = usize::from(date.day().unsigned_abs() - 1) / 7;
        let last = date.day() + 7 > date.days_in_month();
        bit(self.every, weekday) || bit(self.nth[before], weekday) || (last && bit(self.last, weekday))
    }
}

fn bit(mask: u64, n: u32) -> bool {
    mask >> n & 1 == 1
}

/// The first bit that is set, from this one on.
fn next_bit(mask: u64, from: u32) -> Option<u32> {
    let rest = mask.checked_shr(from).unwrap_or(0);
    (rest != 0).then(|| from + rest.trailing_zeros())
}

impl FromStr for Cron {
    type Err = BadCron;

    fn from_str(text: &str) -> Result<Self, BadCron> {
        let text = match text.trim() {
            macro_name if macro_name.starts_with('@') => expanded(macro_name)?,
            text => text,
        };
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let (second, rest) = match fields.len() {
            5 => ("0", &fields[..]),
            6 => (fields[0], &fields[1..]),
            n => return Err(BadCron(format!("must have 5 fields, or 6 with seconds first, got {n}"))),
        };
        let cron = Self {
            seconds: SECOND.list(second)?,
            minutes: MINUTE.list(rest[0])?,
            hours: HOUR.list(rest[1])?,
            days: Days::read(rest[2])?,
            months: MONTH.list(rest[3])?,
            weekdays: Weekdays::read(rest[4])?,
        };
        cron.comes(rest[2])?;
        Ok(cron)
    }
}

fn expanded(name: &str) -> Result<&'static str, BadCron> {
    Ok(match name {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let known = "@yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly";
            return Err(BadCron(format!("{name:?} is none of {known}")));
        }
    })
}

impl Cron {
    /// Refuses an expression that no date ever matches.
    fn comes(&self, days: &str) -> Result<(), BadCron> {
        // A restricted day of the week comes whatever the day of the month says.
        if !self.weekdays.open && !self.days.open {
            return Ok(());
        }
        let fits = (1..=12).any(|month| bit(self.months, month) && self.days.fits(LONGEST[month as usize - 1]));
        if fits { Ok(()) } else { Err(DAY.wrong(format_args!("{days} never comes in these months"))) }
    }

    fn day(&self, date: Date) -> bool {
        if self.days.open || self.weekdays.open {
            return self.days.has(date) && self.weekdays.has(date);
        }
        self.days.has(date) || self.weekdays.has(date)
    }

    /// True when it means this local time.
    #[must_use]
    pub fn matches(&self, at: DateTime) -> bool {
        let of = |n: i8| u32::from(n.unsigned_abs());
        at.subsec_nanosecond() == 0
            && bit(self.seconds, of(at.second()))
            && bit(self.minutes, of(at.minute()))
            && bit(self.hours, of(at.hour()))
            && bit(self.months, of(at.month()))
            && self.day(at.date())
    }

    /// The first local time it means that is not before this one; nothing when the calendar ends before.
    #[must_use]
    pub fn next_from(&self, from: DateTime) -> Option<DateTime> {
        let mut from = from;
        if from.subsec_nanosecond() != 0 {
            from = from.with().subsec_nanosecond(0).build().ok()?.checked_add(Span::new().seconds(1)).ok()?;
        }
        let (mut date, mut time) = (from.date(), Some(from.time()));
        for _ in 0..DAYS_MAX {
            let month = u32::from(date.month().unsigned_abs());
            if !bit(self.months, month) {
                date = date.first_of_month().checked_add(Span::new().months(1)).ok()?;
                time = None;
                continue;
            }
            if self.day(date)
                && let Some(at) = self.time_from(time.unwrap_or(Time::midnight()))
            {
                return Some(date.to_datetime(at));
            }
            date = date.tomorrow().ok()?;
            time = None;
        }
        None
    }

    /// The first time of a day that is not before this one.
    fn time_from(&self, from: Time) -> Option<Time> {
        let of = |n: i8| u32::from(n.unsigned_abs());
        let (mut minute_from, mut second_from) = (of(from.minute()), of(from.second()));
        let mut hour = next_bit(self.hours, of(from.hour()));
        if hour != Some(of(from.hour())) {
            (minute_from, second_from) = (0, 0);
        }
        while let Some(h) = hour {
            let mut minute = next_bit(self.minutes, minute_from);
            if minute != Some(minute_from) {
                second_from = 0;
            }
            while let Some(m) = minute {
                if let Some(s) = next_bit(self.seconds, second_from) {
                    let of = |n: u32| i8::try_from(n).expect("it is below 60");
                    return Some(civil::time(of(h), of(m), of(s), 0));
                }
                second_from = 0;
                minute = next_bit(self.minutes, m + 1);
            }
            (minute_from, second_from) = (0, 0);
            hour = next_bit(self.hours, h + 1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime {
        text.parse().expect("a date and a time")
    }

    #[test]
    fn an_expression_means_these_times() {
        for (cron, from, times) in [
            ("*/15 * * * *", "2026-01-01T00:01", &["2026-01-01T00:15", "2026-01-01T00:30", "2026-01-01T00:45"][..]),
            ("5,10-12 0 * * *", "2026-01-01T00:06", &["2026-01-01T00:10", "2026-01-01T00:11", "2026-01-01T00:12"]),
            ("0 9 * * MON-FRI", "2026-01-02T10:00", &["2026-01-05T09:00", "2026-01-06T09:00"]),
            ("0 9 * * fri-sun", "2026-01-01T10:00", &["2026-01-02T09:00", "2026-01-03T09:00", "2026-01-04T09:00"]),
            ("0 0 * * 7", "2026-01-01T00:00", &["2026-01-04T00:00", "2026-01-11T00:00"]),
            ("0 0 L * *", "2026-01-01T00:00", &["2026-01-31T00:00", "2026-02-28T00:00", "2026-03-31T00:00"]),
            ("0 0 L-1 * ?", "2028-02-01T00:00", &["2028-02-28T00:00", "2028-03-30T00:00"]),
            ("0 0 ? * 5L", "2026-01-01T00:00", &["2026-01-30T00:00", "2026-02-27T00:00"]),
            ("0 0 * * MON#1", "2026-01-01T00:00", &["2026-01-05T00:00", "2026-02-02T00:00"]),
            ("0 0 * * 1#5", "2026-01-01T00:00", &["2026-03-30T00:00", "2026-06-29T00:00"]),
            // A day of the month or a day of the week, when both are restricted.
            ("0 0 13 * FRI", "2026-02-01T00:00", &["2026-02-06T00:00", "2026-02-13T00:00", "2026-02-20T00:00"]),
            // Both, when one of them begins with a star.
            ("0 0 */10 * FRI", "2026-01-01T00:00", &["2026-05-01T00:00", "2026-07-31T00:00"]),
            ("0 0 29 2 *", "2026-01-01T00:00", &["2028-02-29T00:00", "2032-02-29T00:00"]),
            ("0 0 29 2 *", "2096-03-01T00:00", &["2104-02-29T00:00"]),
            ("30 5 0 1 1 *", "2026-01-01T00:05:31", &["2027-01-01T00:05:30"]),
            ("*/20 * * * * *", "2026-12-31T23:59:21", &["2026-12-31T23:59:40", "2027-01-01T00:00:00"]),
            ("5/20 * * * *", "2026-01-01T00:00", &["2026-01-01T00:05", "2026-01-01T00:25", "2026-01-01T00:45"]),
            ("@hourly", "2026-01-01T00:00:01", &["2026-01-01T01:00"]),
            ("@daily", "2026-01-01T00:00", &["2026-01-01T00:00", "2026-01-02T00:00"]),
            ("@weekly", "2026-01-01T00:00", &["2026-01-04T00:00"]),
            ("@monthly", "2026-01-02T00:00", &["2026-02-01T00:00"]),
            ("@yearly", "2026-01-02T00:00", &["2027-01-01T00:00"]),
            ("0 12 1 feb,NOV *", "2026-01-02T00:00", &["2026-02-01T12:00", "2026-11-01T12:00"]),
        ] {
            let parsed: Cron = cron.parse().unwrap_or_else(|error| panic!("{cron}: {error}"));
            let mut next = at(from);
            for time in times {
                let found = parsed.next_from(next).unwrap();
                assert_eq!(found, at(time), "{cron} from {next}");
                assert!(parsed.matches(found), "{cron} at {found}");
                next = found.checked_add(Span::new().seconds(1)).unwrap();
            }
        }
    }

    #[test]
    fn what_cannot_be_read_says_which_field_is_wrong() {
        for (cron, problem) in [
            ("", "must have 5 fields, or 6 with seconds first, got 0"),
            ("* * * *", "must have 5 fields, or 6 with seconds first, got 4"),
            ("* * * * * * *", "must have 5 fields, or 6 with seconds first, got 7"),
            ("60 * * * *", "the minute must be in 0..=59, got 60"),
            ("* 24 * * *", "the hour must be in 0..=23, got 24"),
            ("* * 0 * *", "the day of the month must be in 1..=31, got 0"),
            ("* * * 13 *", "the month must be in 1..=12, got 13"),
            ("* * * * 8", "the day of the week must be in 0..=7, got 8"),
            ("* * * * MOON", "the day of the week cannot be \"MOON\""),
            ("*/0 * * * *", "the minute must have a step in 1..=59, got \"0\""),
            ("5-1 * * * *", "the minute has a range that ends before it begins: 5-1"),
            ("1,,2 * * * *", "the minute has an empty item: \"1,,2\""),
            ("* * L-31 * *", "the day of the month cannot be \"L-31\""),
            ("* * * * 1#6", "the day of the week must have #1 to #5, got \"1#6\""),
            ("-1 * * * *", "the minute cannot be \"\""),
            ("0 0 30 2 *", "the day of the month 30 never comes in these months"),
            ("0 0 31 4,6,9,11 *", "the day of the month 31 never comes in these months"),
            ("0 0 L-29 2 *", "the day of the month L-29 never comes in these months"),
            ("@reboot", "\"@reboot\" is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly"),
        ] {
            assert_eq!(cron.parse::<Cron>().unwrap_err().to_string(), problem, "{cron:?}");
        }
        // With a day of the week beside it, it comes.
        assert!("0 0 30 2 MON".parse::<Cron>().is_ok());
    }
}
