//! The server's certificate: read from PEM files, used for every connection, and read again when the files change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A new connection looks at the files when the last look was longer ago than this.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A certificate and its key. Its `Debug` shows neither.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    files: Arc<Files>,
}

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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let looked = (stamp(cert, key), Instant::now());
        let current = RwLock::new(Arc::new(read(cert, key, &provider)?));
        let files = Arc::new(Files {
            cert: cert.to_owned(),
            key: key.to_owned(),
            provider: Arc::clone(&provider),
            current,
            looked: Mutex::new(looked),
        });
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&files) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), files })
    }

    /// Reads the files again. The certificate in use stays when they cannot be used.
    pub fn read_again(&self) -> Result<(), BadTls> {
        self.files.read_again()
    }

    /// Agrees on the encryption of a connection.
    pub async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        self.files.look();
        self.acceptor.accept(stream).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(redacted)")
    }
}

/// Time and size of both files: other values mean that a file was written.
type Stamp = [Option<(SystemTime, u64)>; 2];

struct Files {
    cert: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
    looked: Mutex<(Stamp, Instant)>,
}

impl Files {
    /// Takes over files that were written since the last look.
    fn look(&self) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.1.elapsed() < LOOK_EVERY {
            return;
        }
        let now = stamp(&self.cert, &self.key);
        let is_new = now != looked.0;
        *looked = (now, Instant::now());
        drop(looked);
        if is_new {
            match self.read_again() {
                Ok(()) => tracing::info!("the certificate was read again"),
                // One of the two files may be written a moment after the other; that changes the stamp once more.
                Err(error) => tracing::warn!(%error, "the certificate in use stays"),
            }
        }
    }

    fn read_again(&self) -> Result<(), BadTls> {
        let new = Arc::new(read(&self.cert, &self.key, &self.provider)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files(redacted)")
    }
}

impl ResolvesServerCert for Files {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn stamp(cert: &Path, key: &Path) -> Stamp {
    [cert, key].map(|path| {
        let about = std::fs::metadata(path).ok()?;
        Some((about.modified().ok()?, about.len()))
    })
}

fn read(cert: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, BadTls> {
    let bad = |what, path: &Path, problem: String| BadTls { what, path: path.to_owned(), problem };
    let bad_cert = |problem| bad("the certificate", cert, problem);
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(cert).and_then(Iterator::collect).map_err(|error| bad_cert(error.to_string()))?;
    if chain.is_empty() {
        return Err(bad_cert("there is none".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| bad("the key", key, error.to_string()))?;
    CertifiedKey::from_der(chain, secret, provider).map_err(|error| bad_cert(error.to_string()))
}
