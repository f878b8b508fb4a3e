//! The bounds of contracts, checked before a call leaves the process. Rules and messages are the same as in
//! `lua/lib/check.lua`.

use std::collections::BTreeMap;

use ff_core::error::Detail;
use ff_core::{EngineError, ErrorCode};
use uuid::Uuid;

use crate::wire::Bytes;

/// The largest integer that a Lua number distinguishes from its neighbours.
const EXACT_MAX: i64 = 9_007_199_254_740_991;

/// The bounds that a contract sets beyond the type.
#[derive(Debug)]
pub enum Rule {
    /// None beyond the rules of the value's own type.
    Own,
    Int {
        min: i64,
        max: i64,
    },
    Text {
        /// The minimum number of bytes.
        min: usize,
        /// The maximum number of bytes.
        max: usize,
        /// The Lua pattern it must match.
        pattern: Option<&'static str>,
        /// The largest number that a run of digits in the text may be.
        digits_max: Option<&'static str>,
        /// A forbidden pattern, and the message for it.
        refuse: Option<(&'static str, &'static str)>,
        /// The code of the refusal, if it is not `invalid_argument`.
        code: Option<&'static str>,
    },
    Bytes {
        /// The maximum number of bytes.
        max: usize,
    },
    List {
        /// The rule of an item.
        of: &'static Rule,
        /// The maximum number of items.
        max: Option<usize>,
        /// The maximum total bytes of the items.
        bytes_max: Option<usize>,
    },
    Map {
        /// The rule of a key.
        key: &'static Rule,
        /// The rule of a value.
        value: &'static Rule,
        /// The maximum number of entries.
        max: Option<usize>,
    },
}

/// The broken rule and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    field: String,
    text: String,
    code: Option<&'static str>,
}

const NOT_ALLOWED: &str = "holds a character that is not allowed";

impl Problem {
    fn new(text: impl Into<String>, code: Option<&'static str>) -> Self {
        Self { field: String::new(), text: text.into(), code }
    }

    /// The same problem, with its place inside the given field.
    pub(crate) fn within(mut self, field: &str) -> Self {
        self.field.insert_str(0, field);
        self.field.insert(0, '.');
        self
    }

    fn at(mut self, index: usize) -> Self {
        self.field.insert_str(0, &format!("[{index}]"));
        self
    }
}

impl From<Problem> for EngineError {
    fn from(problem: Problem) -> Self {
        let code = problem.code.and_then(|code| code.parse().ok()).unwrap_or(ErrorCode::InvalidArgument);
        let field = problem.field.strip_prefix('.').unwrap_or(&problem.field).to_owned();
        let detail = [("field".to_owned(), field), ("problem".to_owned(), problem.text)];
        EngineError::from_refusal(code, Detail::from_iter(detail))
    }
}

/// A value with bounds in contracts.
pub trait Bounded {
    /// Fails if the value breaks the rule.
    fn within(&self, rule: &Rule) -> Result<(), Problem>;

    /// Its bytes, for lists that are bounded in bytes.
    fn size(&self) -> usize {
        0
    }
}

impl Bounded for i64 {
    fn within(&self, rule: &Rule) -> Result<(), Problem> {
        let Rule::Int { min, max } = rule else { return Ok(()) };
        if !(-EXACT_MAX..=EXACT_MAX).contains(self) {
            return Err(Problem::new("must be an integer", None));
        }
        if self < min || self > max {
            return Err(Problem::new(format!("must be in {min}..={max}, got {self}"), None));
        }
        Ok(())
    }
}

impl Bounded for String {
    fn within(&self, rule: &Rule) -> Result<(), Problem> {
        let Rule::Text { min, max, pattern, digits_max, refuse, code } = rule else { return Ok(()) };
        let length = self.len();
        if length < *min || length > *max {
            return Err(Problem::new(format!("must be {min} to {max} bytes long, got {length}"), *code));
        }
        if pattern.is_some_and(|pattern| !found(pattern, self.as_bytes())) {
            return Err(Problem::new(NOT_ALLOWED, *code));
        }
        if digits_max.is_some_and(|max| !digits_within(self, max)) {
            return Err(Problem::new("holds a number that is too large", *code));
        }
        match refuse {
            Some((pattern, problem)) if found(pattern, self.as_bytes()) => Err(Problem::new(*problem, *code)),
            _ => Ok(()),
        }
    }

