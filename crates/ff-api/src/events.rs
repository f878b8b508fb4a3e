//! The feed of events.

use std::collections::BTreeMap;

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated;
use serde::{Deserialize, Serialize};

use crate::access::LOOK;
use crate::operation::{Nothing, operations};
#[cfg(feature = "openapi")]
use crate::parts::LastEventId;
#[cfg(feature = "openapi")]
use crate::vocabulary::{self, ServerSentEvent};

/// An event as readers get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// Where a reader that has seen it goes on.
    pub cursor: String,
    /// What happened, in the past tense.
    pub r#type: String,
    /// When.
    pub at: i64,
    /// The namespace it happened in.
    pub namespace: Option<String>,
    /// The lane it happened in.
    pub lane: Option<String>,
    /// The kind of the execution or the flow.
    pub kind: Option<String>,
    /// The execution it happened to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The flow it happened to, or its execution's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    /// The attempt by its index, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_index: Option<i64>,
    /// The worker it happened at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_instance: Option<String>,
    /// The tags of the execution.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// What else is known of it.
    pub data: BTreeMap<String, EventData>,
}

impl Event {
    /// An event, and the cursor behind it.
    #[must_use]
    pub fn new(event: generated::Event, cursor: String) -> Self {
        Self {
            cursor,
            r#type: event.r#type,
            at: event.at,
            namespace: event.namespace,
            lane: event.lane,
            kind: event.kind,
            execution_id: event.execution_id,
            flow_id: event.flow_id,
            attempt_index: event.attempt_index,
            worker_instance: event.worker_instance,
            tags: event.tags,
            data: event.data.into_iter().map(|(name, value)| (name, value.into())).collect(),
        }
    }
}

/// What an event says of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum EventData {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// A truth.
    Flag(bool),
}

impl From<generated::EventValue> for EventData {
    fn from(value: generated::EventValue) -> Self {
        match value {
            generated::EventValue::Text(text) => Self::Text(text),
            generated::EventValue::Number(number) => Self::Number(number),
            generated::EventValue::Flag(flag) => Self::Flag(flag),
        }
    }
}

/// Which events, and from where on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct EventsQuery {
    /// A cursor, `start` or `now`; the default is `now`.
    pub after: Option<String>,
    /// Types apart by commas; `execution.*` stands for all that begin so.
    pub types: Option<String>,
    /// Those of a namespace.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Namespace>))]
    pub namespace: Option<String>,
    /// Those of a lane.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::LaneName>))]
    pub lane: Option<String>,
    /// Those of a kind.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Kind>))]
    pub kind: Option<String>,
    /// `key:value`.
    #[cfg_attr(feature = "openapi", param(pattern = ":"))]
    pub tag: Option<String>,
    /// Those of a flow.
    pub flow_id: Option<FlowId>,
    /// Those of an execution.
    pub execution_id: Option<ExecutionId>,
    /// Those of a worker's instance.
    pub worker: Option<String>,
    /// The stream ends after this many.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 9_007_199_254_740_991_i64))]
    pub limit: Option<i64>,
    /// `false` ends the stream once everything that has happened was written.
    pub follow: Option<bool>,
}

operations! {
    /// Everything that happened after a cursor, as server-sent events or, when accepted, NDJSON.
    ReadEvents event_read: get "/v1/events", LOOK;
    reads (LastEventId);
    asks EventsQuery;
    returns Nothing: (status = 200, content((ServerSentEvent = "text/event-stream"), (String = "application/x-ndjson")));
    streams Event;
    fails &["cursor_expired"];
}
