//! Calls on a store that no engine runs on, for tools that look at it or fill it before anyone works on it.

use std::sync::Arc;

use ff_core::PartitionConfig;
use ff_script::generated::{FixPartitions, NextDue, NextDueReply, PartitionDefaults};
use ff_script::{Client, Error, Host, Route};

/// How many partitions there are matters to none of these calls.
fn client(host: Arc<dyn Host>) -> Client {
    Client::new(host, PartitionConfig::standalone())
}

/// The time by the store's own clock.
pub async fn time_of(host: Arc<dyn Host>) -> Result<i64, Error> {
    let NextDueReply::Next { now, .. } = client(host).call(Route::Fleet, &NextDue {}).await?;
    Ok(now)
}

/// Marks a store with these partitions as one that is being imported, or as one that no longer is.
pub async fn mark_importing(host: Arc<dyn Host>, counts: PartitionDefaults, importing: bool) -> Result<(), Error> {
    let call = FixPartitions { importing: Some(importing), ..FixPartitions::new(counts) };
    client(host).call(Route::Config, &call).await.map(|_| ())
}
