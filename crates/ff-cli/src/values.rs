//! What flags hold: words, pairs, amounts, JSON.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::problem::WrongUsage;

/// Takes one of these words.
pub fn words<T>(all: &'static [T]) -> impl TypedValueParser<Value = T>
where
    T: ToString + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.iter().map(ToString::to_string)).map(|word| {
        all.iter().find(|one| one.to_string() == word).cloned().expect("the parser takes these words alone")
    })
}

/// A `key=value` or `key:value` of the command line.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once(['=', ':']) {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text} is not key=value")),
    }
}

/// A `dimension=n` or `dimension:n` of the command line.
pub fn amount(text: &str) -> Result<(String, i64), String> {
    match text.split_once(['=', ':']) {
        Some((name, n)) if !name.is_empty() => match n.parse() {
            Ok(n) => Ok((name.to_owned(), n)),
            Err(_) => Err(format!("{n} of {name} is not a whole number")),
        },
        _ => Err(format!("{text} is not dimension=n")),
    }
}

/// The JSON that a flag holds.
pub fn json<T: DeserializeOwned>(flag: &str, text: Option<&str>) -> anyhow::Result<Option<T>> {
    let wrong = |error: serde_json::Error| match error.classify() {
        Category::Data => WrongUsage(format!("--{flag}: {error}")),
        Category::Io | Category::Syntax | Category::Eof => WrongUsage(format!("--{flag} is not JSON")),
    };
    Ok(text.map(|text| serde_json::from_str(text).map_err(wrong)).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_a_key() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a:b"), Ok(("a".to_owned(), "b".to_owned())));
        assert!(pair("a").is_err() && pair("=b").is_err());
        assert_eq!(amount("tokens:5"), amount("tokens=5"));
    }
}
