//! A typed call: the name of a function, its arguments and its reply.

use crate::rules::Problem;
use crate::wire::{DecodeError, Reader};

/// The arguments of one library function. Written by codegen for every contract.
pub trait Call: Send + Sync {
    /// The function's name, e.g. `ff_complete_execution`.
    const FUNCTION: &'static str;
    /// The contract carries `no-writes`.
    const READ_ONLY: bool;
    /// The reply of the function.
    type Reply: Send;

    /// The arguments as one msgpack map.
    fn encode(&self) -> Vec<u8>;

    /// Fails if an argument is outside the bounds of the contract. The library then need not check again.
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// Its weight in a list.
    fn weight(&self) -> usize {
        1
    }

    /// Reads the reply: an outcome and its fields.
    fn decode_reply(input: &mut Reader<'_>) -> Result<Self::Reply, DecodeError>;
}
