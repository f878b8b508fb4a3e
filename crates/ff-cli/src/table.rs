//! Tables for people: columns as wide as what they hold, cut to the terminal's width.

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table as Drawn, Width};
use ff_script::generated::{MemberState, PublicState};

use crate::{states, terminal};

/// What stands where a cell was cut.
const CUT: &str = "…";

/// A table that grows row by row. A row is one line: what is too long for the terminal is cut.
pub struct Table {
    drawn: Drawn,
    headings: Vec<&'static str>,
    /// The columns that are never cut.
    whole: Vec<usize>,
    /// The headings of columns that go, the first one first, where there is too little room.
    spare: &'static [&'static str],
    /// How wide it may be.
    width: Option<usize>,
}

/// Between two columns.
const GAP: u16 = 2;
/// What is left of a long text before other columns go.
const LEFT_OF_TEXT: usize = 20;

/// What stands in a cell.
pub enum Field {
    /// Text at the left.
    Text(String),
    /// An id at the left, never cut: people copy it.
    Id(String),
    /// A number or an age at the right, never cut.
    Number(String),
    /// A state, in its colour.
    State(MemberState),
}

impl Table {
    /// A table with these headings.
    pub fn new<const N: usize>(headings: [&'static str; N]) -> Self {
        let mut drawn = Drawn::new();
        drawn.load_style(NOTHING).set_truncation_indicator(CUT);
        let mut heading = Row::from(headings);
        heading.max_height(1);
        drawn.set_header(heading);
        if terminal::is_coloured() {
            drawn.enforce_styling();
        } else {
            drawn.force_no_tty();
        }
        let width = terminal::is_live().then(|| terminal::size().0);
        Self { drawn, headings: headings.to_vec(), whole: Vec::new(), spare: &[], width }
    }

    /// The same table, fitted to so many columns whatever the terminal is.
    pub fn within(self, width: Option<usize>) -> Self {
        Self { width, ..self }
    }

    /// The same table, without these columns where there is too little room: the first one goes first.
    pub fn sparing(self, spare: &'static [&'static str]) -> Self {
        Self { spare, ..self }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, fields: [Field; N]) {
        debug_assert_eq!(N, self.headings.len(), "a row has a field for each heading");
        for (at, field) in fields.iter().enumerate() {
            if !matches!(field, Field::Text(_)) && !self.whole.contains(&at) {
                self.whole.push(at);
            }
        }
        let mut row = Row::from(fields.map(Cell::from));
        row.max_height(1);
        self.drawn.add_row(row);
    }

    /// The columns that go because there is too little room. Text that is long can be cut, and takes part with what is left of it.
    fn hidden(&self) -> Vec<usize> {
        let mut hidden: Vec<usize> = Vec::new();
        let Some(room) = self.width else { return hidden };
        let widths = self.drawn.column_max_content_widths();
        let wide = |at: usize| match self.whole.contains(&at) {
            true => usize::from(widths[at]),
            false => usize::from(widths[at]).min(LEFT_OF_TEXT.max(self.headings[at].chars().count())),
        };
        for spare in self.spare {
            let shown = (0..widths.len()).filter(|at| !hidden.contains(at));
            let all: usize = shown.map(|at| wide(at) + usize::from(GAP)).sum();
            if all > room + usize::from(GAP) {
                hidden.extend(self.headings.iter().position(|heading| heading == spare));
            }
        }
        hidden
    }

    /// The lines of the table.
    pub fn lines(&mut self) -> Vec<String> {
        let hidden = self.hidden();
        if let Some(width) = self.width {
            self.drawn.set_content_arrangement(ContentArrangement::Dynamic);
            self.drawn.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        let last = (0..self.headings.len()).rev().find(|at| !hidden.contains(at));
        for (at, column) in self.drawn.column_iter_mut().enumerate() {
            column.set_padding((0, if Some(at) == last { 0 } else { GAP }));
            let heading = u16::try_from(self.headings[at].chars().count()).unwrap_or(u16::MAX);
            column.set_constraint(if hidden.contains(&at) {
                ColumnConstraint::Hidden
            } else if self.whole.contains(&at) {
                ColumnConstraint::ContentWidth
            } else {
                ColumnConstraint::LowerBoundary(Width::Fixed(heading + GAP))
            });
        }
        self.drawn.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

impl From<Field> for Cell {
    fn from(field: Field) -> Self {
        match field {
            // What others wrote must not steer the terminal.
            Field::Text(text) | Field::Id(text) => Cell::new(terminal::harmless(&text).replace(['\n', '\t'], " ")),
            Field::Number(text) => Cell::new(text).set_alignment(CellAlignment::Right),
            Field::State(state) => Cell::new(state.as_str()).fg(states::cell_colour(state)),
        }
    }
}

/// An id in a cell.
pub fn id(id: impl ToString) -> Field {
    Field::Id(id.to_string())
}

/// The state of an execution in a cell.
pub fn state(state: PublicState) -> Field {
    Field::State(states::as_member(state))
}

/// Text in a cell.
pub fn text(text: impl Into<String>) -> Field {
    Field::Text(text.into())
}

/// A number or an age in a cell.
pub fn number(number: impl ToString) -> Field {
    Field::Number(number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_they_hold_and_no_text_steers_the_terminal() {
        let mut table = Table::new(["NAME", "AGE", "STATE"]);
        table.row([text("mail"), number("3s"), state(PublicState::Active)]);
        table.row([text("a\u{1b}[31m\nlonger"), number("120s"), state(PublicState::Failed)]);
        assert_eq!(
            table.lines(),
            ["NAME           AGE   STATE", "mail             3s  active", "a\u{fffd}[31m longer  120s  failed"]
        );
    }

    #[test]
    fn a_row_is_one_line_however_narrow_the_terminal() {
        let mut table = Table::new(["ID", "STATE", "KIND"]).within(Some(60));
        let one = "0192f3a0-1111-7abc-8def-00112233aabb";
        table.row([id(one), state(PublicState::Active), text("a kind whose name is far too long to fit beside an id")]);
        let lines = table.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[1].starts_with(one) && lines[1].ends_with(CUT) && lines[1].chars().count() <= 60, "{lines:?}");
    }

    #[test]
    fn a_narrow_table_gives_up_the_columns_it_can_spare() {
        let mut table = Table::new(["NAME", "STATE", "AGE"]).sparing(&["AGE", "STATE"]).within(Some(20));
        table.row([text("a-name-of-17-chars"), text("active"), number("3s")]);
        assert_eq!(table.lines(), ["NAME", "a-name-of-17-chars"]);
    }

    #[test]
    fn a_heading_is_never_broken_and_no_room_is_wasted() {
        let mut table = Table::new(["ID", "STATE", "KIND"]).within(Some(51));
        table.row([id("0192f3a0-1111-7abc-8def-00112233aabb"), state(PublicState::Active), text("send")]);
        let lines = table.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with("STATE   KIND") && lines[1].ends_with("active  send"), "{lines:?}");
        let mut table = Table::new(["BUDGET", "DIMENSION", "USED"]).within(Some(30));
        table.row([text("a name that is far too long"), text("tokens"), number(1_234_567)]);
        let lines = table.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("DIMENSION") && lines[1].ends_with("1234567"), "{lines:?}");
    }
}
