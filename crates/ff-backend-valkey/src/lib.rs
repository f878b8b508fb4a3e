//! Hosts the library on Valkey or Redis, standalone or as a cluster.
//!
//! [`ValkeyHost`] sends each call as one `FCALL` to the primary that owns its partition and repeats it, with the same
//! arguments, while the store is loading, failing over or moving the partition's slot. It keeps the library loaded,
//! and passes on what partitions announce through sharded pub/sub. An idle host sends nothing.
//!
//! **Invariant:** repeating a call is safe, because every function of the library answers a repetition of itself.
//! Nothing here looks into arguments or replies.

mod address;
mod backoff;
mod connect;
mod durability;
mod fault;
mod host;
mod inspect;
mod lane;
mod library;
mod node;
mod options;
mod slot;
mod topology;
mod version;
mod wake;

pub use durability::Durability;
pub use host::ValkeyHost;
pub use options::Options;
