//! One thing for people: its facts under their names, a line each.

use std::fmt::Display;

use crate::terminal;

/// The least room a name has.
const NAME: usize = 16;

/// Facts that are shown one below the other; what is absent is left out.
#[derive(Debug, Default)]
pub struct Sheet {
    facts: Vec<(String, String)>,
}

impl Sheet {
    /// A fact.
    pub fn fact(&mut self, name: &str, value: impl Display) {
        self.facts.push((name.to_owned(), value.to_string()));
    }

    /// A fact that may be absent.
    pub fn maybe(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.fact(name, value);
        }
    }

    /// A fact of several words; none when there is no word.
    pub fn list<T: Display>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        if !values.is_empty() {
            self.fact(name, values.join(", "));
        }
    }

    /// The lines.
    pub fn lines(self) -> Vec<String> {
        let width = self.facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(NAME);
        // What others wrote must not steer the terminal.
        let line = |(name, value): &(String, String)| {
            format!("{name:width$} {}", terminal::harmless(value).replace(['\n', '\t'], " ")).trim_end().to_owned()
        };
        self.facts.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_left_out() {
        let mut sheet = Sheet::default();
        sheet.fact("state", "active");
        sheet.maybe("outcome", None::<&str>);
        sheet.list("requires", ["gpu", "eu"]);
        sheet.list("prefers", [] as [&str; 0]);
        assert_eq!(sheet.lines(), ["state            active", "requires         gpu, eu"]);
    }
}
