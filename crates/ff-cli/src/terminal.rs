//! What is known of the terminal: whether there is one, how large it is, whether colour is wanted, and which keys are pressed.

use std::io::{IsTerminal, Read};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

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

/// Keys as they are pressed, without Enter and without their echo. The terminal is as it was when this goes.
pub struct Keys {
    before: Option<Termios>,
    pressed: mpsc::UnboundedReceiver<u8>,
}

impl Keys {
    /// Listens on standard input when it is a terminal and `wanted`; else no key ever comes.
    pub fn listen(wanted: bool) -> Self {
        let (press, pressed) = mpsc::unbounded_channel();
        let before = tcgetattr(std::io::stdin()).ok().filter(|_| wanted && std::io::stdin().is_terminal());
        if let Some(before) = &before {
            let mut single = before.clone();
            single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            if tcsetattr(std::io::stdin(), OptionalActions::Now, &single).is_ok() {
                // The thread waits for a key until the process ends.
                std::thread::spawn(move || {
                    for key in std::io::stdin().lock().bytes().map_while(Result::ok) {
                        if press.send(key).is_err() {
                            return;
                        }
                    }
                });
            }
        }
        Self { before, pressed }
    }

    /// The next key; waits for ever where no key can come. Given up while an arrow arrives, it forgets the arrow alone.
    pub async fn next(&mut self) -> Key {
        loop {
            let key = self.byte().await;
            if key != ESCAPE {
                return Key::Char(char::from(key));
            }
            // Arrows and their like are an escape, a bracket and a letter or a number.
            if matches!(self.byte().await, b'[' | b'O')
                && let Some(key) = arrow(self.byte().await)
            {
                return key;
            }
        }
    }

    async fn byte(&mut self) -> u8 {
        match self.pressed.recv().await {
            Some(byte) => byte,
            None => std::future::pending().await,
        }
    }
}

const ESCAPE: u8 = 0x1b;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// One that stands for itself.
    Char(char),
    /// Towards the first line.
    Up,
    /// Towards the last line.
    Down,
    /// A page towards the first line.
    PageUp,
    /// A page towards the last line.
    PageDown,
}

/// The key behind an escape and a bracket.
fn arrow(byte: u8) -> Option<Key> {
    match byte {
        b'A' => Some(Key::Up),
        b'B' => Some(Key::Down),
        b'5' => Some(Key::PageUp),
        b'6' => Some(Key::PageDown),
        _ => None,
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The terminal may be gone.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
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
