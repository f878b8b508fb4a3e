//! The server's certificate: read from PEM files, used for every connection.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A certificate and its key. Its `Debug` shows neither.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// The certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {what} in {path}: {problem}", path = path.display())]
pub struct BadTls {
    what: &'static str,
    path: PathBuf,
    problem: String,
}

impl Tls {
    /// The certificate (with its chain, leaf first) and the key in these PEM files.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, BadTls> {
        let bad = |what, path: &Path, problem: String| BadTls { what, path: path.to_owned(), problem };
        let bad_cert = |problem| bad("the certificate", cert, problem);
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect)
            .map_err(|error| bad_cert(error.to_string()))?;
        if chain.is_empty() {
            return Err(bad_cert("there is none".to_owned()));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| bad("the key", key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions")
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| bad_cert(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Agrees on the encryption of a connection.
    pub async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(redacted)")
    }
}
