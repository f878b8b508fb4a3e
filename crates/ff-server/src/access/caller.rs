//! The principal of a request, for its handler, and the token it was known by.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use ff_engine::Principal;

use crate::problem::{Answer, Problem};

/// A principal, and the token it was known by.
#[derive(Clone)]
pub struct Caller {
    principal: Arc<Principal>,
    /// The digest of a token that can expire or be revoked while an answer takes its time.
    token: Option<Arc<str>>,
}

impl Caller {
    /// A principal that nothing can take its rights from.
    pub fn for_good(principal: Principal) -> Self {
        Self { principal: Arc::new(principal), token: None }
    }

    /// A principal for as long as its token is good.
    pub fn by_token(principal: Arc<Principal>, digest: String) -> Self {
        Self { principal, token: Some(digest.into()) }
    }

    /// The digest of a token that can expire or be revoked.
    pub fn token(&self) -> Option<&Arc<str>> {
        self.token.as_ref()
    }
}

impl std::ops::Deref for Caller {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.principal
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Answer<Self> {
        // Only a route outside of the guard has none, and there is no such route.
        parts.extensions.get::<Caller>().cloned().ok_or_else(|| Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR))
    }
}
