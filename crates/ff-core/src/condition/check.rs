//! Whether the engine accepts a condition.

use super::{Condition, Matcher};

/// The deepest tree. A single condition has depth 1.
pub const CONDITION_DEPTH_MAX: usize = 4;
/// The most signal and count conditions in one tree.
pub const CONDITION_LEAVES_MAX: usize = 64;
/// The highest `n` of a count.
pub const CONDITION_COUNT_MAX: u32 = 1_000;
/// The longest signal name or waitpoint key in bytes.
pub const CONDITION_NAME_BYTES_MAX: usize = 128;

/// A condition that the engine does not accept, and the part at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {path}: {problem}")]
pub struct InvalidCondition {
    /// The part at fault, as in the JSON: `condition.any_of[1].count`.
    pub path: String,
    pub problem: ConditionProblem,
}

/// What is wrong with a part of a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionProblem {
    /// An `any_of` or `all_of` without conditions.
    #[error("must not be empty")]
    Empty,
    /// A condition nested too deeply.
    #[error("a condition may be at most {CONDITION_DEPTH_MAX} deep")]
    TooDeep,
    /// Too many conditions in total.
    #[error("a condition may have at most {CONDITION_LEAVES_MAX} signals and counts, not {leaves}")]
    TooManyLeaves {
        /// Number of leaves.
        leaves: usize,
    },
    /// A count outside its range.
    #[error("must be 1 to {CONDITION_COUNT_MAX}, not {n}")]
    CountOutOfRange { n: u32 },
    /// A signal name or waitpoint key of the wrong length.
    #[error("must be 1 to {CONDITION_NAME_BYTES_MAX} bytes, not {bytes}; any name is null")]
    NameLength { bytes: usize },
}

impl Condition {
    /// Checks depth, number of leaves, and the bounds of counts and names. No list may be empty.
    pub fn check(&self) -> Result<(), InvalidCondition> {
        let mut leaves = 0;
        self.check_at(1, &mut String::from("condition"), &mut leaves)?;
        if leaves > CONDITION_LEAVES_MAX {
            return Err(fault("condition", ConditionProblem::TooManyLeaves { leaves }));
        }
        Ok(())
    }

    /// Checks the condition at `path` and restores `path` before it returns. It descends no deeper than the limit.
    fn check_at(&self, depth: usize, path: &mut String, leaves: &mut usize) -> Result<(), InvalidCondition> {
        if depth > CONDITION_DEPTH_MAX {
            return Err(fault(path, ConditionProblem::TooDeep));
        }
        match self {
            Condition::Signal { name, waitpoint } => {
                *leaves += 1;
                check_names(path, name.as_deref(), waitpoint.as_deref())
            }
            Condition::Count { n, over: _, of } => {
                *leaves += 1;
                if !(1..=CONDITION_COUNT_MAX).contains(n) {
                    return Err(fault(&format!("{path}.count"), ConditionProblem::CountOutOfRange { n: *n }));
                }
                let Some(Matcher { name, waitpoint }) = of else { return Ok(()) };
                check_names(&format!("{path}.of"), name.as_deref(), waitpoint.as_deref())
            }
            Condition::AnyOf(children) => check_children("any_of", children, depth, path, leaves),
            Condition::AllOf(children) => check_children("all_of", children, depth, path, leaves),
        }
    }
}

fn check_children(
    field: &str,
    children: &[Condition],
    depth: usize,
    path: &mut String,
    leaves: &mut usize,
) -> Result<(), InvalidCondition> {
    let end = path.len();
    if children.is_empty() {
        return Err(fault(&format!("{path}.{field}"), ConditionProblem::Empty));
    }
    for (index, child) in children.iter().enumerate() {
        path.push_str(&format!(".{field}[{index}]"));
        child.check_at(depth + 1, path, leaves)?;
        path.truncate(end);
    }
    Ok(())
}

fn check_names(path: &str, name: Option<&str>, waitpoint: Option<&str>) -> Result<(), InvalidCondition> {
    for (field, text) in [("signal", name), ("waitpoint", waitpoint)] {
        if let Some(text) = text
            && !(1..=CONDITION_NAME_BYTES_MAX).contains(&text.len())
        {
            return Err(fault(&format!("{path}.{field}"), ConditionProblem::NameLength { bytes: text.len() }));
        }
    }
    Ok(())
}

fn fault(path: &str, problem: ConditionProblem) -> InvalidCondition {
    InvalidCondition { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::super::Over;
    use super::*;

    fn any() -> Condition {
        Condition::default()
    }

    fn named(bytes: usize) -> Condition {
        Condition::Signal { name: Some("n".repeat(bytes)), waitpoint: Some("w".repeat(bytes)) }
    }

    fn count(n: u32) -> Condition {
        Condition::Count { n, over: Over::Signals, of: Some(Matcher::default()) }
    }

    fn nested(levels: usize) -> Condition {
        (1..levels).fold(any(), |inner, level| {
            if level % 2 == 0 { Condition::AnyOf(vec![any(), inner]) } else { Condition::AllOf(vec![any(), inner]) }
        })
    }

    #[test]
    fn what_is_within_the_bounds_is_taken() {
        for condition in [any(), named(1), named(128), count(1), count(1_000), nested(4)] {
            assert_eq!(condition.check(), Ok(()), "{condition:?}");
        }
        let half = |leaf: fn() -> Condition| Condition::AnyOf((0..32).map(|_| leaf()).collect());
        assert_eq!(Condition::AllOf(vec![half(any), half(|| count(1))]).check(), Ok(()));
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_its_path() {
        for (condition, message) in [
            (Condition::AnyOf(vec![]), "invalid condition.any_of: must not be empty"),
            (
                Condition::AnyOf(vec![any(), Condition::AllOf(vec![])]),
                "invalid condition.any_of[1].all_of: must not be empty",
            ),
            (nested(5), "invalid condition.any_of[1].all_of[1].any_of[1].all_of[0]: a condition may be at most 4 deep"),
            (count(0), "invalid condition.count: must be 1 to 1000, not 0"),
            (
                Condition::AllOf(vec![any(), count(1_001)]),
                "invalid condition.all_of[1].count: must be 1 to 1000, not 1001",
            ),
            (named(129), "invalid condition.signal: must be 1 to 128 bytes, not 129; any name is null"),
            (
                Condition::Signal { name: None, waitpoint: Some(String::new()) },
                "invalid condition.waitpoint: must be 1 to 128 bytes, not 0; any name is null",
            ),
            (
                Condition::Count {
                    n: 1,
                    over: Over::Approvers,
                    of: Some(Matcher { name: None, waitpoint: Some("é".repeat(65)) }),
                },
                "invalid condition.of.waitpoint: must be 1 to 128 bytes, not 130; any name is null",
            ),
            (
                Condition::AllOf((0..65).map(|_| any()).collect()),
                "invalid condition: a condition may have at most 64 signals and counts, not 65",
            ),
        ] {
            assert_eq!(condition.check().unwrap_err().to_string(), message);
        }
    }
}
