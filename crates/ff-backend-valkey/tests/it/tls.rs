//! The same calls over TLS, with a certificate created by the test.

use std::process::Command;

use ff_backend_valkey::{Options, ValkeyHost};
use ff_script::{Host, HostError, WakeUp};
use ff_testkit::{Options as ServerOptions, TestServer};

use crate::kit::*;

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_wake_ups_travel_through_tls() {
    let directory = tempfile::tempdir().unwrap();
    let (key, certificate) = (directory.path().join("key.pem"), directory.path().join("cert.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: no openssl to make a certificate with");
        return;
    }
    let tls_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let extra = ["--tls-port", &tls_port.to_string(), "--tls-auth-clients", "no"].map(str::to_owned).to_vec();
    let files = ["--tls-cert-file".to_owned(), path(&certificate), "--tls-key-file".to_owned(), path(&key)];
    let options = ServerOptions { extra: [extra, files.to_vec()].concat(), ..Default::default() };
    let _server = TestServer::start(options).unwrap();

    let url = format!("valkeys://127.0.0.1:{tls_port}");
    let trusted = Options { root_certificate: Some(std::fs::read(&certificate).unwrap()), ..crate::kit::options(&url) };
    let host = ValkeyHost::connect(trusted).await.unwrap();
    assert_eq!(count(&host, route(0), "a").await.unwrap(), 1);
    let mut watch = host.watch();
    host.subscribe(&[route(0)]).await.unwrap();
    assert!(matches!(next(&mut watch).await, WakeUp::Resubscribed { .. }));
    write(&host, route(0), "ff_announce", &[("payload", "x")]).await.unwrap();
    assert_eq!(next_message(&mut watch).await, (route(0), b"x".to_vec()));

    let mut untrusted = crate::kit::options(&url);
    untrusted.deadline = std::time::Duration::from_millis(500);
    let outcome = ValkeyHost::connect(untrusted).await;
    assert!(matches!(outcome, Err(HostError::Unavailable { .. } | HostError::Refused { .. })), "{outcome:?}");
}
