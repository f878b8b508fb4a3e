//! Reads a refusal from the wire as an error.

use ff_core::error::Detail;
use ff_core::{EngineError, ErrorCode};

use crate::wire::{DecodeError, Reader};

fn error(code: &str, detail: Detail) -> Result<EngineError, DecodeError> {
    let code: ErrorCode =
        code.parse().map_err(|error: ff_core::types::UnknownWord| DecodeError::new(error.to_string()))?;
    Ok(EngineError::from_refusal(code, detail))
}

/// The error of a refusal: the code and the detail after its false.
pub(crate) fn read(input: &mut Reader<'_>) -> Result<EngineError, DecodeError> {
    let code = input.text().map_err(|error| error.within("code"))?;
    let detail = if input.nil() { Detail::new() } else { facts(input).map_err(|error| error.within("detail"))? };
    error(code, detail)
}

/// Details are texts. Other bytes (a key of a corrupt record) are shown escaped, for reading only.
fn facts(input: &mut Reader<'_>) -> Result<Detail, DecodeError> {
    let entries = input.map()?;
    (0..entries)
        .map(|_| {
            let name = input.text()?.to_owned();
            let bytes = input.bytes().map_err(|error| error.within(name.clone()))?;
            let shown = bytes
                .utf8_chunks()
                .map(|chunk| chunk.valid().to_owned() + &chunk.invalid().escape_ascii().to_string())
                .collect();
            Ok((name, shown))
        })
        .collect()
}
