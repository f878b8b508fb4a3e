//! What a typed call is: a function's name, its arguments and its reply.

use crate::rules::Problem;
use crate::wire::{DecodeError, Reader};

/// The arguments of one library function. Written by codegen for every contract.
pub trait Call: Send + Sync {
    /// The function's name, e.g. `ff_complete_execution`.
    const FUNCTION: &'static str;
    /// The contract carries `no-writes`.
    const READ_ONLY: bool;
    /// What the function answers.
    type Reply: Send;

    /// The arguments as one msgpack map.
    fn encode(&self) -> Vec<u8>;

    /// Fails when an argument is outside the bounds of the contract; the library then need not look.
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// How much of a list it takes up.
    fn weight(&self) -> usize {
        1
    }

    /// The reply: its outcome and the fields of it.
    fn decode_reply(input: &mut Reader<'_>) -> Result<Self::Reply, DecodeError>;
}
