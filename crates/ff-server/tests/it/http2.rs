//! Encrypted connections: HTTP/2 where the client offers it, and certificates that are replaced while the server runs.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use ff_server::{Server, Tls};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::kit::eventually;

/// Only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Writes a fresh certificate for localhost with its key, and returns it.
fn certificate(directory: &Path) -> (CertificateDer<'static>, [std::path::PathBuf; 2]) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let files = ["cert.pem", "key.pem"].map(|name| directory.join(name));
    std::fs::write(&files[0], made.cert.pem()).expect("it is written");
    std::fs::write(&files[1], made.signing_key.serialize_pem()).expect("it is written");
    (made.cert.der().clone(), files)
}

/// A connection to a server with this certificate.
async fn connected(
    server: SocketAddr,
    trusted: &CertificateDer<'static>,
    offers: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offers.iter().map(|offer| offer.to_vec()).collect();
    let stream = TcpStream::connect(server).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").expect("a name"), stream).await
}

/// A client of an HTTP/2 connection, and the task that ends with it.
async fn client(
    server: SocketAddr,
    trusted: &CertificateDer<'static>,
) -> (SendRequest<Body>, tokio::task::JoinHandle<()>) {
    let stream = connected(server, trusted, &[b"h2", b"http/1.1"]).await.expect("the server accepts");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.expect("both speak HTTP/2");
    (sender, tokio::spawn(async move { drop(connection.await) }))
}

fn request(server: SocketAddr, path: &str) -> axum::http::Request<Body> {
    let url = format!("https://localhost:{}{path}", server.port());
    axum::http::Request::get(url).body(Body::empty()).expect("a request")
}

async fn served(server: &Server, sender: &mut SendRequest<Body>, path: &str) -> u16 {
    let answer = sender.send_request(request(server.address(), path)).await.expect("an answer");
    answer.status().as_u16()
}

on_both_hosts! {
    async fn many_requests_share_one_connection_and_a_long_one_holds_up_none(kit) {
        let directory = tempfile::tempdir().expect("a directory");
        let (trusted, [cert, key]) = certificate(directory.path());
        let server = kit.outside(&[], Some(Tls::load(&cert, &key).expect("a certificate"))).await;
        let (mut sender, connection) = client(server.address(), &trusted).await;
        // A stream that is followed stays open beside all others.
        let followed = sender.send_request(request(server.address(), "/v1/events?follow=true")).await.expect("an answer");
        assert_eq!(followed.status().as_u16(), 200);
        let many = (0..100).map(|_| {
            let mut sender = sender.clone();
            let asked = request(server.address(), "/v1/lanes");
            tokio::spawn(async move { sender.send_request(asked).await.expect("an answer").status().as_u16() })
        });
        for answer in many.collect::<Vec<_>>() {
            assert_eq!(answer.await.expect("a task"), 200);
        }
        assert_eq!(served(&server, &mut sender, "/v1/nowhere").await, 404);
        // A server that stops ends what is followed, and the connection with it.
        drop(followed);
        tokio::time::timeout(PATIENCE, server.stop()).await.expect("the server stops");
        tokio::time::timeout(PATIENCE, connection).await.expect("the connection ends").expect("a task");
    }

    async fn a_client_without_http2_is_served_as_before(kit) {
        let directory = tempfile::tempdir().expect("a directory");
        let (trusted, [cert, key]) = certificate(directory.path());
        let server = kit.outside(&[], Some(Tls::load(&cert, &key).expect("a certificate"))).await;
        for offers in [&[][..], &[&b"http/1.1"[..]]] {
            let stream = connected(server.address(), &trusted, offers).await.expect("the server accepts");
            assert_ne!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
            let (mut sender, connection) = handshake.await.expect("both speak HTTP/1.1");
            let connection = tokio::spawn(connection);
            let mut asked = request(server.address(), "/v1/lanes");
            let host = format!("localhost:{}", server.address().port());
            asked.headers_mut().insert("host", host.parse().expect("a host"));
            assert_eq!(sender.send_request(asked).await.expect("an answer").status().as_u16(), 200);
            drop(sender);
            connection.await.expect("a task").expect("it ends well");
        }
        server.stop().await;
    }

    async fn a_certificate_that_was_replaced_is_shown_to_new_connections(kit) {
        let directory = tempfile::tempdir().expect("a directory");
        let (old, [cert, key]) = certificate(directory.path());
        let tls = Tls::load(&cert, &key).expect("a certificate");
        let server = kit.outside(&[], Some(tls.clone())).await;
        let (mut sender, connection) = client(server.address(), &old).await;
        assert_eq!(served(&server, &mut sender, "/v1/lanes").await, 200);

        let (new, _) = certificate(directory.path());
        eventually("the new certificate is shown", async || connected(server.address(), &new, &[b"h2"]).await.ok()).await;
        assert_eq!(served(&server, &mut sender, "/v1/lanes").await, 200, "connections go on");

        // Files that cannot be used change nothing.
        std::fs::write(&cert, "not a certificate").expect("it is written");
        let refused = tls.read_again().expect_err("there is no certificate");
        assert!(refused.to_string().contains("cert.pem"), "{refused}");
        connected(server.address(), &new, &[b"h2"]).await.expect("the certificate in use stays");
        drop(sender);
        server.stop().await;
        tokio::time::timeout(PATIENCE, connection).await.expect("the connection ends").expect("a task");
    }
}
