//! Parses the URL of a store.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

/// The address of a store, and its login.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// True when the URL names a cluster.
    pub(crate) cluster: bool,
    /// The server, or the cluster nodes to ask first.
    pub(crate) seeds: Vec<Endpoint>,
    /// User, password, database and TLS, the same for every node.
    template: ConnectionInfo,
}

/// Host and port of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Address {
    /// Parses a URL. The error never contains a password.
    pub(crate) fn parse(url: &str) -> Result<Address, String> {
        const FORMS: &str = "valkey://HOST:PORT, valkeys://HOST:PORT or valkey-cluster://HOST:PORT,HOST:PORT";
        let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("the store's URL must look like {FORMS}"))?;
        let (cluster, tls) = match scheme {
            "valkey" | "redis" => (false, false),
            "valkeys" | "rediss" => (false, true),
            "valkey-cluster" | "redis-cluster" => (true, false),
            "valkeys-cluster" | "rediss-cluster" => (true, true),
            other => return Err(format!("{other}:// is not a kind of store; use {FORMS}")),
        };
        if tls && !cfg!(feature = "tls") {
            return Err(format!("{scheme}:// needs a build with the feature `tls`"));
        }
        let plain = if tls { "valkeys" } else { "valkey" };
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (format!("{login}@"), rest),
            None => (String::new(), rest),
        };
        let (hosts, path) = match rest.split_once('/') {
            Some((hosts, path)) => (hosts, format!("/{path}")),
            None => (rest, String::new()),
        };
        if cluster && !matches!(path.as_str(), "" | "/" | "/0") {
            return Err(format!("a cluster has only database 0, not {path:?}"));
        }
        let mut seeds = Vec::new();
        let mut template = None;
        for host in if cluster { hosts.split(',').collect() } else { vec![hosts] } {
            let info = format!("{plain}://{login}{host}{path}")
                .into_connection_info()
                .map_err(|error| format!("cannot read {host:?} in the store's URL: {error}"))?;
            seeds.push(endpoint(info.addr()).ok_or_else(|| format!("{host:?} is not HOST:PORT"))?);
            template.get_or_insert(info);
        }
        let template = template.ok_or_else(|| format!("the store's URL has no host; use {FORMS}"))?;
        Ok(Address { cluster, seeds, template })
    }

    /// How to connect to one node. RESP3 allows pushes beside replies.
    pub(crate) fn info(&self, endpoint: &Endpoint, protocol: ProtocolVersion) -> ConnectionInfo {
        let (host, port) = (endpoint.host.clone(), endpoint.port);
        let addr = match self.template.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        // The kernel notices a dead peer. The host itself sends nothing when idle.
        let keepalive = redis::io::tcp::socket2::TcpKeepalive::new()
            .with_time(Duration::from_secs(10))
            .with_interval(Duration::from_secs(5))
            .with_retries(3);
        let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
        let redis = self.template.redis_settings().clone().set_protocol(protocol).set_skip_set_lib_name();
        self.template.clone().set_addr(addr).set_tcp_settings(tcp).set_redis_settings(redis)
    }
}

fn endpoint(addr: &ConnectionAddr) -> Option<Endpoint> {
    match addr {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            Some(Endpoint { host: host.clone(), port: *port })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(url: &str) -> Vec<String> {
        Address::parse(url).unwrap().seeds.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn urls_name_one_server_or_the_nodes_of_a_cluster() {
        assert_eq!(seeds("valkey://localhost"), ["localhost:6379"]);
        assert_eq!(seeds("redis://10.0.0.1:7000/2"), ["10.0.0.1:7000"]);
        assert_eq!(seeds("valkey-cluster://a:1,b:2,c"), ["a:1", "b:2", "c:6379"]);
        let address = Address::parse("valkey-cluster://ann:se%40cret@a:1,b:2").unwrap();
        assert!(address.cluster);
        assert_eq!(address.template.redis_settings().username(), Some("ann"));
        assert_eq!(address.template.redis_settings().password(), Some("se@cret"));
    }

    #[test]
    fn a_url_that_names_no_store_is_refused_without_repeating_the_password() {
        for url in ["localhost:6379", "http://a:1", "valkey-cluster://a:1/3", "valkey://:hunter2@:port", "valkey://"] {
            let error = Address::parse(url).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
