//! Opens connections to one store's nodes.

use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, ProtocolVersion};

use crate::address::{Address, Endpoint};
use crate::fault::Fault;

const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Opens connections to any node, with the store's login.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    pub(crate) address: Address,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS reads it"))]
    root_certificate: Option<Vec<u8>>,
}

impl Connector {
    pub(crate) fn new(address: Address, root_certificate: Option<Vec<u8>>) -> Connector {
        // Another part of the process may have installed a provider; then that one is used.
        #[cfg(feature = "tls")]
        let _ = rustls::crypto::ring::default_provider().install_default();
        Connector { address, root_certificate }
    }

    /// A connection for calls. Replies come in order, and many calls can be in flight.
    pub(crate) async fn open(&self, endpoint: &Endpoint) -> Result<MultiplexedConnection, Fault> {
        self.connect(endpoint, ProtocolVersion::RESP2, self.config()).await
    }

    /// A connection for subscriptions; its pushes go to `pushes`.
    pub(crate) async fn listen(
        &self,
        endpoint: &Endpoint,
        pushes: impl AsyncPushSender,
    ) -> Result<MultiplexedConnection, Fault> {
        self.connect(endpoint, ProtocolVersion::RESP3, self.config().set_push_sender(pushes)).await
    }

    /// No time limits here: the caller sets them, because it knows the call.
    fn config(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT_LIMIT)).set_response_timeout(None)
    }

    async fn connect(
        &self,
        endpoint: &Endpoint,
        protocol: ProtocolVersion,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, Fault> {
        let opened = async {
            let client = self.client(endpoint, protocol)?;
            client.get_multiplexed_async_connection_with_config(&config).await
        };
        // The client's own limit does not cover the handshake.
        match tokio::time::timeout(CONNECT_LIMIT, opened).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(named(endpoint, Fault::of_client(&error))),
            Err(_) => Err(Fault::Lost(format!("{endpoint}: no connection within {CONNECT_LIMIT:?}"))),
        }
    }

    fn client(&self, endpoint: &Endpoint, protocol: ProtocolVersion) -> redis::RedisResult<Client> {
        let info = self.address.info(endpoint, protocol);
        #[cfg(feature = "tls")]
        if self.root_certificate.is_some() && matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. }) {
            let certificates = redis::TlsCertificates { client_tls: None, root_cert: self.root_certificate.clone() };
            return Client::build_with_tls(info, certificates);
        }
        Client::open(info)
    }
}

/// Adds the node to the fault's text.
fn named(endpoint: &Endpoint, fault: Fault) -> Fault {
    match fault {
        Fault::Lost(detail) => Fault::Lost(format!("{endpoint}: {detail}")),
        Fault::Elsewhere(detail) => Fault::Elsewhere(format!("{endpoint}: {detail}")),
        Fault::Refused(detail) => Fault::Refused(format!("{endpoint}: {detail}")),
        other => other,
    }
}
