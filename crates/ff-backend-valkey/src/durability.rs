//! What a reply guarantees, given what the server writes to disk and when.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use redis::{Cmd, Value};

/// What a caller can rely on after the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// The write is on the primary's disk.
    Fsync,
    /// A replica has the write.
    Replicated,
    /// The write is in the primary's log, flushed once a second.
    Relaxed,
    /// Nothing: the server may keep everything in memory only.
    None,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Fsync => "fsync",
            Durability::Replicated => "replicated",
            Durability::Relaxed => "relaxed",
            Durability::None => "none",
        })
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Durability, String> {
        [Durability::Fsync, Durability::Replicated, Durability::Relaxed, Durability::None]
            .into_iter()
            .find(|durability| durability.to_string() == text)
            .ok_or_else(|| format!("{text:?} is not a durability: use fsync, replicated, relaxed or none"))
    }
}

/// What a server writes to disk, in order from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Aof {
    Off,
    /// Flushed when the kernel decides.
    KernelFlush,
    EverySecond,
    Always,
}

/// The confirmation that the host requests after each write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// The primary has flushed its log.
    Flushed,
    /// One replica has the write.
    Replicated,
}

impl Confirmation {
    pub(crate) fn command(self, limit: Duration) -> Cmd {
        let limit = limit.as_millis() as u64;
        match self {
            Confirmation::Flushed => redis::cmd("WAITAOF").arg(1).arg(0).arg(limit).to_owned(),
            Confirmation::Replicated => redis::cmd("WAIT").arg(1).arg(limit).to_owned(),
        }
    }

    /// Returns `Ok` if the reply confirms the write.
    pub(crate) fn check(self, reply: &Value) -> Result<(), String> {
        match (self, reply) {
            (Confirmation::Flushed, Value::Array(counts)) => match counts.first() {
                Some(Value::Int(flushed)) if *flushed >= 1 => Ok(()),
                _ => Err("the write was not flushed in time".to_owned()),
            },
            (Confirmation::Replicated, Value::Int(replicas)) if *replicas >= 1 => Ok(()),
            (Confirmation::Replicated, Value::Int(_)) => Err("no replica confirmed the write in time".to_owned()),
            _ => Err(format!("unexpected confirmation {reply:?}")),
        }
    }
}

/// The durability in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Promise {
    pub(crate) durability: Durability,
    pub(crate) confirmation: Option<Confirmation>,
    pub(crate) loss_window: &'static str,
    pub(crate) warning: Option<&'static str>,
}

/// The abilities of the store's servers; the weakest server decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capability {
    /// `None` if the server does not allow reading its configuration.
    pub(crate) aof: Option<Aof>,
    pub(crate) waitaof: bool,
    pub(crate) replicas: u64,
}

const TWO_SECONDS: &str = "up to 2 s of acknowledged writes when the server or its machine dies";

