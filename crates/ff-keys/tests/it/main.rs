//! Tokens and keys: forged, shared between processes, rotated.

mod forgery;
mod processes;
mod tokens;
