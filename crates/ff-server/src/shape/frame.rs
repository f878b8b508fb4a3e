//! A frame of an attempt's stream.

use ff_script::generated::{Frame, FrameMode};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::openapi::vocabulary;
use crate::payload::{self, Encoding};

/// A frame as readers get it.
#[derive(Serialize, ToSchema)]
pub struct FrameShape {
    id: String,
    sequence: i64,
    r#type: String,
    at: i64,
    #[schema(value_type = vocabulary::Payload, required = false)]
    payload: Option<Box<RawValue>>,
    #[schema(value_type = Option<Encoding>)]
    payload_encoding: Option<&'static str>,
    correlation_id: Option<String>,
    #[schema(value_type = FrameMode)]
    mode: &'static str,
}

impl From<Frame> for FrameShape {
    fn from(frame: Frame) -> Self {
        let encoding = frame.payload_encoding.as_deref().unwrap_or("json");
        let (payload, payload_encoding) = frame.payload.map(|bytes| payload::shown(&bytes.0, encoding)).unzip();
        Self {
            id: frame.id,
            sequence: frame.sequence,
            r#type: frame.r#type,
            at: frame.at,
            payload,
            payload_encoding,
            correlation_id: frame.correlation_id,
            mode: frame.mode.as_str(),
        }
    }
}
