//! The steps of an execution, each as a bar over the time it took.

use std::fmt::Write as _;

use ff_api::steps::Step;
use ff_script::generated::{StepKind, StepState};

use crate::times::span;

/// How many columns the time takes.
const WIDTH: i64 = 40;
/// How many columns a name may take.
const NAME_MAX: usize = 40;

/// When a step began and ended, as far as it has by now.
fn times(step: &Step, now: i64) -> (i64, i64) {
    let open = match step.state {
        StepState::Waiting => now,
        StepState::Done | StepState::Failed => step.started_at,
    };
    (step.started_at, step.ended_at.unwrap_or(open).max(step.started_at))
}

/// A duration; short ones in milliseconds.
fn took(ms: i64) -> String {
    if ms < 1_000 { format!("{ms}ms") } else { span(Some(ms)) }
}

/// What a step shows in its bar: work is `#`, rests and waits are `-`.
fn bar(step: &Step) -> char {
    match step.kind {
        StepKind::Run | StepKind::Spawn => '#',
        StepKind::Sleep | StepKind::Signal | StepKind::Children => '-',
    }
}

/// A line for each step, in the order in which they were first recorded.
pub fn lines(steps: &[Step], now: i64) -> Vec<String> {
    let Some(first) = steps.iter().map(|step| step.started_at).min() else {
        return vec!["no steps are recorded".to_owned()];
    };
    let last = steps.iter().map(|step| times(step, now).1).max().unwrap_or(first);
    let whole = (last - first).max(1);
    let column = |at: i64| usize::try_from((at - first).saturating_mul(WIDTH) / whole).unwrap_or(0);
    let named = |step: &Step| step.name.chars().take(NAME_MAX).collect::<String>();
    let widest = steps.iter().map(|step| named(step).chars().count()).max().unwrap_or(0).max(4);
    let mut lines =
        vec![format!("{:widest$}  {:7}  {:>5}  {:>8}  0 to {}", "step", "state", "tries", "took", took(last - first))];
    for step in steps {
        let (from, to) = times(step, now);
        let (start, end) = (column(from), column(to));
        let length = (end - start).max(1);
        let took = took(to - from);
        let mut line = format!("{:widest$}  {:7}  {:>5}  {took:>8}  ", named(step), step.state.as_str(), step.tries);
        let start = start.min(usize::try_from(WIDTH).unwrap_or(0) - 1);
        let _ = write!(line, "{}{}", " ".repeat(start), bar(step).to_string().repeat(length));
        if let Some(failure) = &step.failure {
            let _ = write!(line, "  {}: {}", failure.category, failure.reason.lines().next().unwrap_or_default());
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, kind: StepKind, state: StepState, from: i64, to: Option<i64>) -> Step {
        Step { ended_at: to, ..Step::new(name.to_owned(), 1, kind, state, 1, from, 0) }
    }

    #[test]
    fn a_step_stands_where_its_time_was() {
        let steps = [
            step("charge", StepKind::Run, StepState::Done, 1_000, Some(2_000)),
            step("sleep", StepKind::Sleep, StepState::Done, 2_000, Some(4_000)),
            step("sign-off", StepKind::Signal, StepState::Waiting, 4_000, None),
        ];
        let drawn = lines(&steps, 5_000);
        assert!(drawn[1].ends_with(&"#".repeat(10)), "{}", drawn[1]);
        assert!(drawn[2].ends_with(&format!("  {}{}", " ".repeat(10), "-".repeat(20))), "{}", drawn[2]);
        assert!(
            drawn[3].contains("waiting") && drawn[3].ends_with(&format!("{}{}", " ".repeat(30), "-".repeat(10))),
            "{}",
            drawn[3]
        );
        assert_eq!(lines(&[], 0), ["no steps are recorded"]);
    }
}
