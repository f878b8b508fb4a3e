//! Drops events older than the age that is kept, one partition at a time.

use std::time::Duration;

use ff_script::generated::TrimEvents;
use ff_script::{Client, Route};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::share::Owned;

/// Every partition is trimmed about once in this time.
const ROUND: Duration = Duration::from_secs(3 * 3600);

/// Starts trimming the partitions this server owns.
pub fn start(client: Client, owned: Owned, tasks: &mut JoinSet<()>, stop: CancellationToken) {
    tasks.spawn(async move {
        let mut turn = 0_usize;
        loop {
            let routes: Vec<Route> = owned.borrow().iter().copied().collect();
            let pause = ROUND / u32::try_from(routes.len().max(1)).unwrap_or(1);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            turn = turn.wrapping_add(1);
            if let Some(route) = routes.get(turn % routes.len().max(1))
                && let Err(error) = client.call(*route, &TrimEvents {}).await
            {
                tracing::warn!(%route, %error, "old events could not be dropped");
            }
        }
    });
}
