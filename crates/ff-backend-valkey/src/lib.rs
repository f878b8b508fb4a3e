//! Runs the library on Valkey or Redis, standalone or as a cluster.
//!
//! [`ValkeyHost`] sends each list of calls as one `FCALL` to the primary that owns its partition. It retries the call
//! with the same arguments while the store is loading, failing over or moving the partition's slot. It keeps the
//! library loaded, and passes on what partitions announce through sharded pub/sub. An idle host sends nothing.
//!
//! **Invariant:** repeating a call is safe, because every function of the library recognises its own repetition. The
//! host does not interpret arguments or replies.
//!
//! **Invariant:** the host waits for a moving slot and never uses `ASKING`. At the new owner a function would find half
//! a partition, and treat keys that have not arrived yet as missing.
//!
//! Beside the commands of the library, an ACL user needs `~ff:*`, `&ff:wake:*` and `+fcall +fcall_ro +function|load
//! +info +hmget +watch +multi +exec +set +del +ssubscribe`; `+config|get` to see the server's log settings, `+cluster|slots`
//! in a cluster, `+waitaof` or `+wait` for a confirmed durability, `+scan` for fsck and export.

mod address;
mod backoff;
mod connect;
mod durability;
mod fault;
mod gather;
mod host;
mod inspect;
mod lane;
mod library;
mod node;
mod options;
mod patience;
mod slot;
mod topology;
mod version;
mod wake;

pub use durability::Durability;
pub use host::ValkeyHost;
pub use options::Options;
