//! What surrounds every answer: compression for clients that ask for it, and headers for pages of named origins.

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Method, Response, Uri, header};
use hyper::body::Body;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// A smaller body fits into a packet as it is.
const COMPRESSED_FROM_BYTES: u64 = 1_024;
const COMPRESSED: [&str; 8] = [
    "application/json",
    "application/problem+json",
    "application/x-ndjson",
    "application/openmetrics-text",
    "text/plain",
    "text/html",
    "text/css",
    "text/javascript",
];

/// An origin whose pages may ask this server, such as `https://app.example.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

impl std::str::FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text} is not an origin such as https://app.example.com");
        let uri: Uri = text.parse().map_err(|_| bad())?;
        let is_web = matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some();
        if !is_web || text.ends_with('/') || uri.query().is_some() || uri.path() != "/" {
            return Err(bad());
        }
        HeaderValue::from_str(&text.to_ascii_lowercase()).map(Self).map_err(|_| bad())
    }
}

impl Origin {
    /// True for the value of an `Origin` header that names this origin.
    pub fn is(&self, sent: &str) -> bool {
        self.0.as_bytes().eq_ignore_ascii_case(sent.as_bytes())
    }
}

/// The router with what surrounds its answers.
pub fn around(router: Router, origins: &[Origin]) -> Router {
    let gzip = CompressionLayer::new().gzip(true).quality(CompressionLevel::Fastest).compress_when(Whole);
    let router = router.layer(gzip);
    if origins.is_empty() {
        return router;
    }
    let sent = ["authorization", "content-type", "idempotency-key", "last-event-id", "traceparent", "x-request-id"];
    let shown = ["etag", "location", "retry-after", "x-request-id"];
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins.iter().map(|origin| origin.0.clone())))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers(sent.map(HeaderName::from_static))
        .expose_headers(shown.map(HeaderName::from_static));
    router.layer(cors)
}

/// Compresses answers whose whole body is known. A stream that is followed has no size, so it is never held back.
#[derive(Clone, Copy)]
struct Whole;

impl Predicate for Whole {
    fn should_compress<B: Body>(&self, answer: &Response<B>) -> bool {
        let content = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let content = content.split(';').next().unwrap_or("").trim();
        answer.body().size_hint().exact().is_some_and(|size| size >= COMPRESSED_FROM_BYTES)
            && COMPRESSED.contains(&content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for good in ["https://app.example.com", "http://localhost:3000", "https://APP.example.com"] {
            assert!(good.parse::<Origin>().is_ok_and(|origin| origin.is(good)), "{good}");
        }
        for bad in [
            "*",
            "null",
            "app.example.com",
            "https://",
            "https://a.example/",
            "https://a.example/x",
            "ftp://a.example",
            "",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
        let origin: Origin = "https://app.example.com".parse().expect("an origin");
        for other in ["https://app.example.com.evil.example", "http://app.example.com", "https://app.example.com:8443"]
        {
            assert!(!origin.is(other), "{other}");
        }
    }
}
