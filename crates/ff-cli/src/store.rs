//! Where the state lives: parses `--store` and opens the host it names.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, bail};
use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_engine::EngineOptions;
use ff_script::{Host, Library};

/// A store as `--store` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// A directory of this machine.
    Embedded(PathBuf),
    /// A Valkey or Redis server or cluster.
    Valkey(String),
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

/// Opens the host, and says how an engine starts on it.
pub async fn open(address: &StoreAddress) -> anyhow::Result<(Arc<dyn Host>, EngineOptions)> {
    match address {
        StoreAddress::Embedded(directory) => {
            let options = ff_backend_embedded::Options::new(directory, Library::shipped().text);
            let host =
                Embedded::open(options).with_context(|| format!("cannot open the store in {}", directory.display()))?;
            Ok((Arc::new(host), EngineOptions::embedded()))
        }
        StoreAddress::Valkey(url) => {
            let host = ValkeyHost::connect(ff_backend_valkey::Options::new(url, Library::shipped())).await?;
            Ok((Arc::new(host), EngineOptions::valkey()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
