//! Waits for a server that has answered before and is away now, e.g. while it is started again.

use std::time::Duration;

use crate::problem::{Away, Refused};

/// How long, and whether at all, a command that goes on waits for its server.
///
/// A server that never answered is not waited for: its address is wrong, or nobody has started it.
#[derive(Debug, Default)]
pub struct Patience {
    answered: bool,
    tries: u32,
}

impl Patience {
    /// The server is there.
    pub fn answered(&mut self) {
        (self.answered, self.tries) = (true, 0);
    }

    /// True when the server has answered before.
    pub fn has_answer(&self) -> bool {
        self.answered
    }

    /// How long to wait before asking again; the error itself when waiting is of no use.
    pub fn pause(&mut self, error: anyhow::Error) -> anyhow::Result<Duration> {
        let away =
            error.downcast_ref::<Away>().is_some() || error.downcast_ref::<Refused>().is_some_and(Refused::passes);
        if !self.answered || !away {
            return Err(error);
        }
        self.tries += 1;
        Ok(Duration::from_millis(100 << self.tries.min(5)))
    }

    /// True when it has just gone away: that is worth a word, once.
    pub fn is_new(&self) -> bool {
        self.tries == 1
    }
}

/// What is said, once, when the server goes away.
pub const WAITING: &str = "the server is away; waiting until it is back (Ctrl-C ends this)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_has_answered_is_waited_for() {
        let away = || anyhow::Error::from(Away::new("no server answers"));
        let mut patience = Patience::default();
        assert!(patience.pause(away()).is_err(), "it never answered");
        patience.answered();
        assert!(patience.pause(anyhow::anyhow!("another matter")).is_err());
        let first = patience.pause(away()).expect("it is waited for");
        assert!(patience.is_new());
        let second = patience.pause(away().context("while listing")).expect("it is waited for");
        assert!(second > first && !patience.is_new());
        patience.answered();
        assert_eq!(patience.pause(away()).expect("it is waited for"), first);
    }
}