    fn size(&self) -> usize {
        self.len()
    }
}

impl Bounded for Bytes {
    fn within(&self, rule: &Rule) -> Result<(), Problem> {
        match rule {
            Rule::Bytes { max } if self.len() > *max => {
                Err(Problem::new(format!("must be at most {max} bytes long, got {}", self.len()), None))
            }
            _ => Ok(()),
        }
    }

    fn size(&self) -> usize {
        self.len()
    }
}

impl<T: Bounded> Bounded for Option<T> {
    fn within(&self, rule: &Rule) -> Result<(), Problem> {
        self.as_ref().map_or(Ok(()), |value| value.within(rule))
    }
}

impl<T: Bounded> Bounded for Vec<T> {
    fn within(&self, rule: &Rule) -> Result<(), Problem> {
        let Rule::List { of, max, bytes_max } = rule else { return Ok(()) };
        if let Some(max) = max.filter(|max| self.len() > *max) {
            return Err(Problem::new(format!("must hold at most {max} items, got {}", self.len()), None));
        }
        for (index, item) in self.iter().enumerate() {
            item.within(of).map_err(|problem| problem.at(index))?;
        }
        let bytes: usize = self.iter().map(Bounded::size).sum();
        match bytes_max {
            Some(max) if bytes > *max => {
                Err(Problem::new(format!("must hold at most {max} bytes in all, got {bytes}"), None))
            }
            _ => Ok(()),
        }
    }
}

impl<K: Bounded + ToString, V: Bounded> Bounded for BTreeMap<K, V> {
    fn within(&self, rule: &Rule) -> Result<(), Problem> {
        let Rule::Map { key: of_key, value: of_value, max } = rule else { return Ok(()) };
        if let Some(max) = max.filter(|max| self.len() > *max) {
            return Err(Problem::new(format!("must hold at most {max} entries, got {}", self.len()), None));
        }
        let problems = self.iter().filter_map(|(key, value)| {
            let problem = key.within(of_key).and_then(|()| value.within(of_value)).err()?;
            Some(problem.within(&key.to_string()))
        });
        problems.min_by(|one, other| one.field.cmp(&other.field)).map_or(Ok(()), Err)
    }
}

macro_rules! always_within {
    ($($name:ty),+ $(,)?) => { $(
        impl $crate::rules::Bounded for $name {
            fn within(&self, _: &$crate::rules::Rule) -> Result<(), $crate::rules::Problem> {
                Ok(())
            }
        }
    )+ };
}
pub(crate) use always_within;

always_within!(
    bool,
    Uuid,
    ff_core::types::AttemptId,
    ff_core::types::BudgetId,
    ff_core::types::ExecutionId,
    ff_core::types::FlowId,
    ff_core::types::LeaseId,
    ff_core::types::QuotaPolicyId,
    ff_core::types::SignalId,
    ff_core::types::SuspensionId,
    ff_core::types::WaitpointId,
);

/// Checks packed arguments.
#[cfg(any(test, feature = "samples"))]
pub type PackedCheck = fn(&[u8]) -> Option<Result<(), Problem>>;

/// Decodes packed arguments as a call and checks them. `None` if they are not such a call.
#[cfg(any(test, feature = "samples"))]
pub(crate) fn check_packed<C: crate::call::Call + crate::wire::Wire>(args: &[u8]) -> Option<Result<(), Problem>> {
    let call = C::read(&mut crate::wire::Reader::new(args)).ok()?;
    Some(call.check())
}

/// True if every run of digits is at most `max`.
fn digits_within(text: &str, max: &str) -> bool {
    text.split(|letter: char| !letter.is_ascii_digit()).all(|run| {
        let digits = run.trim_start_matches('0');
        (digits.len(), digits) <= (max.len(), max)
    })
}