impl Promise {
    /// The durability that can be promised for this request, or why none can.
    pub(crate) fn decide(requested: Option<Durability>, server: Capability) -> Result<Promise, String> {
        let plain = |durability, loss_window| Promise { durability, confirmation: None, loss_window, warning: None };
        let aof = match server.aof {
            Some(aof) => aof,
            None => {
                let assumed = Capability { aof: Some(Aof::EverySecond), ..server };
                let promise = Promise::decide(requested, assumed)?;
                let warning = "the server does not show its configuration (CONFIG GET); \
                               assuming appendonly yes and appendfsync everysec";
                return Ok(Promise { warning: Some(warning), ..promise });
            }
        };
        if requested == Some(Durability::None) {
            return Ok(plain(Durability::None, "everything since the server's last snapshot, if it takes any"));
        }
        if aof == Aof::Off {
            return Err("the server keeps no log (appendonly no) and would forget acknowledged work; \
                        set appendonly yes, or accept the loss with --durability none"
                .to_owned());
        }
        if aof == Aof::KernelFlush {
            return Err("the server leaves flushing to the kernel (appendfsync no), which may take 30 s; \
                        set appendfsync everysec or always, or accept the loss with --durability none"
                .to_owned());
        }
        match requested {
            None if aof == Aof::Always => Ok(plain(Durability::Fsync, "none")),
            None | Some(Durability::Relaxed) => Ok(plain(Durability::Relaxed, TWO_SECONDS)),
            Some(Durability::Fsync) if aof == Aof::Always => Ok(plain(Durability::Fsync, "none")),
            Some(Durability::Fsync) if server.waitaof => Ok(Promise {
                durability: Durability::Fsync,
                confirmation: Some(Confirmation::Flushed),
                loss_window: "none, if the server's WAITAOF waits for the flush (Valkey 8.0.1 answers up to 1 s before it)",
                warning: Some(
                    "durability fsync on appendfsync everysec waits for WAITAOF after each write, up to 1 s a call; \
                     Valkey 8.0.1 was seen to answer WAITAOF before the flush: appendfsync always is quicker and sure",
                ),
            }),
            Some(Durability::Fsync) => Err("the server has no WAITAOF, so durability fsync needs appendfsync always; \
                                            it has everysec"
                .to_owned()),
            Some(Durability::Replicated) if server.replicas == 0 => {
                Err("durability replicated needs a replica on every primary, and one has none connected".to_owned())
            }
            Some(Durability::Replicated) => Ok(Promise {
                durability: Durability::Replicated,
                confirmation: Some(Confirmation::Replicated),
                loss_window: "none while one replica that acknowledged survives",
                warning: None,
            }),
            Some(Durability::None) => unreachable!("answered above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(
        requested: Option<Durability>,
        aof: Option<Aof>,
        waitaof: bool,
        replicas: u64,
    ) -> Result<Promise, String> {
        Promise::decide(requested, Capability { aof, waitaof, replicas })
    }

    #[test]
    fn a_server_without_a_log_is_refused_unless_told() {
        for requested in [None, Some(Durability::Fsync), Some(Durability::Relaxed), Some(Durability::Replicated)] {
            assert!(decide(requested, Some(Aof::Off), true, 1).unwrap_err().contains("appendonly"));
            assert!(decide(requested, Some(Aof::KernelFlush), true, 1).unwrap_err().contains("appendfsync"));
        }
        assert_eq!(decide(Some(Durability::None), Some(Aof::Off), true, 0).unwrap().durability, Durability::None);
    }

    #[test]
    fn the_default_is_what_the_log_gives() {
        assert_eq!(decide(None, Some(Aof::Always), false, 0).unwrap().durability, Durability::Fsync);
        assert_eq!(decide(None, Some(Aof::EverySecond), true, 0).unwrap().durability, Durability::Relaxed);
        let unknown = decide(None, None, true, 0).unwrap();
        assert_eq!((unknown.durability, unknown.warning.is_some()), (Durability::Relaxed, true));
    }

    #[test]
    fn stronger_promises_are_confirmed_or_refused() {
        let fsync = Some(Durability::Fsync);
        assert_eq!(decide(fsync, Some(Aof::Always), true, 0).unwrap().confirmation, None);
        let waited = decide(fsync, Some(Aof::EverySecond), true, 0).unwrap();
        assert_eq!((waited.confirmation, waited.warning.is_some()), (Some(Confirmation::Flushed), true));
        assert!(decide(fsync, Some(Aof::EverySecond), false, 0).unwrap_err().contains("WAITAOF"));
        let replicated = Some(Durability::Replicated);
        assert!(decide(replicated, Some(Aof::EverySecond), true, 0).unwrap_err().contains("replica"));
        let waited = decide(replicated, Some(Aof::EverySecond), true, 2).unwrap();
        assert_eq!(waited.confirmation, Some(Confirmation::Replicated));
    }
}
