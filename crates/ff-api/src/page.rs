//! Lists that come in pages.

use ff_core::limits::{LIST_LIMIT_MAX, TIME_MS_MAX};
use serde::{Deserialize, Serialize};

use crate::Invalid;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Listed<T> {
    /// The page.
    pub items: Vec<T>,
    /// Where the next one begins.
    pub next_cursor: Option<String>,
}

/// Where a page of a list begins and how long it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct PageQuery {
    /// How many entries; the default is 100.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// The length of a page: 1 to 1_000, by default 100.
pub fn length(limit: Option<i64>) -> Result<usize, Invalid> {
    let limit = limit.unwrap_or(100);
    usize::try_from(limit)
        .ok()
        .filter(|_| (1..=LIST_LIMIT_MAX).contains(&limit))
        .ok_or_else(|| Invalid::new("limit", format!("must be in 1..={LIST_LIMIT_MAX}, got {limit}")))
}

/// How many entries to skip, in a list whose cursor is a number.
pub fn offset(cursor: Option<&str>) -> Result<i64, Invalid> {
    let Some(cursor) = cursor else { return Ok(0) };
    let offset = cursor.parse().ok().filter(|offset| (0..=TIME_MS_MAX).contains(offset));
    offset.ok_or_else(|| Invalid::new("cursor", "is not a cursor of this list"))
}
