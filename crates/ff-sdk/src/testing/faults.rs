//! Lost answers, on any backend.

use std::sync::Arc;

use super::crash::{Call, Mortal};
use crate::backend::Backend;

/// A backend whose answers can be lost, around another one; for [`crate::FlowFabricWorker::connect_with`].
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_sdk::FlowFabricWorker;
/// use ff_sdk::testing::{Call, Faults, TestEngine};
/// let engine = TestEngine::start().await?;
/// let id = engine.submit("charge", b"{}").await?;
///
/// let faults = Faults::around(engine.embedded().backend());
/// let worker = FlowFabricWorker::connect_with(engine.config("w-1"), faults.backend(), None).await?;
/// let task = worker.claim_next().await?.expect("one execution waits");
/// faults.lose_answer(Call::Complete);
/// task.complete(None).await?;
/// engine.assert_exactly_one_effect(&id).await?;
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
pub struct Faults(Arc<Mortal>);

impl Faults {
    /// Faults around this backend; none until told.
    #[must_use]
    pub fn around(backend: Arc<dyn Backend>) -> Self {
        Self(Arc::new(Mortal::new(backend)))
    }

    /// The backend a worker connects with.
    #[must_use]
    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.0) as Arc<dyn Backend>
    }

    /// The answer of the next call of this kind is lost: it is committed, and its caller does not hear so.
    pub fn lose_answer(&self, call: Call) {
        self.0.loses(call);
    }
}
