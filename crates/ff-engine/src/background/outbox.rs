//! Applies what the fleet owes to execution partitions; each effect is safe to repeat and struck when done.

use std::time::Duration;

use ff_script::generated::{AckOutbox, DrainLeases, DrainLeasesReply, Effect, ReadOutbox, ReadOutboxReply};
use ff_script::{Client, Error, Route, Wake};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::share::Owned;
use crate::news::{Listener, News};

const BATCH: i64 = 64;
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// Applies at most one batch of a partition's effects; answers how many were struck.
pub async fn run_once(client: &Client, route: Route) -> Result<usize, Error> {
    let ReadOutboxReply::Effects { items } = client.call(route, &ReadOutbox { limit: BATCH }).await?;
    let mut done = Vec::new();
    for effect in &items {
        if apply(client, effect).await? {
            done.push(effect.id.clone());
        }
    }
    let struck = done.len();
    if struck > 0 {
        client.call(route, &AckOutbox { ids: done }).await?;
    }
    Ok(struck)
}

async fn apply(client: &Client, effect: &Effect) -> Result<bool, Error> {
    let revoke = match effect.r#type.as_str() {
        "yield_leases" => false,
        "revoke_leases" => true,
        other => {
            // A newer server owes something this one does not know; it stays for that server.
            tracing::warn!(effect = other, id = %effect.id, "an effect of unknown type is left alone");
            return Ok(false);
        }
    };
    let (Some(instance), Some(actor)) = (effect.data.get("instance"), effect.data.get("actor")) else {
        tracing::error!(id = %effect.id, "an effect without instance or actor is struck");
        return Ok(true);
    };
    for route in client.execution_routes() {
        loop {
            let call = DrainLeases { instance: instance.clone(), revoke, limit: BATCH, actor: actor.clone() };
            let DrainLeasesReply::Drained { changed, more } = client.call(route, &call).await?;
            if !more || changed == 0 {
                break;
            }
        }
    }
    Ok(true)
}

/// Starts the outbox of the fleet.
pub fn start(client: Client, mut owned: Owned, tasks: &mut JoinSet<()>, stop: CancellationToken) {
    let mut news = Listener::new(client.host().as_ref());
    tasks.spawn(async move {
        let mut pending = false;
        loop {
            if pending && owned.borrow().contains(&Route::Fleet) {
                match run_once(&client, Route::Fleet).await {
                    Ok(struck) => pending = i64::try_from(struck) == Ok(BATCH),
                    Err(error) => tracing::warn!(%error, "the outbox could not be drained"),
                }
            } else {
                pending = false;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(AFTER_FAILURE), if pending => {}
                changed = owned.changed() => match changed {
                    Ok(()) => pending = true,
                    Err(_) => return,
                },
                heard = news.next() => match heard {
                    Some(heard) => pending |= heard.iter().any(concerns),
                    None => return,
                },
            }
        }
    });
}

fn concerns(news: &News) -> bool {
    match news {
        News::Said(Route::Fleet, Wake::Fleet) | News::LostAny => true,
        News::Said(..) => false,
        News::Lost(routes) => routes.contains(&Route::Fleet),
    }
}
