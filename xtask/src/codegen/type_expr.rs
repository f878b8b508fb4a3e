//! The grammar of types in contracts: `name`, `[name]`, `{name:name}`, each with `?` when optional.

use std::fmt;

use anyhow::{Result, bail};

/// A type as a contract writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeExpr {
    Named(String),
    /// `T?`: optional.
    Optional(Box<TypeExpr>),
    /// `[T]`.
    List(Box<TypeExpr>),
    /// `{K:V}`.
    Map(Box<TypeExpr>, Box<TypeExpr>),
}

impl TypeExpr {
    pub fn parse(text: &str) -> Result<TypeExpr> {
        if let Some(inner) = text.strip_suffix('?') {
            return Ok(TypeExpr::Optional(Box::new(Self::parse(inner)?)));
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return Ok(TypeExpr::List(Box::new(Self::parse(inner)?)));
        }
        if let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let Some((key, value)) = inner.split_once(':') else { bail!("{text:?} lacks a colon") };
            return Ok(TypeExpr::Map(Box::new(Self::parse(key)?), Box::new(Self::parse(value)?)));
        }
        let is_name =
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if !is_name {
            bail!("{text:?} is not a type: expected name, name?, [type] or {{type:type}}");
        }
        Ok(TypeExpr::Named(text.to_owned()))
    }

    /// Every name in the type.
    pub fn names(&self) -> Vec<&str> {
        match self {
            TypeExpr::Named(name) => vec![name],
            TypeExpr::Optional(inner) | TypeExpr::List(inner) => inner.names(),
            TypeExpr::Map(key, value) => [key.names(), value.names()].concat(),
        }
    }

    /// True for `T?`.
    pub fn is_optional(&self) -> bool {
        matches!(self, TypeExpr::Optional(_))
    }
}

impl fmt::Display for TypeExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeExpr::Named(name) => f.write_str(name),
            TypeExpr::Optional(inner) => write!(f, "{inner}?"),
            TypeExpr::List(inner) => write!(f, "[{inner}]"),
            TypeExpr::Map(key, value) => write!(f, "{{{key}:{value}}}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_read_back_as_written() {
        for text in ["uuid", "uuid?", "[attempt]", "[attempt]?", "{text:int}", "{text:[int]}?", "[[a]?]"] {
            assert_eq!(TypeExpr::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "Uuid", "[a", "{a}", "a b", "a??x"] {
            assert!(TypeExpr::parse(text).is_err(), "{text}");
        }
    }
}
