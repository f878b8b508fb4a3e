//! The address a server listens on, as `--listen` says it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// `ADDRESS:PORT`; `localhost` is this machine's loopback address.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    let alone = text.trim_matches(['[', ']']);
    Err(match alone.parse::<IpAddr>() {
        Ok(ip) => format!("the port is missing: say ADDRESS:PORT, e.g. {}", SocketAddr::new(ip, 7433)),
        Err(_) if alone == "localhost" => "the port is missing: say ADDRESS:PORT, e.g. localhost:7433".to_owned(),
        Err(_) => "it must be ADDRESS:PORT, an IP address (or localhost) and a port, e.g. 127.0.0.1:7433".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        for (text, address) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("localhost:18480", "127.0.0.1:18480"),
        ] {
            assert_eq!(listen_address(text).map(|address| address.to_string()).as_deref(), Ok(address));
        }
        for (text, said) in [
            ("0.0.0.0", "ADDRESS:PORT, e.g. 0.0.0.0:7433"),
            ("::1", "ADDRESS:PORT, e.g. [::1]:7433"),
            ("[::1]", "ADDRESS:PORT, e.g. [::1]:7433"),
            ("localhost", "ADDRESS:PORT, e.g. localhost:7433"),
            ("localhost:99999", "it must be ADDRESS:PORT"),
            ("example.org:80", "an IP address (or localhost)"),
            ("7433", "it must be ADDRESS:PORT"),
        ] {
            let refused = listen_address(text).expect_err(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }
}
