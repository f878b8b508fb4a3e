//! What surrounds answers: compression, the document's tag, and pages of other origins.

use std::io::Read;

use reqwest::Method;
use serde_json::json;

use crate::kit::{Api, Reply};

/// A request with headers of its own.
async fn asked(api: &Api, method: Method, path: &str, headers: &[(&'static str, &str)]) -> Reply {
    let mut request = api.http.request(method, format!("{}{path}", api.base));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.expect("an answer");
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    Reply { status, headers, bytes: answer.bytes().await.expect("a body").to_vec() }
}

fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.headers.get(name).map(|value| value.to_str().expect("text"))
}

fn unpacked(reply: &Reply) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(&reply.bytes[..]).read_to_end(&mut out).expect("gzip");
    out
}

async fn submit_many(api: &Api) {
    for n in 0..20 {
        api.submit(json!({ "kind": "mail", "tags": { "number": n.to_string() } })).await;
    }
}

on_both_hosts! {
    async fn whole_answers_are_compressed_for_clients_that_ask(kit) {
        let api = kit.api().await;
        submit_many(&api).await;
        for path in ["/v1/executions?limit=100", "/metrics", "/openapi.json"] {
            let packed = asked(&api, Method::GET, path, &[("accept-encoding", "gzip")]).await;
            let plain = asked(&api, Method::GET, path, &[]).await;
            assert_eq!(header(&packed, "content-encoding"), Some("gzip"), "{path}");
            assert_eq!(header(&plain, "content-encoding"), None, "{path}");
            assert!(packed.bytes.len() < plain.bytes.len() / 2, "{path}");
            if path != "/metrics" {
                assert_eq!(unpacked(&packed), plain.bytes, "{path}");
            }
        }
        let small = asked(&api, Method::GET, "/livez", &[("accept-encoding", "gzip")]).await;
        assert_eq!(header(&small, "content-encoding"), None);
    }

    async fn a_stream_that_is_followed_is_never_compressed(kit) {
        let api = kit.api().await;
        submit_many(&api).await;
        for accept in ["text/event-stream", "application/x-ndjson"] {
            let url = format!("{}/v1/events?after=start&follow=true", api.base);
            let request = api.http.get(url).header("accept", accept).header("accept-encoding", "gzip");
            let answer = request.send().await.expect("an answer");
            assert_eq!(answer.headers().get("content-encoding"), None, "{accept}");
        }
    }

    async fn the_document_is_sent_once_to_a_client_that_keeps_it(kit) {
        let api = kit.api().await;
        let first = asked(&api, Method::GET, "/openapi.json", &[]).await;
        assert_eq!(header(&first, "cache-control"), Some("no-cache"));
        let tag = header(&first, "etag").expect("a tag");
        for (known, status) in [(tag, 304), ("\"other\"", 200), ("*", 304), (&format!("\"a\", {tag}")[..], 304)] {
            let again = asked(&api, Method::GET, "/openapi.json", &[("if-none-match", known)]).await;
            assert_eq!(again.status, status, "{known}");
            assert_eq!(again.bytes.is_empty(), status == 304, "{known}");
        }
    }

    async fn pages_of_named_origins_may_ask_and_no_others(kit) {
        let server = kit.outside(&["https://app.example.com"], None).await;
        let api = Api::of(&server);
        let (ours, theirs) = ("https://app.example.com", "https://evil.example");
        let preflight = [("access-control-request-method", "POST"), ("access-control-request-headers", "authorization,content-type")];
        for (origin, allowed) in [(ours, Some(ours)), (theirs, None)] {
            let headers = [&[("origin", origin)][..], &preflight].concat();
            let asked_first = asked(&api, Method::OPTIONS, "/v1/executions", &headers).await;
            assert_eq!(header(&asked_first, "access-control-allow-origin"), allowed);
            let read = asked(&api, Method::GET, "/v1/lanes", &[("origin", origin)]).await;
            assert_eq!((read.status, header(&read, "access-control-allow-origin")), (200, allowed));
        }
        let submit = async |origin| {
            let request = api.http.post(format!("{}/v1/executions", api.base)).header("origin", origin);
            let request = request.header("sec-fetch-site", "cross-site").header("content-type", "application/json");
            request.body(r#"{"kind":"mail"}"#).send().await.expect("an answer").status().as_u16()
        };
        assert_eq!((submit(ours).await, submit(theirs).await), (201, 403));
        server.stop().await;
        // Without a list, no page of another origin may ask.
        let unlisted = asked(&kit.api().await, Method::GET, "/v1/lanes", &[("origin", ours)]).await;
        assert_eq!(header(&unlisted, "access-control-allow-origin"), None);
    }
}

#[test]
fn a_silent_connection_outlasts_the_limits_of_load_balancers() {
    assert!(ff_server::Times::default().idle > std::time::Duration::from_secs(60));
}
