//! `/openapi.json` and the page that shows it: three files of our own, and nothing from anywhere else.

use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use utoipa_axum::routes;

use crate::openapi::{Described, openapi_json};

/// Scripts, styles and requests go to this server only; nothing stands inline, and nobody may frame the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

pub fn routes() -> Described {
    Described::new().with(routes!(document)).with(routes!(page)).with(routes!(style)).with(routes!(script))
}

/// This document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    responses(
        (status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json"),
        (status = 304, description = "The document is the one that If-None-Match names"),
    ),
)]
async fn document(headers: HeaderMap) -> Response {
    // Weak: the document may travel compressed.
    static ETAG: LazyLock<HeaderValue> = LazyLock::new(|| {
        let tag = format!("W/\"{}\"", hex(&Sha256::digest(openapi_json())[..16]));
        HeaderValue::from_str(&tag).expect("a digest is printable")
    });
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.trim_start_matches("W/") == ETAG.to_str().expect("it is text").trim_start_matches("W/")
    });
    // A copy may be kept, and has to be asked for each time.
    let kept = [(header::ETAG, ETAG.clone()), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, kept).into_response(),
        false => (kept, [(header::CONTENT_TYPE, "application/json")], openapi_json()).into_response(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The page that shows this document; where the server asks for tokens, it asks for one.
#[utoipa::path(get, path = "/docs", responses((status = 200, body = String, content_type = "text/html")))]
async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("../openapi/page.html"))
}

/// How the page looks.
#[utoipa::path(get, path = "/docs/page.css", responses((status = 200, body = String, content_type = "text/css")))]
async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("../openapi/page.css"))
}

/// What the page does.
#[utoipa::path(get, path = "/docs/page.js", responses((status = 200, body = String, content_type = "text/javascript")))]
async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../openapi/page.js"))
}

fn file(content: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, text).into_response()
}
