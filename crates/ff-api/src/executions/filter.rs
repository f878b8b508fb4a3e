//! Which executions: the same filters in the query of a list and in the bodies of bulk requests.

use ff_core::limits::TIME_MS_MAX;
use ff_core::types::FlowId;
use ff_script::generated::PublicState;
use serde::{Deserialize, Serialize};

use crate::Invalid;
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// Declares a struct with the filters and fields of its own.
///
/// A flattened struct would not do: a query is texts, and serde lets a flattened struct take any field.
macro_rules! filters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $( #[doc = $doc:literal] )+ $( #[bounds($($bounds:tt)*)] )? $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema, utoipa::IntoParams))]
        #[serde(deny_unknown_fields)]
        #[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
        pub struct $name {
            /// Those of a namespace.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Namespace>), param(value_type = Option<vocabulary::Namespace>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub namespace: Option<String>,
            /// Those of a lane.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LaneName>), param(value_type = Option<vocabulary::LaneName>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub lane: Option<String>,
            /// Those of a kind.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Kind>), param(value_type = Option<vocabulary::Kind>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub kind: Option<String>,
            /// Those in a state.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub state: Option<PublicState>,
            /// Those with a tag: `key:value`.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, pattern = ":"), param(value_type = Option<String>, pattern = ":"))]
            #[serde(default, with = "crate::executions::filter::tag", skip_serializing_if = "Option::is_none")]
            pub tag: Option<(String, String)>,
            /// Members of a flow; the one added last is the first.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub flow_id: Option<FlowId>,
            /// Those leased by a worker's instance.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Instance>), param(value_type = Option<vocabulary::Instance>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub worker: Option<String>,
            /// Submitted at this time or later.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>), param(value_type = Option<vocabulary::TimeMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub created_after: Option<i64>,
            /// Submitted at this time or earlier.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>), param(value_type = Option<vocabulary::TimeMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub created_before: Option<i64>,
            $(
                $( #[doc = $doc] )+
                $( #[cfg_attr(feature = "openapi", schema($($bounds)*), param($($bounds)*))] )?
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: $type,
            )*
        }
    };
}

/// The same, with a way from the filters and back.
macro_rules! filtered {
    ( $(#[$meta:meta])* pub struct $name:ident { $($fields:tt)+ } ) => {
        filters! { $(#[$meta])* pub struct $name { $($fields)+ } }

        impl From<ExecutionFilter> for $name {
            fn from(filter: ExecutionFilter) -> Self {
                // Every filter is named: a new one does not compile until it is sent.
                let ExecutionFilter { namespace, lane, kind, state, tag, flow_id, worker, created_after, created_before } = filter;
                Self {
                    namespace,
                    lane,
                    kind,
                    state,
                    tag,
                    flow_id,
                    worker,
                    created_after,
                    created_before,
                    ..Self::default()
                }
            }
        }

        impl $name {
            /// The filters.
            #[must_use]
            pub fn filter(&self) -> ExecutionFilter {
                ExecutionFilter {
                    namespace: self.namespace.clone(),
                    lane: self.lane.clone(),
                    kind: self.kind.clone(),
                    state: self.state,
                    tag: self.tag.clone(),
                    flow_id: self.flow_id,
                    worker: self.worker.clone(),
                    created_after: self.created_after,
                    created_before: self.created_before,
                }
            }
        }
    };
}

filters! {
    /// Which executions; everything given must match.
    pub struct ExecutionFilter {}
}

filtered! {
    /// One page of the executions that match.
    pub struct ListQuery {
        /// How many entries; the default is 100.
        #[bounds(minimum = 1, maximum = 1_000)]
        limit: Option<i64>,
        /// The `next_cursor` of the page before.
        cursor: Option<String>,
    }
}

filtered! {
    /// Filters and a place that count before those of the body.
    pub struct BulkQuery {
        /// How many at most; the default is 1000.
        #[bounds(minimum = 1, maximum = 10_000)]
        limit: Option<i64>,
        /// The `next_cursor` of the request before.
        cursor: Option<String>,
    }
}

filtered! {
    /// Which executions are cancelled; at least one filter is given, here or in the query.
    pub struct BulkCancelBody {
        /// How many at most; the default is 1000.
        #[bounds(minimum = 1, maximum = 10_000)]
        limit: Option<i64>,
        /// The `next_cursor` of the request before.
        cursor: Option<String>,
        /// Why; it is recorded with the action.
        #[bounds(value_type = Option<vocabulary::Reason>)]
        reason: Option<String>,
        /// How long a running attempt may take to end by itself.
        #[bounds(value_type = Option<vocabulary::DurationMs>)]
        grace_ms: Option<i64>,
    }
}

filtered! {
    /// Which ended executions run again; at least one filter is given, here or in the query.
    pub struct BulkReplayBody {
        /// How many at most; the default is 1000.
        #[bounds(minimum = 1, maximum = 10_000)]
        limit: Option<i64>,
        /// The `next_cursor` of the request before.
        cursor: Option<String>,
        /// Why; it is recorded with the action.
        #[bounds(value_type = Option<vocabulary::Reason>)]
        reason: Option<String>,
    }
}

impl ExecutionFilter {
    /// These filters, and where they say nothing, the others.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            namespace: self.namespace.or(other.namespace),
            lane: self.lane.or(other.lane),
            kind: self.kind.or(other.kind),
            state: self.state.or(other.state),
            tag: self.tag.or(other.tag),
            flow_id: self.flow_id.or(other.flow_id),
            worker: self.worker.or(other.worker),
            created_after: self.created_after.or(other.created_after),
            created_before: self.created_before.or(other.created_before),
        }
    }

    /// Refuses a time that cannot be.
    ///
    /// # Errors
    /// When a time is negative or beyond 2^53 - 1.
    pub fn check(&self) -> Result<(), Invalid> {
        for (name, time) in [("created_after", self.created_after), ("created_before", self.created_before)] {
            if let Some(ms) = time.filter(|ms| !(0..=TIME_MS_MAX).contains(ms)) {
                return Err(Invalid::new(name, format!("must be in 0..={TIME_MS_MAX}, got {ms}")));
            }
        }
        Ok(())
    }
}

/// A tag as one text.
pub(crate) mod tag {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(tag: &Option<(String, String)>, serializer: S) -> Result<S::Ok, S::Error> {
        match tag {
            Some((key, value)) => serializer.collect_str(&format_args!("{key}:{value}")),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(String, String)>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let (key, value) = text.split_once(':').ok_or_else(|| serde::de::Error::custom("must be key:value"))?;
        Ok(Some((key.to_owned(), value.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation as _;
    use crate::executions::ListExecutions;

    #[test]
    fn every_filter_travels_in_a_query_and_in_a_body() {
        let filter = ExecutionFilter {
            namespace: Some("n".to_owned()),
            lane: Some("l".to_owned()),
            kind: Some("a kind".to_owned()),
            state: Some(PublicState::WaitingChildren),
            tag: Some(("tenant".to_owned(), "a:b/ü&=".to_owned())),
            flow_id: Some("018f0000-0000-7000-8000-000000000000".parse().expect("an id")),
            worker: Some("w-1".to_owned()),
            created_after: Some(1),
            created_before: Some(2),
        };
        let url = ListExecutions::url(&(), &ListQuery::from(filter.clone()));
        let (_, query) = url.split_once('?').expect("parameters");
        assert_eq!(query.split('&').count(), 9, "{query}");
        let read: ListQuery = serde_urlencoded::from_str(query).expect("what was written is read");
        assert_eq!(read.filter(), filter);
        let body = serde_json::to_string(&BulkCancelBody::from(filter.clone())).expect("a body is JSON");
        let read: BulkCancelBody = serde_json::from_str(&body).expect("what was written is read");
        assert_eq!(read.filter(), filter);
    }

    #[test]
    fn a_tag_needs_its_value() {
        let error = serde_urlencoded::from_str::<ListQuery>("tag=tenant").expect_err("no value");
        assert_eq!(error.to_string(), "must be key:value");
    }

    #[test]
    fn filters_of_the_query_count_before_those_of_the_body() {
        let lane = |lane: &str| ExecutionFilter { lane: Some(lane.to_owned()), ..ExecutionFilter::default() };
        let kind = ExecutionFilter { kind: Some("k".to_owned()), ..lane("b") };
        assert_eq!(lane("a").or(kind), ExecutionFilter { kind: Some("k".to_owned()), ..lane("a") });
        assert!(ExecutionFilter { created_after: Some(-1), ..lane("a") }.check().is_err());
    }
}
