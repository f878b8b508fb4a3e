//! The named facts of a refusal.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Facts by name, each as text: numbers in decimal, lists joined with commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail(BTreeMap<String, String>);

impl Detail {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The fact with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The fact with this name as a value. `Err` holds the name if the text does not parse.
    pub fn parse<T: FromStr>(&self, name: &'static str) -> Result<Option<T>, &'static str> {
        self.get(name).map(str::parse).transpose().map_err(|_| name)
    }

    /// All facts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, String)> for Detail {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(facts: I) -> Self {
        Self(facts.into_iter().collect())
    }
}

impl From<BTreeMap<String, String>> for Detail {
    fn from(facts: BTreeMap<String, String>) -> Self {
        Self(facts)
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {value}")?;
        }
        Ok(())
    }
}
