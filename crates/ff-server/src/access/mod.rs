//! Who may do what: bearer tokens, roles, scopes, and one table of every route.

mod bearer;
mod failures;
mod guard;
mod principal;
mod scope;
mod standing;
mod table;

pub use bearer::Credentials;
pub use guard::{Guard, Peer, pass, unauthorized};
pub use principal::{Caller, Principal};
pub use table::{Access, access_to, routes};