/// True if the text matches a Lua pattern. Contracts use anchors, classes, sets and `+`, `*`, `?`.
fn found(pattern: &str, text: &[u8]) -> bool {
    let pattern = pattern.as_bytes();
    match pattern.split_first() {
        Some((b'^', anchored)) => begins(anchored, text),
        _ => (0..=text.len()).any(|start| begins(pattern, &text[start..])),
    }
}

fn begins(pattern: &[u8], text: &[u8]) -> bool {
    if pattern.is_empty() {
        return true;
    }
    if pattern == b"$" {
        return text.is_empty();
    }
    let (one, rest) = pattern.split_at(item_length(pattern));
    let fits = text.iter().take_while(|byte| item_fits(one, **byte)).count();
    match rest.split_first() {
        Some((b'+', rest)) => (1..=fits).rev().any(|taken| begins(rest, &text[taken..])),
        Some((b'*', rest)) => (0..=fits).rev().any(|taken| begins(rest, &text[taken..])),
        Some((b'?', rest)) => (0..=fits.min(1)).rev().any(|taken| begins(rest, &text[taken..])),
        _ => fits > 0 && begins(rest, &text[1..]),
    }
}

/// The length of the first item of a pattern: a letter, a class or a set.
fn item_length(pattern: &[u8]) -> usize {
    match pattern[0] {
        b'%' => 2,
        b'[' => {
            let mut at = if pattern[1] == b'^' { 2 } else { 1 };
            while pattern[at] != b']' {
                at += if pattern[at] == b'%' { 2 } else { 1 };
            }
            at + 1
        }
        _ => 1,
    }
}

fn item_fits(item: &[u8], byte: u8) -> bool {
    match item {
        [b'[', b'^', members @ .., b']'] => !set_has(members, byte),
        [b'[', members @ .., b']'] => set_has(members, byte),
        [b'%', class] => class_has(*class, byte),
        [b'.'] => true,
        [letter] => *letter == byte,
        _ => false,
    }
}

fn set_has(mut members: &[u8], byte: u8) -> bool {
    while let Some(first) = members.first() {
        let length = if *first == b'%' { 2 } else { 1 };
        let (member, rest) = members.split_at(length);
        if if length == 2 { class_has(member[1], byte) } else { member[0] == byte } {
            return true;
        }
        members = rest;
    }
    false
}

fn class_has(class: u8, byte: u8) -> bool {
    match class {
        b'w' => byte.is_ascii_alphanumeric(),
        b'd' => byte.is_ascii_digit(),
        b'x' => byte.is_ascii_hexdigit(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'c' => byte.is_ascii_control(),
        b'u' => byte.is_ascii_uppercase(),
        literal => literal == byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_lua() {
        for (pattern, text, fits) in [
            ("^[%w%._%-]+$", "a-b_c.9", true),
            ("^[%w%._%-]+$", "a b", false),
            ("^[%w%._%-]+$", "", false),
            ("^%.+$", "..", true),
            ("^%.+$", ".a", false),
            ("[%s%c,]", "a,b", true),
            ("[%s%c,]", "ab", false),
            ("^%d+%-%d+%.?%d*$", "12-3.4", true),
            ("^%d+%-%d+%.?%d*$", "12-3", true),
            ("^%d+%-%d+%.?%d*$", "12-3x", false),
            ("^https?://[^/%?#%s%c]+[^#%s%c]*$", "http://a/b?c", true),
            ("^https?://[^/%?#%s%c]+[^#%s%c]*$", "https://a#b", false),
            ("^https?://[^/%?#%s%c]+[^#%s%c]*$", "ftp://a", false),
            ("^[%w%p ]+$", "a kind!", true),
            ("^[%w%p ]+$", "é", false),
        ] {
            assert_eq!(found(pattern, text.as_bytes()), fits, "{pattern} in {text}");
        }
        assert!(digits_within("007-18446744073709551615", "18446744073709551615"));
        assert!(!digits_within("18446744073709551616-1", "18446744073709551615"));
    }
}
