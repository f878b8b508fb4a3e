//! A worker that calls the store from its own process: it answers for itself, and hears of what concerns its registration.

use std::time::Duration;

use ff_core::EngineError;
use ff_core::error_code::ErrorCode;
use ff_script::generated::WorkerState;
use ff_script::{Error, Route, Wake};
use tokio::time::Instant;
use uuid::Uuid;

use crate::news::{Listener, News};
use crate::operations::{Operations, refused_with};

/// How long changes of the fleet are collected before a worker looks whether one concerns it.
const FLEET_PAUSE: Duration = Duration::from_millis(50);

/// Where a registration stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is alive.
    Known {
        /// An operator asked the worker to take nothing new.
        draining: bool,
    },
    /// It ran out or was removed.
    Unknown,
    /// Another process has it now.
    Replaced,
}

impl Operations {
    /// What the store says about the registration of this incarnation.
    pub async fn standing(&self, instance: &str, incarnation: Uuid) -> Result<Standing, Error> {
        match self.worker(instance).await {
            Ok(worker) if worker.incarnation != Some(incarnation) => Ok(Standing::Replaced),
            Ok(worker) => Ok(Standing::Known { draining: worker.state == WorkerState::Draining }),
            Err(Error::Engine(EngineError::NotFound { .. })) => Ok(Standing::Unknown),
            Err(error) => Err(error),
        }
    }

    /// Says that a worker of this process lives, unless another process has its registration.
    pub async fn keep_alive(&self, instance: &str, incarnation: Uuid) -> Result<Standing, Error> {
        if self.standing(instance, incarnation).await? == Standing::Replaced {
            return Ok(Standing::Replaced);
        }
        let beaten = self.heartbeat(vec![instance.to_owned()]).await?;
        Ok(match beaten.first() {
            Some(item) if item.known => Standing::Known { draining: item.draining },
            _ => Standing::Unknown,
        })
    }

    /// Answers challenges of a worker of this process, and returns when its standing is another than `draining` says.
    pub async fn attend(&self, instance: &str, incarnation: Uuid, draining: bool) -> Standing {
        let mut news = Listener::new(self.client().host().as_ref());
        // What was said before anyone listened is looked up once.
        let mut look_at = Some(Instant::now() + FLEET_PAUSE);
        loop {
            let pause = async {
                match look_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let heard = tokio::select! {
                heard = news.next() => heard,
                () = pause => {
                    look_at = None;
                    match self.standing(instance, incarnation).await {
                        // The next heartbeat registers again.
                        Ok(Standing::Unknown) | Err(_) => {}
                        Ok(Standing::Known { draining: now }) if now == draining => {}
                        Ok(standing) => return standing,
                    }
                    continue;
                }
            };
            let Some(heard) = heard else { return std::future::pending().await };
            for item in heard {
                let mut doubt =
                    |after| look_at = Some(look_at.unwrap_or(Instant::now() + after).min(Instant::now() + after));
                match item {
                    News::Said(Route::Fleet, Wake::Challenge { instance: asked, nonce }) if asked == instance => {
                        let replaced = self.answer_for(instance, incarnation, nonce).await;
                        if replaced {
                            doubt(Duration::ZERO);
                        }
                    }
                    News::Said(Route::Fleet, Wake::Replaced { instance: lost }) if lost == instance => {
                        doubt(Duration::ZERO);
                    }
                    News::Said(Route::Fleet, Wake::Fleet) => doubt(FLEET_PAUSE),
                    News::Lost(routes) if routes.contains(&Route::Fleet) => doubt(FLEET_PAUSE),
                    News::LostAny => doubt(FLEET_PAUSE),
                    _ => {}
                }
            }
        }
    }

    /// Answers a challenge; true when the process turns out to be replaced.
    pub(super) async fn answer_for(&self, instance: &str, incarnation: Uuid, nonce: Uuid) -> bool {
        match self.answer_challenge(instance, incarnation, nonce).await {
            Ok(()) => false,
            Err(error) => {
                tracing::warn!(%error, instance, "a challenge of a worker's instance id could not be answered");
                refused_with(&error) == Some(ErrorCode::InstanceInUse)
            }
        }
    }
}
