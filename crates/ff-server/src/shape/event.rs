//! One event and the cursor behind it.

use std::collections::BTreeMap;

use ff_core::types::{ExecutionId, FlowId};
use ff_engine::Delivered;
use ff_script::generated::EventValue;
use serde::Serialize;
use utoipa::ToSchema;

/// An event as readers get it.
#[derive(Serialize, ToSchema)]
pub struct EventShape {
    /// Where a reader that has seen it goes on.
    pub cursor: String,
    /// What happened, in the past tense.
    pub r#type: String,
    at: i64,
    namespace: Option<String>,
    lane: Option<String>,
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<ExecutionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_id: Option<FlowId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_index: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_instance: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
    data: BTreeMap<String, DataShape>,
}

/// What an event says of one thing: a text, a number or a truth.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum DataShape {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl From<EventValue> for DataShape {
    fn from(value: EventValue) -> Self {
        match value {
            EventValue::Text(text) => Self::Text(text),
            EventValue::Number(number) => Self::Number(number),
            EventValue::Flag(flag) => Self::Flag(flag),
        }
    }
}

impl From<Delivered> for EventShape {
    fn from(delivered: Delivered) -> Self {
        let event = delivered.event;
        Self {
            cursor: delivered.cursor.to_string(),
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
