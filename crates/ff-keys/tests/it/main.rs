//! Tokens and keys: forgery, sharing between processes, rotation.

mod forgery;
mod processes;
mod tokens;
