//! The holder reconciler: when a holder's deadline has passed, its execution's partition is asked what became of it.
//!
//! **Invariant:** a deadline alone frees nothing. Whoever runs stays, without a deadline; whoever is gone leaves; when the
//! partition cannot be asked, the holder counts on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ff_script::generated::{
    CheckHolders, CheckHoldersReply, ConfirmHolders, HeldSlot, Holder, HolderState, ListHolders, ListHoldersReply,
    QuotaReturn, ReleaseBudget, ReleaseHolders, ReturnQuota,
};
use ff_script::{Client, Error, HolderSet, Route, Wake};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::share::Owned;
use crate::news::{Listener, News};

const BATCH: i64 = 64;
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// What one step did in one holder set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Holders whose executions run, or may still be started.
    pub confirmed: usize,
    /// Holders whose executions are gone.
    pub released: usize,
    /// More may be overdue.
    pub more: bool,
}

/// Asks for at most one batch of a set's overdue holders.
pub async fn run_once(client: &Client, set: &str) -> Result<Settled, Error> {
    let route = client.route_of_holder_set(set);
    let call = ListHolders { limit: BATCH, offset: 0, set: set.to_owned() };
    let ListHoldersReply::Holders { items, now, .. } = client.call(route, &call).await?;
    let overdue: Vec<Holder> =
        items.into_iter().filter(|holder| holder.expires_at.is_some_and(|at| at <= now)).collect();
    let more = i64::try_from(overdue.len()) == Ok(BATCH);
    let is_lane = !matches!(HolderSet::read(set), Some(HolderSet::Quota { .. } | HolderSet::Budget { .. }));
    let (mut stay, mut leave) = (Vec::new(), Vec::new());
    for slot in ask(client, set, overdue).await? {
        let HeldSlot { execution_id, expires_at, holder_id, state } = slot;
        match state {
            HolderState::Running => stay.push(Holder { execution_id, expires_at: None, holder_id }),
            HolderState::Granted => stay.push(Holder { execution_id, expires_at, holder_id }),
            // The release that is owed also says whether the holder ran: what a start took is given back by it alone.
            HolderState::Owed if !is_lane => {}
            HolderState::Gone | HolderState::Owed => leave.push(Holder { execution_id, expires_at: None, holder_id }),
        }
    }
    let more = more && !(stay.is_empty() && leave.is_empty());
    let settled = Settled { confirmed: stay.len(), released: leave.len(), more };
    if !stay.is_empty() {
        client.call(route, &ConfirmHolders { holders: stay, set: set.to_owned() }).await?;
    }
    if !leave.is_empty() {
        let gone = leave.into_iter().map(|holder| Leaving { holder, unused: false }).collect();
        release(client, set, gone).await?;
    }
    Ok(settled)
}

/// A holder that leaves a set.
#[derive(Clone, Debug)]
pub struct Leaving {
    /// Who.
    pub holder: Holder,
    /// It never ran: what its start took is given back.
    pub unused: bool,
}

/// Takes holders out of a set, each kind in its way; who is not in it is passed over.
pub async fn release(client: &Client, set: &str, leaving: Vec<Leaving>) -> Result<(), Error> {
    let route = client.route_of_holder_set(set);
    match HolderSet::read(set) {
        Some(HolderSet::Quota { id, digest }) => {
            let item = |Leaving { holder, unused }: Leaving| QuotaReturn {
                execution_id: holder.execution_id,
                holder_id: holder.holder_id,
                key_digest: digest.to_owned(),
                unused,
            };
            let items = leaving.into_iter().map(item).collect();
            client.call(route, &ReturnQuota { items, quota_id: id }).await.map(|_| ())
        }
        Some(HolderSet::Budget { id }) => {
            let holders = leaving.into_iter().map(|leaving| leaving.holder).collect();
            client.call(route, &ReleaseBudget { budget_id: id, holders }).await.map(|_| ())
        }
        Some(HolderSet::Lane { .. }) | None => {
            let holders = leaving.into_iter().map(|leaving| leaving.holder).collect();
            client.call(route, &ReleaseHolders { holders, set: set.to_owned() }).await.map(|_| ())
        }
    }
}

/// What the partitions of their executions say about holders.
pub async fn ask(client: &Client, set: &str, holders: Vec<Holder>) -> Result<Vec<HeldSlot>, Error> {
    let mut by_route: BTreeMap<Route, Vec<Holder>> = BTreeMap::new();
    for holder in holders {
        by_route.entry(client.route_of(&holder.execution_id)).or_default().push(holder);
    }
    let mut slots = Vec::new();
    for (route, holders) in by_route {
        let CheckHoldersReply::Checked { items } =
            client.call(route, &CheckHolders { holders, set: set.to_owned() }).await?;
        slots.extend(items);
    }
    Ok(slots)
}

/// Starts the reconciler for the partitions this server owns. What it does not hear is said again a second later.
pub fn start(client: Client, owned: Owned, tasks: &mut JoinSet<()>, stop: CancellationToken) {
    let mut news = Listener::new(client.host().as_ref());
    tasks.spawn(async move {
        let mut pending: BTreeSet<String> = BTreeSet::new();
        loop {
            let mut failed = false;
            for set in pending.clone() {
                match run_once(&client, &set).await {
                    Ok(Settled { more: true, .. }) => {}
                    Ok(_) => drop(pending.remove(&set)),
                    Err(error) => {
                        tracing::warn!(%error, set, "overdue holders could not be asked for");
                        failed = true;
                    }
                }
            }
            let pause = if failed { AFTER_FAILURE } else { Duration::ZERO };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                heard = news.next() => match heard {
                    Some(heard) => {
                        let owned = owned.borrow();
                        pending.extend(heard.into_iter().filter_map(|item| match item {
                            News::Said(route, Wake::Overdue { set }) if owned.contains(&route) => Some(set),
                            _ => None,
                        }));
                    }
                    None => return,
                },
                () = tokio::time::sleep(pause), if !pending.is_empty() => {}
            }
        }
    });
}
