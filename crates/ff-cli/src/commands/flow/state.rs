//! The states of members: a mark and a colour for each, and how many are in which.

use serde_json::Value;

/// Every state of a member, the one most worth seeing first, with its mark and its colour in a terminal.
const STATES: [(&str, char, &str); 13] = [
    ("failed", '✗', "31"),
    ("expired", '†', "31"),
    ("active", '●', "34"),
    ("suspended", '◐', "35"),
    ("resumable", '◑', "34"),
    ("waiting", '○', "33"),
    ("delayed", '◔', "33"),
    ("rate_limited", '◕', "33"),
    ("waiting_children", '·', "2"),
    ("held", '◌', "2"),
    ("cancelled", '⊘', "2"),
    ("skipped", '↷', "2"),
    ("completed", '✓', "32"),
];

/// The mark of a state.
pub fn mark(state: &str) -> char {
    STATES.iter().find(|(name, ..)| *name == state).map_or('?', |(_, mark, _)| *mark)
}

/// How much a state is worth seeing: what failed first, then what runs, what may run, and what is over.
pub fn urgency(state: &str) -> usize {
    STATES.iter().position(|(name, ..)| *name == state).unwrap_or(STATES.len())
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
    pub fn paint(self, state: &str, text: &str) -> String {
        match STATES.iter().find(|(name, ..)| *name == state) {
            Some((.., colour)) if self.0 => format!("\x1b[{colour}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// How many members a flow has and in which states: `4: 1 active, 3 completed`.
pub fn counts(flow: &Value) -> String {
    let of = |state: &str| flow["counts"][state].as_i64().unwrap_or(0);
    let said: Vec<String> =
        STATES.iter().filter(|(name, ..)| of(name) > 0).map(|(name, ..)| format!("{} {name}", of(name))).collect();
    let total = flow["member_count"].as_i64().unwrap_or(0);
    if said.is_empty() { total.to_string() } else { format!("{total}: {}", said.join(", ")) }
}

#[cfg(test)]
mod tests {
    use ff_script::generated::MemberState;

    use super::*;

    #[test]
    fn every_state_has_a_mark_of_its_own() {
        let marks: std::collections::BTreeSet<char> = STATES.iter().map(|(_, mark, _)| *mark).collect();
        assert_eq!(marks.len(), STATES.len());
        for state in MemberState::ALL {
            assert_ne!(mark(state.as_str()), '?', "{state}");
        }
        assert_eq!(STATES.len(), MemberState::ALL.len());
    }

    #[test]
    fn text_is_painted_only_where_colour_is_wanted() {
        assert_eq!(Colour(true).paint("failed", "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(Colour::NONE.paint("failed", "x"), "x");
        assert_eq!(Colour(true).paint("", "x"), "x");
    }
}
