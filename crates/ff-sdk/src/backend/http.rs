//! The engine behind `ff server`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ff_api::problem::Facts;
use ff_api::{Ask, Operation};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::http_submissions::Submissions;
use super::{Backend, Reach, Transport};
use crate::SdkError;
use crate::config::Secret;
use crate::http::{HttpClient, HttpOptions};

/// A backend over `ff server`.
#[derive(Clone)]
pub struct Http {
    pub(super) client: HttpClient,
    pub(super) submissions: Arc<Submissions>,
}

impl Http {
    /// A backend of the server at this URL, e.g. `http://127.0.0.1:7433`, whose certificate the one in `ca_cert` signed.
    pub fn new(url: &str, token: Option<&Secret>, ca_cert: Option<&Path>) -> Result<Self, SdkError> {
        let (token, ca_cert) = (token.cloned(), ca_cert.map(Path::to_owned));
        let client = HttpClient::new(HttpOptions { token, ca_cert, ..HttpOptions::new(url) })?;
        Ok(Self { client, submissions: Arc::default() })
    }

    /// Carries one operation; the server may take `wait` longer than usual.
    pub(crate) async fn ask<O>(&self, ask: &Ask<O>, wait: Duration) -> Result<O::Answer, SdkError>
    where
        O: Operation<Query: Serialize, Body: Serialize, Answer: DeserializeOwned>,
    {
        Ok(self.client.ask(ask, wait).await?.value)
    }
}

/// The error behind the problem of an item.
pub(super) fn of_item(facts: Facts) -> SdkError {
    ff_api::Problem::from(facts).into()
}

impl Backend for Http {
    fn reach(&self) -> Reach {
        Reach::http(self.clone())
    }

    fn rests_in_place(&self) -> bool {
        true
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }
}
