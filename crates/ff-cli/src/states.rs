//! The states of executions and members: a mark and a colour for each, and how many are in which.

use comfy_table::Color;
use ff_api::graph::Flow;
use ff_script::generated::{MemberState, PublicState};

/// Every state of a member, the one most worth seeing first, with its mark and its colour in a terminal.
const STATES: [(MemberState, char, Hue); 13] = [
    (MemberState::Failed, '✗', Hue::Red),
    (MemberState::Expired, '†', Hue::Red),
    (MemberState::Active, '●', Hue::Blue),
    (MemberState::Suspended, '◐', Hue::Magenta),
    (MemberState::Resumable, '◑', Hue::Blue),
    (MemberState::Waiting, '○', Hue::Yellow),
    (MemberState::Delayed, '◔', Hue::Yellow),
    (MemberState::RateLimited, '◕', Hue::Yellow),
    (MemberState::WaitingChildren, '·', Hue::Faint),
    (MemberState::Held, '◌', Hue::Faint),
    (MemberState::Cancelled, '⊘', Hue::Faint),
    (MemberState::Skipped, '↷', Hue::Faint),
    (MemberState::Completed, '✓', Hue::Green),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hue {
    Red,
    Blue,
    Magenta,
    Yellow,
    Green,
    Faint,
}

fn hue(state: MemberState) -> Hue {
    STATES.iter().find(|(name, ..)| *name == state).map_or(Hue::Faint, |(.., hue)| *hue)
}

/// The mark of a state.
pub fn mark(state: MemberState) -> char {
    STATES.iter().find(|(name, ..)| *name == state).map_or('?', |(_, mark, _)| *mark)
}

/// How much a state is worth seeing: what failed first, then what runs, what may run, and what is over.
pub fn urgency(state: MemberState) -> usize {
    STATES.iter().position(|(name, ..)| *name == state).unwrap_or(STATES.len())
}

/// The colour of a state in a table.
pub fn cell_colour(state: MemberState) -> Color {
    match hue(state) {
        Hue::Red => Color::DarkRed,
        Hue::Blue => Color::DarkBlue,
        Hue::Magenta => Color::DarkMagenta,
        Hue::Yellow => Color::DarkYellow,
        Hue::Green => Color::DarkGreen,
        Hue::Faint => Color::DarkGrey,
    }
}

/// The same state of an execution, as a member of a flow would have it.
pub fn as_member(state: PublicState) -> MemberState {
    state.as_str().parse().expect("a member has every state of an execution")
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(bool);

impl Colour {
    /// Colour for a terminal, unless NO_COLOR says otherwise.
    pub fn of_stdout() -> Self {
        Self(crate::terminal::is_coloured())
    }

    #[cfg(test)]
    pub const NONE: Self = Self(false);

    /// The text in the colour of a state.
    pub fn paint(self, state: MemberState, text: &str) -> String {
        if !self.0 {
            return text.to_owned();
        }
        let code = match hue(state) {
            Hue::Red => "31",
            Hue::Green => "32",
            Hue::Yellow => "33",
            Hue::Blue => "34",
            Hue::Magenta => "35",
            Hue::Faint => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// How many members a flow has and in which states: `4: 1 active, 3 completed`.
pub fn counts(flow: &Flow) -> String {
    let of = |state: MemberState| flow.counts.get(&state).copied().unwrap_or(0);
    let said: Vec<String> = STATES
        .iter()
        .filter(|(state, ..)| of(*state) > 0)
        .map(|(state, ..)| format!("{} {state}", of(*state)))
        .collect();
    if said.is_empty() { flow.member_count.to_string() } else { format!("{}: {}", flow.member_count, said.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_mark_of_its_own() {
        let marks: std::collections::BTreeSet<char> = STATES.iter().map(|(_, mark, _)| *mark).collect();
        assert_eq!(marks.len(), STATES.len());
        for state in MemberState::ALL {
            assert_ne!(mark(*state), '?', "{state}");
        }
        assert_eq!(STATES.len(), MemberState::ALL.len());
        for state in PublicState::ALL {
            assert_eq!(as_member(*state).as_str(), state.as_str());
        }
    }

    #[test]
    fn text_is_painted_only_where_colour_is_wanted() {
        assert_eq!(Colour(true).paint(MemberState::Failed, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(Colour::NONE.paint(MemberState::Failed, "x"), "x");
    }
}
