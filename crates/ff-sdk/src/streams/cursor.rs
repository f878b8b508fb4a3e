//! Places in a stream.

use std::fmt;
use std::str::FromStr;

/// A place in a stream: `start`, `end`, `<ms>` or `<ms>-<seq>`.
///
/// `<ms>-<seq>` is the id of a frame, made of the start of its attempt and its number. A bare `<ms>` is a time, compared with
/// [`crate::task::StreamFrame::at`]: the first frame of that millisecond where a range begins, its last where a range ends and for
/// a tail after it. The bare `-` and `+` of the store are refused.
///
/// ```
/// use ff_sdk::task::StreamCursor;
/// assert_eq!("start".parse(), Ok(StreamCursor::Start));
/// assert_eq!("1700000000000-7".parse(), Ok(StreamCursor::At("1700000000000-7".to_owned())));
/// assert_eq!(StreamCursor::from_beginning().to_string(), "0-0");
/// for refused in ["", "-", "+", "$", "1-", "-1", "1-2-3", "x"] {
///     assert!(refused.parse::<StreamCursor>().is_err(), "{refused}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StreamCursor {
    /// Before the first frame there is.
    Start,
    /// After the last frame there is.
    End,
    /// At a frame, or at a millisecond.
    At(String),
}

impl StreamCursor {
    /// The concrete place before the first frame: where a reader that wants everything begins to tail.
    #[must_use]
    pub fn from_beginning() -> Self {
        Self::At("0-0".to_owned())
    }

    /// True when it names a place that does not move.
    #[must_use]
    pub fn is_concrete(&self) -> bool {
        matches!(self, Self::At(_))
    }
}

impl fmt::Display for StreamCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::End => "end",
            Self::At(place) => place,
        })
    }
}

/// A text that is no cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be start, end, <ms> or <ms>-<seq>, got {0:?}")]
pub struct InvalidCursor(pub String);

impl FromStr for StreamCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        match text {
            "start" => Ok(Self::Start),
            "end" => Ok(Self::End),
            place => FrameId::read(place, 0).map(|_| Self::At(place.to_owned())),
        }
    }
}

/// The id of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameId {
    ms: u64,
    seq: u64,
}

impl FrameId {
    /// Before every frame: none was written at this time.
    pub(crate) const FIRST: Self = Self { ms: 0, seq: 0 };
    /// After every frame.
    pub(crate) const LAST: Self = Self { ms: 9_007_199_254_740_991, seq: u64::MAX };

    /// Reads a place; `seq` is the number of one that has none.
    pub(crate) fn read(text: &str, seq: u64) -> Result<Self, InvalidCursor> {
        let number = |digits: &str| {
            // A sign would be read, too.
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse::<u64>().ok()).flatten().ok_or_else(|| InvalidCursor(text.to_owned()))
        };
        // The engine knows no later time.
        let time = |digits: &str| {
            let ms = number(digits)?;
            if ms <= Self::LAST.ms { Ok(ms) } else { Err(InvalidCursor(text.to_owned())) }
        };
        match text.split_once('-') {
            Some((ms, seq)) => Ok(Self { ms: time(ms)?, seq: number(seq)? }),
            None => Ok(Self { ms: time(text)?, seq }),
        }
    }

    /// The place right before it; none before the first.
    pub(crate) fn before(self) -> Option<Self> {
        match (self.ms, self.seq) {
            (0, 0) => None,
            (ms, 0) => Some(Self { ms: ms - 1, seq: u64::MAX }),
            (ms, seq) => Some(Self { ms, seq: seq - 1 }),
        }
    }
}

impl fmt::Display for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_from_what_it_prints() {
        for text in ["start", "end", "0-0", "17", "17-3", "9007199254740991-18446744073709551615"] {
            assert_eq!(text.parse::<StreamCursor>().unwrap().to_string(), text);
        }
        let error = "+".parse::<StreamCursor>().unwrap_err();
        assert_eq!(error.to_string(), "must be start, end, <ms> or <ms>-<seq>, got \"+\"");
        for refused in [
            "-",
            "$",
            "(",
            "+1",
            "1-+2",
            " 1",
            "1 ",
            "1-",
            "-1",
            "1-2-3",
            "9007199254740992",
            "1-18446744073709551616",
            "START",
        ] {
            assert!(refused.parse::<StreamCursor>().is_err(), "{refused}");
        }
    }

    #[test]
    fn the_place_before_a_frame_is_right_before_it() {
        let at = |text: &str| FrameId::read(text, 0).unwrap();
        assert_eq!(at("5-3").before(), Some(at("5-2")));
        assert_eq!(at("5-0").before(), Some(at("4-18446744073709551615")));
        assert_eq!(at("0-0").before(), None);
        assert!(at("5-3") < at("5-10") && at("5-10") < at("10-0"));
    }
}
