//! Webhooks of a real `ff server`: killed in between, over TLS, and by the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::kit::{Server, err, out};
use ff_keys::{WebhookHeaders, verify_webhook};
use ff_testkit::{Aof, TestServer};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(180);
const LOOPBACK: &[&str] = &["--no-auth", "--webhook-allow", "127.0.0.0/8"];

/// One request as it came.
#[derive(Clone, Debug)]
struct Heard {
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Heard {
    fn id(&self) -> &str {
        &self.headers["ff-webhook-id"]
    }

    #[track_caller]
    fn verify(&self, key: &str) {
        let (id, timestamp) = (self.id(), &self.headers["ff-webhook-timestamp"]);
        let headers = WebhookHeaders { id, timestamp, signature: &self.headers["ff-webhook-signature"] };
        // However long ago it came: what counts here is who signed it.
        let signed_at = timestamp.parse().expect("a time");
        assert_eq!(verify_webhook(key, &headers, &self.body, signed_at), Ok(()));
    }
}

/// What came to a receiver, and how many it lets wait for ever before it answers.
#[derive(Default)]
struct Desk {
    heard: Mutex<Vec<Heard>>,
    came: Condvar,
    silent: AtomicUsize,
}

impl Desk {
    /// Waits until what came is enough.
    fn until(&self, what: &str, enough: impl Fn(&[Heard]) -> bool) -> Vec<Heard> {
        let began = Instant::now();
        let mut heard = self.heard.lock().expect("a lock");
        while !enough(&heard) {
            assert!(began.elapsed() < SOON, "{what}: {} came within {SOON:?}", heard.len());
            heard = self.came.wait_timeout(heard, Duration::from_millis(200)).expect("a lock").0;
        }
        heard.clone()
    }
}

/// Listens for webhooks; through TLS when it has a certificate. Lives as long as the test.
fn receive(listener: TcpListener, desk: Arc<Desk>, tls: Option<Arc<rustls::ServerConfig>>) {
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (desk, tls) = (Arc::clone(&desk), tls.clone());
            std::thread::spawn(move || match tls {
                None => serve(stream, &desk),
                Some(config) => {
                    let connection = rustls::ServerConnection::new(config).expect("a connection");
                    serve(rustls::StreamOwned::new(connection, stream), &desk);
                }
            });
        }
    });
}

/// Answers one request with 204 and closes, or lets it wait.
fn serve(stream: impl Read + Write, desk: &Desk) {
    let mut reader = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some((name, value)) = line.trim().split_once(": ") {
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        line.clear();
    }
    let Some(length) = headers.get("content-length").and_then(|length| length.parse().ok()) else { return };
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    desk.heard.lock().expect("a lock").push(Heard { headers, body });
    desk.came.notify_all();
    let silent = desk.silent.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
    if silent {
        // Until the other side is gone.
        let _ = reader.read_line(&mut line);
        return;
    }
    let _ = reader.get_mut().write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    let _ = reader.get_mut().flush();
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

fn submit(server: &Server, url: &str) -> String {
    let id = out(&server.ff(&["submit", "--kind", "mail", "--webhook", url, "-o", "ids"])).trim().to_owned();
    out(&server.ff(&["cancel", &id, "--reason", "enough"]));
    id
}

fn shown(server: &Server, id: &str) -> Value {
    serde_json::from_str(&out(&server.ff(&["show", id, "-o", "json"]))).expect("JSON")
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < SOON, "{what}: not within {SOON:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn webhook_in(server: &Server, id: &str, state: &str) -> Value {
    eventually(&format!("the webhook of {id} is {state}"), || {
        let webhook = shown(server, id)["webhook"].clone();
        (webhook["state"] == state).then_some(webhook)
    })
}

fn key(server: &Server) -> String {
    out(&server.ff(&["webhook", "key"])).trim().to_owned()
}

/// A receiver that is down, and one that is asked and does not answer, while the server dies: each webhook arrives, under its id.
fn survive(mut server: Server) {
    let (silent, at) = listener();
    let asked = Arc::new(Desk { silent: AtomicUsize::new(1), ..Desk::default() });
    receive(silent, Arc::clone(&asked), None);
    let in_flight = submit(&server, &format!("http://{at}/"));
    asked.until("the first try", |heard| !heard.is_empty());

    let (down, at) = listener();
    drop(down);
    let owed: Vec<String> = (0..5).map(|n| submit(&server, &format!("http://{at}/{n}"))).collect();
    let ids: BTreeSet<String> = owed
        .iter()
        .map(|id| {
            let webhook = eventually("a try has failed", || {
                Some(shown(&server, id)["webhook"].clone()).filter(|webhook| webhook["tries"] != 0)
            });
            assert_eq!(webhook["state"], "pending", "{webhook}");
            assert!(webhook["error"].as_str().is_some_and(|error| error.starts_with("cannot connect")), "{webhook}");
            webhook["delivery_id"].as_str().expect("an id").to_owned()
        })
        .collect();
    assert_eq!(ids.len(), owed.len());
    let before = key(&server);
    server.kill_and_start_again();

    let desk = Arc::new(Desk::default());
    receive(TcpListener::bind(at).expect("the port is free"), Arc::clone(&desk), None);
    let heard = desk.until("all of them", |heard| {
        heard.iter().map(|one| one.id().to_owned()).collect::<BTreeSet<_>>().len() == owed.len()
    });
    assert_eq!(key(&server), before, "the key is as it was");
    for one in &heard {
        one.verify(&before);
        assert!(ids.contains(one.id()), "{} is not one of {ids:?}", one.id());
    }
    for id in &owed {
        assert!(webhook_in(&server, id, "delivered")["tries"].as_i64() >= Some(2));
    }
    // What was under way when the server died is sent again when nobody else can be at it any more.
    let heard = asked.until("the second try", |heard| heard.len() > 1);
    assert!(heard.iter().all(|one| one.id() == heard[0].id()));
    assert!(heard.iter().all(|one| one.body == heard[0].body));
    assert_eq!(webhook_in(&server, &in_flight, "delivered")["delivery_id"], heard[0].id());

    let (directory, store) = server.stop();
    let checked = std::process::Command::new(env!("CARGO_BIN_EXE_ff"))
        .args(["fsck", "--store", &store])
        .current_dir(directory.path())
        .output()
        .expect("ff runs");
    assert!(checked.status.success(), "{}{}", String::from_utf8_lossy(&checked.stdout), err(&checked));
}

#[test]
fn an_embedded_server_that_was_killed_delivers_what_it_owes() {
    if !ff_testkit::tier::is_sampled("an_embedded_server_that_was_killed_delivers_what_it_owes", 3) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("embedded:{}", directory.path().join("store").display());
    survive(Server::letting_in(directory, store, LOOPBACK));
}

#[test]
fn a_server_on_valkey_that_was_killed_delivers_what_it_owes() {
    if !ff_testkit::tier::is_sampled("a_server_on_valkey_that_was_killed_delivers_what_it_owes", 3) {
        return;
    }
    let valkey =
        TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() }).expect("valkey");
    survive(Server::letting_in(tempfile::tempdir().expect("a directory"), valkey.url(), LOOPBACK));
}

