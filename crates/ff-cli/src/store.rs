//! Where the state lives: parses `--store` and opens the host it names.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, bail};
use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_engine::EngineOptions;
use ff_script::{Content, Contents, Host, HostError, Library, Route};

use crate::problem::WrongUsage;

/// How the embedded store says that another process has it.
pub const IN_USE: &str = "is in use by process";

/// A store as `--store` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// A directory of this machine.
    Embedded(PathBuf),
    /// A Valkey or Redis server or cluster.
    Valkey(String),
}

impl StoreAddress {
    /// Refuses a directory that is not there, for commands that look at a store and must not make one.
    pub fn must_be_there(&self) -> anyhow::Result<()> {
        match self {
            Self::Embedded(directory) if !directory.exists() => {
                bail!(WrongUsage(format!("{} is not there; say which store with --store", directory.display())))
            }
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Embedded(directory) => write!(f, "embedded:{}", directory.display()),
            Self::Valkey(url) => f.write_str(url),
        }
    }
}

impl FromStr for StoreAddress {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if let Some(directory) = text.strip_prefix("embedded:") {
            if directory.is_empty() {
                bail!("embedded: needs a directory, e.g. embedded:./data");
            }
            return Ok(Self::Embedded(directory.into()));
        }
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| scheme.starts_with("valkey") || scheme.starts_with("redis")) {
            return Ok(Self::Valkey(text.to_owned()));
        }
        bail!("{text} is not a store; use embedded:DIR, valkey://HOST:PORT or valkey-cluster://H1:P1,H2:P2")
    }
}

impl StoreAddress {
    /// True for a directory, which one process has open at a time.
    pub fn is_embedded(&self) -> bool {
        matches!(self, StoreAddress::Embedded(_))
    }
}

/// The directory for state when none is named: `$XDG_STATE_HOME/flowfabric`, else `~/.local/state/flowfabric`.
pub fn state_directory() -> anyhow::Result<PathBuf> {
    if let Some(directory) = std::env::var_os("FF_DATA_DIR") {
        return Ok(directory.into());
    }
    if let Some(state) = std::env::var_os("XDG_STATE_HOME") {
        return Ok(PathBuf::from(state).join("flowfabric"));
    }
    let home =
        std::env::var_os("HOME").context("neither FF_DATA_DIR, XDG_STATE_HOME nor HOME says where state goes")?;
    Ok(PathBuf::from(home).join(".local/state/flowfabric"))
}

/// What an answer promises, as `--durability` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// The write is on disk.
    Fsync,
    /// A replica has the write; Valkey only.
    Replicated,
    /// The write is flushed within two seconds.
    Relaxed,
    /// Nothing: a Valkey that writes nothing down is accepted.
    None,
}

impl Durability {
    fn of_embedded(self) -> anyhow::Result<ff_backend_embedded::Durability> {
        match self {
            Durability::Fsync => Ok(ff_backend_embedded::Durability::Fsync),
            Durability::Relaxed => Ok(ff_backend_embedded::Durability::Relaxed),
            Durability::Replicated => bail!("the embedded store has no replicas: use --durability fsync or relaxed"),
            Durability::None => bail!("the embedded store always writes to disk: use --durability fsync or relaxed"),
        }
    }

    fn of_valkey(self) -> ff_backend_valkey::Durability {
        match self {
            Durability::Fsync => ff_backend_valkey::Durability::Fsync,
            Durability::Replicated => ff_backend_valkey::Durability::Replicated,
            Durability::Relaxed => ff_backend_valkey::Durability::Relaxed,
            Durability::None => ff_backend_valkey::Durability::None,
        }
    }
}

/// Opens the host as a place of keys, for an export or an import.
pub async fn open_contents(address: &StoreAddress) -> anyhow::Result<Arc<dyn Contents>> {
    Ok(match address {
        StoreAddress::Embedded(directory) => Arc::new(open_embedded(directory, None)?),
        StoreAddress::Valkey(url) => Arc::new(open_valkey(url, None).await?),
    })
}

/// The key of the record that makes a store one.
pub fn partitions_key() -> Vec<u8> {
    Route::Config.to_string().into_bytes()
}

/// True when an import into the store was begun and has not ended.
pub async fn import_begun(host: &dyn Contents) -> anyhow::Result<bool> {
    let record = host.read_keys(vec![partitions_key()]).await?.pop().flatten();
    Ok(matches!(record, Some(Content::Hash(fields)) if fields.iter().any(|(field, _)| field == b"importing")))
}

fn open_embedded(directory: &Path, durability: Option<Durability>) -> anyhow::Result<Embedded> {
    let mut options = ff_backend_embedded::Options::new(directory, Library::shipped().text);
    if let Some(durability) = durability {
        options.durability = durability.of_embedded()?;
    }
    Embedded::open(options).map_err(|error| match error {
        HostError::Refused { detail } if detail.contains(IN_USE) => anyhow::anyhow!(
            "{detail}; stop that process, ask its server with --url, or name another store with --store or FF_DATA_DIR"
        ),
        error => anyhow::Error::from(error).context(format!("cannot open the store in {}", directory.display())),
    })
}

async fn open_valkey(url: &str, durability: Option<Durability>) -> anyhow::Result<ValkeyHost> {
    let mut options = ff_backend_valkey::Options::new(url, Library::shipped());
    options.durability = durability.map(Durability::of_valkey);
    Ok(ValkeyHost::connect(options).await?)
}

/// Opens the host, and says how an engine starts on it. Without a durability the store's own applies.
pub async fn open(
    address: &StoreAddress,
    durability: Option<Durability>,
) -> anyhow::Result<(Arc<dyn Host>, EngineOptions)> {
    match address {
        StoreAddress::Embedded(directory) => {
            Ok((Arc::new(open_embedded(directory, durability)?), EngineOptions::default()))
        }
        StoreAddress::Valkey(url) => Ok((Arc::new(open_valkey(url, durability).await?), EngineOptions::default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_embedded_store_takes_the_promises_it_can_keep() {
        let directory = tempfile::tempdir().expect("a directory");
        let address = StoreAddress::Embedded(directory.path().to_owned());
        for (durability, promise) in
            [(None, "fsync"), (Some(Durability::Fsync), "fsync"), (Some(Durability::Relaxed), "relaxed")]
        {
            let (host, _) = open(&address, durability).await.expect("it opens");
            assert_eq!(host.facts().durability, promise);
        }
        for durability in [Durability::Replicated, Durability::None] {
            let refused = open(&address, Some(durability)).await.err().expect("it is refused");
            assert!(refused.to_string().contains("--durability fsync or relaxed"), "{refused}");
        }
    }

    #[test]
    fn an_address_is_a_directory_or_a_server() {
        assert_eq!("embedded:/x".parse::<StoreAddress>().unwrap(), StoreAddress::Embedded("/x".into()));
        for url in ["valkey://h:1", "valkeys://h", "redis://h:1/2", "valkey-cluster://a:1,b:2"] {
            assert_eq!(url.parse::<StoreAddress>().unwrap(), StoreAddress::Valkey(url.to_owned()));
        }
        for wrong in ["", "embedded:", "/tmp/x", "postgres://h"] {
            assert!(wrong.parse::<StoreAddress>().is_err(), "{wrong}");
        }
    }
}
