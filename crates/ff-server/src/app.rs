//! What every handler can reach.

use std::ops::Deref;
use std::sync::Arc;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use ff_core::types::{ExecutionId, WaitpointId, is_name};
use ff_engine::Service;
use ff_engine::news::{Listener, News};
use ff_script::{Route, Wake};
use tokio_util::sync::CancellationToken;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::{IntoParams, PartialSchema};

use crate::access::{Caller, Guard};
use crate::metrics::Metrics;
use crate::problem::{Answer, ItemProblem, Problem};
use crate::tails::Tails;
use crate::times::Times;

/// The server's parts; cheap to clone.
#[derive(Clone)]
pub struct App(pub Arc<Rooms>);

/// The parts behind an [`App`].
pub struct Rooms {
    pub service: Service,
    pub tails: Arc<Tails>,
    pub guard: Guard,
    pub metrics: Metrics,
    pub times: Times,
}

impl Deref for App {
    type Target = Rooms;
    fn deref(&self) -> &Rooms {
        &self.0
    }
}

impl Deref for Rooms {
    type Target = Service;
    fn deref(&self) -> &Service {
        &self.service
    }
}

impl App {
    /// A refusal of one item of a batch, counted as if it were the answer to a request of its own.
    pub fn refused_item(&self, problem: &ff_api::Problem) -> ItemProblem {
        self.metrics.process.refused(problem.code());
        problem.facts().clone()
    }

    /// Fails once the caller's token is no longer good.
    pub async fn still_may(&self, caller: &Caller) -> Result<(), ff_api::Problem> {
        self.check_standing(caller).await.map_err(ff_api::Problem::from)
    }

    /// Follows what the store says to the fleet: challenges and losses of instance ids, revoked tokens.
    pub async fn attend(&self, mut news: Listener, stop: CancellationToken) {
        loop {
            let heard = tokio::select! {
                () = stop.cancelled() => return,
                heard = news.next() => heard,
            };
            // The host is closed: there is nobody left to answer for.
            let Some(heard) = heard else { return };
            for item in heard {
                match item {
                    News::Said(Route::Fleet, Wake::Access) | News::Lost(_) | News::LostAny => self.guard.forget(),
                    News::Said(Route::Fleet, wake) => self.fleet.hear(wake).await,
                    News::Said(..) => {}
                }
            }
        }
    }
}

/// JSON, or the problem that kept it away.
pub type JsonAnswer<T> = Answer<Json<T>>;

/// The execution a path names.
pub struct Id(pub ExecutionId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        named(parts, state, "id")
            .await?
            .parse()
            .map(Self)
            .map_err(|_| Problem::invalid("execution_id", "must be a UUID"))
    }
}

/// The lane or instance a path names.
pub struct Name(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let name = named(parts, state, "name").await?;
        if is_name(&name) {
            Ok(Self(name))
        } else {
            Err(Problem::invalid("name", "must be 1 to 64 of A-Z a-z 0-9 . _ - and not dots only"))
        }
    }
}

async fn named<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Answer<String> {
    let params = axum::extract::RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| Problem::invalid("path", "cannot be read"))?;
    params
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
        .ok_or_else(|| Problem::invalid("path", "cannot be read"))
}

/// The waitpoint a path names.
pub struct Waitpoint(pub WaitpointId);

impl<S: Send + Sync> FromRequestParts<S> for Waitpoint {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        named(parts, state, "waitpoint")
            .await?
            .parse()
            .map(Self)
            .map_err(|_| Problem::invalid("waitpoint_id", "must be a UUID"))
    }
}

/// Describes the part of a path that an extractor reads.
macro_rules! path_parameter {
    ( $( $extractor:ty: $name:literal as $schema:expr, $about:literal; )+ ) => { $(
        impl IntoParams for $extractor {
            fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                let parameter = ParameterBuilder::new()
                    .name($name)
                    .parameter_in(ParameterIn::Path)
                    .required(Required::True)
                    .description(Some($about))
                    .schema(Some($schema));
                vec![parameter.build()]
            }
        }
    )+ };
}

path_parameter! {
    Id: "id" as ExecutionId::schema(), "The execution.";
    Waitpoint: "waitpoint" as WaitpointId::schema(), "The waitpoint.";
}
