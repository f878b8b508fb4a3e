//! Pages over all partitions: a place in a list as a cursor, and shares merged as far as every partition has looked.

use std::fmt;
use std::str::FromStr;

use ff_core::error::{EngineError, ValidationKind};

/// A place in a list by creation time, as URL-safe text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place<Id> {
    pub(super) created_at: i64,
    pub(super) id: Id,
}

impl<Id: fmt::Display> fmt::Display for Place<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.created_at, self.id)
    }
}

impl<Id: FromStr> FromStr for Place<Id> {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let invalid = || EngineError::Validation {
            kind: ValidationKind::InvalidArgument { field: "cursor".to_owned() },
            detail: "is not a cursor of this list".to_owned(),
        };
        let (created_at, id) = text.split_once('_').ok_or_else(invalid)?;
        Ok(Self { created_at: created_at.parse().map_err(|_| invalid())?, id: id.parse().map_err(|_| invalid())? })
    }
}

/// What one partition found, and up to where it has looked when it has more.
pub(super) type Share<T, K> = (Vec<T>, Option<K>);

/// Shows only what no partition can still come before: up to the nearest point some partition has looked to. Answers the items
/// in the order of their keys, and after which key the next page begins.
pub(super) fn merge<T, K: Ord + Clone>(
    shares: Vec<Share<T, K>>,
    limit: usize,
    key: impl Fn(&T) -> K,
) -> (Vec<T>, Option<K>) {
    let frontier = shares.iter().filter_map(|(_, looked_to)| looked_to.clone()).min();
    let mut items: Vec<T> = shares.into_iter().flat_map(|(items, _)| items).collect();
    items.sort_by_key(&key);
    let complete =
        frontier.as_ref().map_or(items.len(), |frontier| items.partition_point(|item| key(item) <= *frontier));
    let shown = complete.min(limit);
    items.truncate(shown);
    let next = if shown < complete { items.last().map(key) } else { frontier };
    (items, next)
}
