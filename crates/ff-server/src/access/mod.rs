//! Who may do what: bearer tokens, roles, scopes, and one table of every route.

mod bearer;
mod caller;
mod failures;
mod guard;
mod scope;
mod standing;
mod table;

pub use bearer::Credentials;
pub use caller::Caller;
pub use ff_engine::Principal;
pub use guard::{Guard, Peer, pass, unauthorized};
pub use table::{Access, access_to, routes};
