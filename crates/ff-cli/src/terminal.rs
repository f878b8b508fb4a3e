//! What is known of the terminal: whether there is one, how large it is, and whether colour is wanted.

use std::io::IsTerminal;

/// The size drawn for when the terminal does not say its own.
const SIZE: (usize, usize) = (120, 40);

/// True when stdout is a terminal.
pub fn is_live() -> bool {
    std::io::stdout().is_terminal()
}

/// True when stdout is a terminal and NO_COLOR does not say otherwise.
pub fn is_coloured() -> bool {
    is_live() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Columns and rows.
pub fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
        _ => SIZE,
    }
}

/// What stands over the last frame: home, each line cleared to its end, and nothing below. Lines beyond the last row are left out,
/// so that nothing scrolls.
pub fn redrawn(frame: &str, rows: usize) -> String {
    let mut drawn = String::from("\x1b[H");
    for line in frame.lines().take(rows.saturating_sub(1)) {
        drawn.push_str(line);
        drawn.push_str("\x1b[K\r\n");
    }
    drawn.push_str("\x1b[J");
    drawn
}

/// Without what would make a terminal do something.
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_drawn_over_the_last_one_and_never_scrolls() {
        assert_eq!(redrawn("a\nb\n", 10), "\x1b[Ha\x1b[K\r\nb\x1b[K\r\n\x1b[J");
        assert_eq!(redrawn("a\nb\nc", 3), "\x1b[Ha\x1b[K\r\nb\x1b[K\r\n\x1b[J");
    }

    #[test]
    fn control_characters_stay_on_the_page() {
        assert_eq!(harmless("a\u{1b}[31mb\n\tc"), "a\u{fffd}[31mb\n\tc");
    }
}
