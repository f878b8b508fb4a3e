//! A refusal on the wire, as the error it means.

use ff_core::error::Detail;
use ff_core::{EngineError, ErrorCode};
use rmpv::ValueRef;

use crate::wire::{DecodeError, Fields, Wire, text_bytes};

fn error(code: &str, detail: Detail) -> Result<EngineError, DecodeError> {
    let code: ErrorCode =
        code.parse().map_err(|error: ff_core::types::UnknownWord| DecodeError::new(error.to_string()))?;
    Ok(EngineError::from_refusal(code, detail))
}

/// The error under `err` and `detail` of a reply.
pub(crate) fn read(reply: &Fields<'_, '_>) -> Result<EngineError, DecodeError> {
    let code: String = reply.read("err")?;
    let detail = match reply.get("detail") {
        Some(value) => facts(value).map_err(|error| error.within("detail"))?,
        None => Detail::new(),
    };
    error(&code, detail)
}

/// Details are texts. Bytes that are no text (a key of a corrupt record) are shown escaped: this is for reading only.
fn facts(value: &ValueRef<'_>) -> Result<Detail, DecodeError> {
    Fields::of(value)?
        .entries()
        .iter()
        .map(|(name, value)| {
            let name = String::read(name)?;
            let bytes = text_bytes(value).ok_or_else(|| DecodeError::unexpected("text", value).within(name.clone()))?;
            Ok((
                name,
                bytes
                    .utf8_chunks()
                    .map(|chunk| chunk.valid().to_owned() + &chunk.invalid().escape_ascii().to_string())
                    .collect(),
            ))
        })
        .collect()
}
