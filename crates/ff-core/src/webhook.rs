//! The address of a completion webhook: the checks that need no name resolution.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// The longest address, in bytes.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;

/// An address that a webhook may be sent to: `https://` or `http://`, with a host, without credentials or fragment.
///
/// The server decides whether it sends there: it knows which networks it may reach, and over which scheme.
///
/// ```
/// use ff_core::webhook::WebhookUrl;
/// let url: WebhookUrl = "https://hooks.example.org/done?from=ff".parse().unwrap();
/// assert_eq!(url.as_url().host_str(), Some("hooks.example.org"));
/// assert!("https://user:secret@example.org/".parse::<WebhookUrl>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl(Url);

/// Why a text is not the address of a webhook. The error repeats none of it, because it may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWebhookUrl {
    /// Longer than allowed.
    #[error("must be at most {WEBHOOK_URL_BYTES_MAX} bytes long, got {0}")]
    TooLong(usize),
    /// Not an address at all.
    #[error("must be an address such as https://example.org/done: {0}")]
    Malformed(url::ParseError),
    /// A space, a control character or a fragment.
    #[error("must hold no white space, no control character and no fragment (#)")]
    Character,
    /// Neither https nor http.
    #[error("must begin with https://, not {0}:")]
    Scheme(String),
    /// A user or a password in it.
    #[error("must not hold a user or a password; the receiver checks the signature instead")]
    Credentials,
}

impl WebhookUrl {
    /// The parsed address.
    #[must_use]
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }
}

impl FromStr for WebhookUrl {
    type Err = InvalidWebhookUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > WEBHOOK_URL_BYTES_MAX {
            return Err(InvalidWebhookUrl::TooLong(text.len()));
        }
        // A URL parser silently drops some of these.
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#') {
            return Err(InvalidWebhookUrl::Character);
        }
        let url = Url::parse(text).map_err(InvalidWebhookUrl::Malformed)?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(InvalidWebhookUrl::Scheme(url.scheme().to_owned()));
        }
        // Requires `://`: a URL parser also accepts `https:example.org` and backslashes.
        let after = &text[url.scheme().len()..];
        if !after.starts_with("://") || text.contains('\\') || after[3..].starts_with('/') {
            return Err(InvalidWebhookUrl::Malformed(url::ParseError::EmptyHost));
        }
        let authority = &after[3..after[3..].find(['/', '?']).map_or(after.len(), |end| end + 3)];
        if authority.contains('@') {
            return Err(InvalidWebhookUrl::Credentials);
        }
        Ok(Self(url))
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_or_refused_for_a_reason() {
        for good in [
            "https://example.org",
            "https://example.org/",
            "https://example.org:8443/a/b?c=d&e=f@g",
            "http://10.0.0.1/x",
            "https://[2001:db8::1]:443/x",
            "HTTPS://Example.ORG/Path",
            "https://bücher.example/ü",
        ] {
            assert!(good.parse::<WebhookUrl>().is_ok(), "{good}: {:?}", good.parse::<WebhookUrl>());
        }
        let long = format!("https://example.org/{}", "a".repeat(WEBHOOK_URL_BYTES_MAX));
        for (bad, why) in [
            ("", "must be an address"),
            ("example.org/x", "must be an address"),
            ("https://", "must be an address"),
            ("https:example.org", "must be an address"),
            ("https:///example.org", "must be an address"),
            ("https://example.org\\@evil.example/", "must be an address"),
            ("https://exa mple.org/", "must hold no white space"),
            ("https://example.org/\n", "must hold no white space"),
            ("https://example.org/#part", "must hold no white space"),
            ("ftp://example.org/", "must begin with https://, not ftp:"),
            ("file:///etc/passwd", "must begin with https://, not file:"),
            ("https://user@example.org/", "must not hold a user"),
            ("https://user:secret@example.org/", "must not hold a user"),
            ("https://@example.org/", "must not hold a user"),
            (long.as_str(), "must be at most 2048 bytes long, got 2068"),
        ] {
            let refused = bad.parse::<WebhookUrl>().expect_err(bad).to_string();
            assert!(refused.starts_with(why), "{bad}: {refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn numbers_in_disguise_are_read_as_addresses() {
        for (text, host) in [
            ("http://2130706433/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://0177.0.0.1/", "127.0.0.1"),
            ("http://127.1/", "127.0.0.1"),
            ("http://①②⑦.⓪.⓪.①/", "127.0.0.1"),
        ] {
            assert_eq!(text.parse::<WebhookUrl>().unwrap().as_url().host_str(), Some(host), "{text}");
        }
    }
}
