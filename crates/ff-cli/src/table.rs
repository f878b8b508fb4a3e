//! Tables for people: columns as wide as what they hold, cut to the terminal's width.

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Table as Drawn};
use ff_script::generated::PublicState;

use crate::terminal;

/// A table that grows row by row.
pub struct Table {
    drawn: Drawn,
    columns: usize,
}

/// What stands in a cell.
pub enum Field {
    /// Text at the left.
    Text(String),
    /// A number or an age, at the right.
    Number(String),
    /// A state, in its colour.
    State(PublicState),
}

impl Table {
    /// A table with these headings.
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        let mut drawn = Drawn::new();
        drawn.load_style(NOTHING).set_header(headings);
        if terminal::is_live() {
            drawn.set_content_arrangement(ContentArrangement::Dynamic);
            drawn.set_width(u16::try_from(terminal::size().0).unwrap_or(u16::MAX));
        }
        if terminal::is_coloured() {
            drawn.enforce_styling();
        } else {
            drawn.force_no_tty();
        }
        Self { drawn, columns: N }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, fields: [Field; N]) {
        debug_assert_eq!(N, self.columns, "a row has a field for each heading");
        self.drawn.add_row(fields.map(Cell::from));
    }

    /// The lines of the table.
    pub fn lines(&mut self) -> Vec<String> {
        for column in self.drawn.column_iter_mut() {
            column.set_padding((0, 2));
        }
        self.drawn.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

impl From<Field> for Cell {
    fn from(field: Field) -> Self {
        match field {
            // What others wrote must not steer the terminal.
            Field::Text(text) => Cell::new(terminal::harmless(&text).replace(['\n', '\t'], " ")),
            Field::Number(text) => Cell::new(text).set_alignment(CellAlignment::Right),
            Field::State(state) => Cell::new(state.as_str()).fg(colour(state)),
        }
    }
}

fn colour(state: PublicState) -> Color {
    match state {
        PublicState::Waiting | PublicState::Delayed | PublicState::RateLimited | PublicState::WaitingChildren => {
            Color::DarkYellow
        }
        PublicState::Active => Color::DarkCyan,
        PublicState::Suspended | PublicState::Resumable => Color::DarkMagenta,
        PublicState::Completed => Color::DarkGreen,
        PublicState::Failed | PublicState::Expired => Color::DarkRed,
        PublicState::Cancelled | PublicState::Skipped => Color::DarkGrey,
    }
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
        table.row([text("mail"), number("3s"), Field::State(PublicState::Active)]);
        table.row([text("a\u{1b}[31m\nlonger"), number("120s"), Field::State(PublicState::Failed)]);
        assert_eq!(
            table.lines(),
            ["NAME           AGE   STATE", "mail             3s  active", "a\u{fffd}[31m longer  120s  failed"]
        );
    }
}
