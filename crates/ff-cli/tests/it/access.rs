//! A server that asks for tokens over TLS, and the commands that talk to it.

use std::path::Path;

use crate::kit::{Server, err, out};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;

/// Writes a certificate for this machine, its key, and the certificate that signed it: cert.pem, key.pem, ca.pem.
fn certify(directory: &Path) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate");
    let names = ["localhost", "127.0.0.1"].map(str::to_owned);
    let key = KeyPair::generate().expect("a key");
    let own = CertificateParams::new(names).expect("names").signed_by(&key, &authority).expect("a certificate");
    for (name, text) in [("cert.pem", own.pem()), ("key.pem", key.serialize_pem()), ("ca.pem", authority.pem())] {
        std::fs::write(directory.join(name), text).expect("a file");
    }
}

#[test]
fn an_encrypted_server_is_used_with_its_certificate_and_a_token() {
    let directory = tempfile::tempdir().expect("a directory");
    certify(directory.path());
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (cert, key, ca, root) = (at("cert.pem"), at("key.pem"), at("ca.pem"), format!("@{}", at("store/root-token")));
    let store = format!("embedded:{}", at("store"));
    let server = Server::letting_in(directory, store, &["--tls-cert", &cert, "--tls-key", &key]);
    assert!(server.url.starts_with("https://"), "{}", server.url);

    // Neither a stranger's certificate nor a plain line is talked to.
    let unknown = server.ff_with(&["list"], "", &[("FF_TOKEN", &root)]);
    assert!(!unknown.status.success(), "{}", out(&unknown));
    let plain = server.url.replace("https://", "http://");
    let plain = server.ff_with(&["list"], "", &[("FF_TOKEN", &root), ("FF_URL", &plain)]);
    assert_eq!(plain.status.code(), Some(2));
    assert!(err(&plain).contains(&format!("use {}", server.url)), "{}", err(&plain));

    let trusting = [("FF_CA_CERT", ca.as_str()), ("FF_TOKEN", root.as_str())];
    let nobody = server.ff_with(&["list"], "", &[("FF_CA_CERT", &ca), ("FF_TOKEN", "ff_nobody-at-all-and-never-was")]);
    assert!(err(&nobody).contains("unauthenticated") && err(&nobody).contains("root-token"), "{}", err(&nobody));
    let word = server.ff_with(&["list", "--token", "wrong"], "", &[("FF_CA_CERT", &ca)]);
    assert!(err(&word).contains("the token is unknown, was revoked or has expired"), "{}", err(&word));
    let id = out(&server.ff_with(&["submit", "--kind", "k", "-o", "ids"], "", &trusting)).trim().to_owned();

    // A worker has a token of its own, and may do nothing else with it.
    let made = out(&server.ff_with(&["token", "create", "sh", "--role", "worker"], "", &trusting)).trim().to_owned();
    let own = [("FF_CA_CERT", ca.as_str()), ("FF_TOKEN", made.as_str())];
    let refused = server.ff_with(&["submit", "--kind", "k"], "", &own);
    assert!(err(&refused).contains("forbidden") && err(&refused).contains("ff token create"), "{}", err(&refused));
    let worker = server.going_with(&["worker", "exec", "--lane", "default", "--kind", "k", "--", "echo", "7"], &own);
    worker.complains("serves k");
    let result = server.ff_with(&["result", &id, "--wait-ms", "30000", "-o", "json"], "", &trusting);
    let result: Value = serde_json::from_slice(&result.stdout).unwrap_or_else(|_| panic!("{}", err(&result)));
    assert_eq!((&result["outcome"], &result["result"]), (&"success".into(), &7.into()), "{result}");
    assert_eq!(worker.end("-TERM"), Some(0));

    let listed = out(&server.ff_with(&["token", "list"], "", &trusting));
    assert!(listed.contains("sh ") && listed.contains("worker") && !listed.contains(&made), "{listed}");
    let token_id = out(&server.ff_with(&["token", "list", "-o", "ids"], "", &trusting)).trim().to_owned();
    assert!(server.ff_with(&["token", "revoke", &token_id], "", &trusting).status.success());
    assert_eq!(server.ff_with(&["token", "revoke", &token_id], "", &trusting).status.code(), Some(4));
    let shown = out(&server.ff_with(&["show", &id], "", &trusting));
    assert!(shown.contains("success"), "{shown}");
}

#[test]
fn a_network_is_served_with_credentials_and_encryption_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let start = |flags: &[&str]| {
        let mut args = vec!["server", "--listen", "0.0.0.0:0", "--data-dir"];
        let data = directory.path().display().to_string();
        args.push(&data);
        args.extend(flags);
        crate::kit::ff(&args)
    };
    let open = start(&["--no-auth"]);
    assert!(err(&open).contains("--tls-cert") && err(&open).contains("127.0.0.1"), "{}", err(&open));
    let clear = start(&[]);
    assert!(err(&clear).contains("--tls-cert") && err(&clear).contains("--behind-tls-proxy"), "{}", err(&clear));
    let half = start(&["--tls-cert", "cert.pem"]);
    assert!(err(&half).contains("--tls-key"), "{}", err(&half));
    for refused in [open, clear, half] {
        assert!(!refused.status.success());
    }
}

#[test]
fn a_plain_server_says_which_scheme_to_use() {
    let server = Server::start();
    let refused = server.ff(&["list", "--url", &server.url.replace("http://", "https://")]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains(&format!("use {}", server.url)), "{}", err(&refused));
}

#[test]
fn the_root_token_is_shown_by_the_start_that_makes_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").to_string();
    let start =
        || crate::kit::ff(&["server", "--listen", &port, "--data-dir", &directory.path().display().to_string()]);
    let (first, second) = (start(), start());
    let token = std::fs::read_to_string(directory.path().join("server/root-token")).expect("it was made");
    assert!(err(&first).contains(token.trim()), "nobody would know it otherwise: {}", err(&first));
    assert!(!err(&second).contains(token.trim()));
    for refused in [first, second] {
        assert_eq!(refused.status.code(), Some(1));
        let said = err(&refused);
        assert_eq!(said.matches("Address already in use").count(), 1, "{said}");
        assert!(said.contains("choose another address with --listen"), "{said}");
    }
}