/// A certificate for localhost: its file, and what a receiver serves with it.
fn certificate(directory: &std::path::Path) -> (std::path::PathBuf, Arc<rustls::ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let file = directory.join("root.pem");
    std::fs::write(&file, made.cert.pem()).expect("the directory can be written to");
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("the certificate can be used");
    (file, Arc::new(config))
}

#[test]
fn a_receiver_is_believed_only_with_a_certificate_the_server_trusts() {
    let directory = tempfile::tempdir().expect("a directory");
    let (trusted, config) = certificate(directory.path());
    let other = tempfile::tempdir().expect("a directory");
    let (_, stranger) = certificate(other.path());
    let store = format!("embedded:{}", directory.path().join("store").display());
    let trust = [("SSL_CERT_FILE", trusted.to_str().expect("a path"))];
    let server = Server::with(directory, store, &[&LOOPBACK[1..], &["--webhook-allow", "::1"]].concat(), &trust);

    let (receiver, at) = listener();
    let desk = Arc::new(Desk::default());
    receive(receiver, Arc::clone(&desk), Some(config));
    let id = submit(&server, &format!("https://localhost:{}/done", at.port()));
    webhook_in(&server, &id, "delivered");
    let heard = desk.until("one", |heard| !heard.is_empty());
    heard[0].verify(&key(&server));
    assert_eq!(heard[0].headers["host"], format!("localhost:{}", at.port()));

    let (receiver, at) = listener();
    let desk = Arc::new(Desk::default());
    receive(receiver, Arc::clone(&desk), Some(stranger));
    let id = submit(&server, &format!("https://localhost:{}/done", at.port()));
    let failed = eventually("a try has failed", || {
        Some(shown(&server, &id)["webhook"].clone()).filter(|webhook| webhook["tries"] != 0)
    });
    assert!(failed["error"].as_str().is_some_and(|error| error.contains("certificate")), "{failed}");
    assert!(desk.heard.lock().expect("a lock").is_empty());
}

#[test]
fn webhooks_by_the_command_line() {
    let server = Server::start();
    let refused = server.ff(&["submit", "--kind", "mail", "--webhook", "http://127.0.0.1/"]);
    assert!(!refused.status.success());
    assert!(
        err(&refused).contains("completion_webhook cannot be reached: the host is a loopback address"),
        "{}",
        err(&refused)
    );
    let id = submit(&server, "https://localhost:1/");
    eventually("the try is shown", || {
        let said = out(&server.ff(&["show", &id]));
        said.lines().any(|line| line.starts_with("webhook          pending after 1 try, next ")).then_some(())
    });
    let first = key(&server);
    assert!(first.starts_with("whk_"), "{first}");
    assert_ne!(out(&server.ff(&["webhook", "key", "--namespace", "other"])).trim(), first);
    out(&server.ff(&["key", "rotate", "--grace-ms", "60000"]));
    let both = server.ff(&["webhook", "key"]);
    assert_ne!(out(&both).trim(), first);
    assert!(err(&both).contains("signs until"), "{}", err(&both));
    let all: Value = serde_json::from_str(&out(&server.ff(&["webhook", "key", "-o", "json"]))).expect("JSON");
    assert_eq!(all["keys"][1]["key"], json!(first));
    assert!(out(&server.ff(&["webhook", "key", "-o", "ids"])).trim() == all["keys"][0]["key_id"]);
}

#[test]
fn a_server_says_what_a_network_is() {
    let refused = std::process::Command::new(env!("CARGO_BIN_EXE_ff"))
        .args(["server", "--no-auth", "--webhook-allow", "nowhere"])
        .output()
        .expect("ff runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("nowhere is not a network such as 10.0.0.0/8"), "{}", err(&refused));
}
