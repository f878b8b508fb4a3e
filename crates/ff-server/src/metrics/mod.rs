//! `/metrics`: what the store can count about the work, and what this process does.
//!
//! What the store says ([`store`]) is the same on every server, so a query takes the maximum over them; it follows the event
//! history exactly. What a process says ([`process`]) is its own, so a query sums it up. Every metric is declared once, in
//! [`table`].

mod calls;
mod lanes;
mod process;
mod sheet;
mod store;
mod table;
mod text;

use std::sync::Arc;
use std::time::Duration;

use ff_engine::{Inventory, Operations};
use ff_script::HostFacts;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::registry::Registry;
use tokio::sync::Mutex;
use tokio::time::Instant;

pub use calls::Observed;
use lanes::LaneNames;
pub use process::{Held, Process};
use store::StoreSheet;
pub use table::{Kind, METRICS, Metric, Source};
pub use text::Form;

/// A reading is good for this long: whoever asks meanwhile gets the same.
const FRESH: Duration = Duration::from_secs(1);
/// Counting events takes no longer than this in one reading; what is left is counted by the next.
const COUNTING_MAX: Duration = Duration::from_secs(2);
/// A store that does not answer for this long is down.
const READING_MAX: Duration = Duration::from_secs(8);

/// Everything `/metrics` says.
pub struct Metrics {
    /// What this process does.
    pub process: Arc<Process>,
    /// The last reading and when it began. Held while one is made, so that those who come meanwhile wait for it.
    last: Mutex<Option<(Instant, Arc<Inventory>)>>,
    lanes: LaneNames,
}

impl Metrics {
    /// The metrics of a process that begins now.
    pub fn new(process: Arc<Process>) -> Self {
        Self { process, last: Mutex::default(), lanes: LaneNames::default() }
    }

    /// The whole page.
    pub async fn page(&self, operations: &Operations, facts: &HostFacts, form: Form) -> String {
        let inventory = match tokio::time::timeout(READING_MAX, self.inventory(operations)).await {
            Ok(Ok(inventory)) => Some(inventory),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the store could not be read for metrics");
                None
            }
            Err(_) => {
                tracing::warn!("the store was not read for metrics within {READING_MAX:?}");
                None
            }
        };
        let mut store = Registry::default();
        store.register_collector(Box::new(StoreSheet::new(inventory, facts, &self.lanes)));
        let mut page = String::new();
        encode_registry(&mut page, self.process.registry())
            .and_then(|()| encode_registry(&mut page, &store))
            .and_then(|()| encode_eof(&mut page))
            .expect("a String takes every text");
        form.of(page)
    }

    async fn inventory(&self, operations: &Operations) -> Result<Arc<Inventory>, ff_script::Error> {
        let mut last = self.last.lock().await;
        if let Some((at, inventory)) = &*last
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(inventory));
        }
        let began = Instant::now();
        let inventory = Arc::new(operations.take_inventory(COUNTING_MAX).await?);
        *last = Some((began, Arc::clone(&inventory)));
        Ok(inventory)
    }
}
