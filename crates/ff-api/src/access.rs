//! The roles that may use an operation.

use ff_script::generated::Role;

use Role::{Admin, Metrics, Operator, Read, Signal, Submit, Worker};

/// What an operation asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: the answer tells nothing about the work.
    Open,
    /// A waitpoint token in the request.
    WaitpointToken,
    /// One of these roles; the role admin always passes.
    Roles(&'static [Role]),
}

/// Reads what is there.
pub const LOOK: Access = Access::Roles(&[Read, Operator]);
/// Reads what became of work; its submitter may.
pub const FOLLOW: Access = Access::Roles(&[Read, Submit, Operator]);
/// Submits work, or ends what was submitted.
pub const PUT_IN: Access = Access::Roles(&[Submit, Operator]);
/// Steers what others submitted.
pub const STEER: Access = Access::Roles(&[Operator]);
/// Works.
pub const WORK: Access = Access::Roles(&[Worker]);
/// Spends from a budget, with or without a lease.
pub const SPEND: Access = Access::Roles(&[Worker, Submit, Operator]);
/// Has a token, whatever its role.
pub const KNOWN: Access = Access::Roles(&[Read, Submit, Signal, Worker, Operator, Metrics]);
/// Administers keys, tokens and the store.
pub const RULE: Access = Access::Roles(&[Admin]);
