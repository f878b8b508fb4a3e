//! `ff openapi`: the OpenAPI document of what `ff server` serves.

use std::process::ExitCode;

use crate::output::print;

/// Prints it; no server is asked.
pub fn run() -> anyhow::Result<ExitCode> {
    print(std::str::from_utf8(&ff_server::openapi_json())?)?;
    Ok(ExitCode::SUCCESS)
}
