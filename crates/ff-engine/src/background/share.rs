//! Which partitions this server looks after: shared by rendezvous hashing over the live servers.
//!
//! **Invariant:** ownership only avoids double work. Everything that runs by it is safe when two servers do it.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use ff_script::generated::{HeartbeatServer, HeartbeatServerReply};
use ff_script::{Client, Error, Route};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::feed::Readers;

const BEAT: Duration = Duration::from_secs(1);
/// A server that is alone has nobody to tell that it lives but those that come, and a record lasts two seconds. A beat is four
/// commands of the store, most of what an idle server costs.
const BEAT_ALONE: Duration = Duration::from_millis(1_800);

/// The routes this server owns, as they change.
pub type Owned = watch::Receiver<Arc<BTreeSet<Route>>>;

/// Lets the starter wait until the server is on record.
pub struct FirstBeat(oneshot::Receiver<Result<(), Error>>);

impl FirstBeat {
    /// Waits for the first heartbeat; its failure is the store's.
    pub async fn first_beat(self) -> Result<(), Error> {
        self.0.await.unwrap_or(Ok(()))
    }
}

/// Starts the heartbeat of this server.
pub fn start(
    client: Client,
    server_id: Uuid,
    readers: Readers,
    tasks: &mut JoinSet<()>,
    stop: CancellationToken,
) -> (FirstBeat, Owned) {
    let (owned, owners) = watch::channel(Arc::new(BTreeSet::new()));
    let (first, first_beat) = oneshot::channel();
    tasks.spawn(async move {
        let mut first = Some(first);
        loop {
            let mut pause = BEAT;
            let beat = beat(&client, server_id, &readers).await;
            match &beat {
                Ok(live) => {
                    if matches!(live[..], [only] if only == server_id) {
                        pause = BEAT_ALONE;
                    }
                    let mine = Arc::new(share(&client, server_id, live));
                    owned.send_if_modified(|current| {
                        let changed = **current != *mine;
                        if changed {
                            *current = Arc::clone(&mine);
                        }
                        changed
                    });
                }
                Err(error) => tracing::warn!(%error, "the server's heartbeat failed"),
            }
            if let Some(first) = first.take() {
                // The starter may have given up; then nobody needs the answer.
                let _ = first.send(beat.map(|_| ()));
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    });
    (FirstBeat(first_beat), owners)
}

async fn beat(client: &Client, server_id: Uuid, readers: &Readers) -> Result<Vec<Uuid>, Error> {
    let call = HeartbeatServer { server_id, listening: readers.any(), leave: None };
    let HeartbeatServerReply::Servers { items } = client.call(Route::Fleet, &call).await?;
    client.host().set_listening(readers.any() || items.iter().any(|server| server.listening));
    Ok(items.into_iter().map(|server| server.server_id).collect())
}

fn share(client: &Client, me: Uuid, live: &[Uuid]) -> BTreeSet<Route> {
    client
        .execution_routes()
        .chain(client.quota_routes())
        .chain(client.budget_routes())
        .chain(client.schedule_routes())
        .chain([Route::Fleet])
        .filter(|route| live.iter().max_by_key(|server| weight(**server, *route)).is_none_or(|owner| *owner == me))
        .collect()
}

fn weight(server: Uuid, route: Route) -> (u64, Uuid) {
    let mut hasher = DefaultHasher::new();
    (server, route).hash(&mut hasher);
    (hasher.finish(), server)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(route: Route, live: &[Uuid]) -> Uuid {
        *live.iter().max_by_key(|server| weight(**server, route)).expect("someone is live")
    }

    #[test]
    fn every_partition_has_one_owner_and_a_leaver_moves_only_its_own() {
        let servers: Vec<Uuid> = (0..4).map(Uuid::from_u128).collect();
        let rest = &servers[..3];
        for n in 0..256 {
            let route = Route::Execution(n);
            let before = owner(route, &servers);
            if before != servers[3] {
                assert_eq!(owner(route, rest), before);
            }
        }
        for server in &servers {
            let share = (0..256).filter(|n| owner(Route::Execution(*n), &servers) == *server).count();
            assert!((32..=96).contains(&share), "{server} owns {share} of 256");
        }
    }
}
