//! When the period of a budget ends.

use ff_script::generated::{BudgetReset, ResetType};
use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::vocabulary;

/// When the period of a budget ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BudgetReset))]
#[serde(untagged, expecting = "it must be none, {interval_ms}, or {calendar, zone} with the calendar day or month")]
pub enum Reset {
    /// After so many milliseconds.
    Interval(IntervalReset),
    /// With the day or month of a time zone.
    Calendar(CalendarReset),
    /// Never.
    Word(NoReset),
}

/// A period that lasts so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct IntervalReset {
    /// How long a period is.
    #[cfg_attr(feature = "openapi", schema(minimum = 1_000, maximum = 315_360_000_000_i64))]
    pub interval_ms: i64,
}

/// A period that is a day or a month of a time zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CalendarReset {
    /// How long a period is.
    pub calendar: CalendarUnit,
    /// The time zone by its IANA name; the default is UTC.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Zone>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// How long a period of the calendar is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum CalendarUnit {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the first of the next.
    Month,
}

/// A budget that is never reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum NoReset {
    /// Its period does not end.
    None,
}

impl Reset {
    /// The period does not end.
    pub const NEVER: Self = Self::Word(NoReset::None);
}

impl From<Reset> for BudgetReset {
    fn from(reset: Reset) -> Self {
        match reset {
            Reset::Interval(IntervalReset { interval_ms }) => {
                Self { interval_ms: Some(interval_ms), ..Self::new(ResetType::Interval) }
            }
            Reset::Calendar(CalendarReset { calendar, zone }) => {
                let unit = match calendar {
                    CalendarUnit::Day => ResetType::Day,
                    CalendarUnit::Month => ResetType::Month,
                };
                Self { zone, ..Self::new(unit) }
            }
            Reset::Word(NoReset::None) => Self::new(ResetType::None),
        }
    }
}

impl From<BudgetReset> for Reset {
    fn from(reset: BudgetReset) -> Self {
        let calendar = |calendar| Self::Calendar(CalendarReset { calendar, zone: reset.zone.clone() });
        match (reset.r#type, reset.interval_ms) {
            (ResetType::Interval, Some(interval_ms)) => Self::Interval(IntervalReset { interval_ms }),
            (ResetType::Day, _) => calendar(CalendarUnit::Day),
            (ResetType::Month, _) => calendar(CalendarUnit::Month),
            (ResetType::None, _) => Self::NEVER,
            (ResetType::Interval, None) => panic!("the library keeps no interval without its length"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_is_read_as_it_is_written_and_kept() {
        for text in
            [r#""none""#, r#"{"interval_ms":1000}"#, r#"{"calendar":"day","zone":"UTC"}"#, r#"{"calendar":"month"}"#]
        {
            let reset: Reset = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&reset).unwrap(), text);
            assert_eq!(Reset::from(BudgetReset::from(reset.clone())), reset);
        }
        for text in [r#""sometimes""#, r#"{"calendar":"week"}"#, r#"{"interval_ms":1,"zone":"UTC"}"#] {
            assert!(serde_json::from_str::<Reset>(text).is_err(), "{text}");
        }
    }
}
