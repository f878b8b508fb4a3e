//! Waiting for children, and what became of them.

use ff_api::children::WaitedForChildren;
use ff_core::types::SuspensionId;

use crate::snapshot::ChildSnapshot;
use crate::task::TaskCore;
use crate::waits::ResumeCause;
use crate::{ClaimedTask, SdkError};

/// What became of [`ClaimedTask::wait_children`].
#[derive(Debug)]
pub enum WaitChildrenOutcome {
    /// The lease is given back; the execution waits.
    Waiting {
        /// How many children have not ended.
        open: u64,
    },
    /// All have ended already. The task is still held and goes on.
    Ended {
        /// The task.
        task: ClaimedTask,
        /// The children, in the order they were spawned.
        children: Vec<ChildSnapshot>,
    },
}

/// What a wait for children answers to a task and to a handler alike.
pub(crate) enum Waited {
    Aside { open: u64 },
    Ended(Vec<ChildSnapshot>),
}

impl TaskCore {
    /// Sets the task aside until its children have ended; the lease stays when they have, unless it goes `aside` all the same.
    pub(crate) async fn wait_children(&self, aside: bool, step: Option<&str>) -> Result<Waited, SdkError> {
        let wait_id = SuspensionId::mint();
        let reach = self.backend.reach();
        match self.repeat(|| reach.wait_children(self.lease.at, wait_id, aside, step)).await? {
            WaitedForChildren::Waiting { open } => {
                self.set_aside();
                Ok(Waited::Aside { open: open.unsigned_abs() })
            }
            WaitedForChildren::Ended { children, more_children: false } => Ok(Waited::Ended(children)),
            WaitedForChildren::Ended { more_children: true, .. } => Ok(Waited::Ended(self.children().await?)),
        }
    }

    /// Every child, read page by page.
    pub(crate) async fn children(&self) -> Result<Vec<ChildSnapshot>, SdkError> {
        self.backend.reach().children(self.claim.lease.execution_id).await
    }

    pub(crate) async fn resume_children(&self) -> Result<Vec<ChildSnapshot>, SdkError> {
        match &self.claim.resume {
            Some(resume) if resume.cause != ResumeCause::Children => Ok(Vec::new()),
            None => Ok(Vec::new()),
            Some(resume) if !resume.more_children => Ok(resume.children.clone()),
            Some(_) => self.children().await,
        }
    }
}

impl ClaimedTask {
    /// Gives the lease back until every child has ended; the same attempt goes on then, with their outcomes in
    /// [`ClaimedTask::resume_children`].
    ///
    /// When all have ended already, the attempt can be claimed again at once. [`ClaimedTask::wait_children`] keeps the lease in
    /// that case, and saves the way.
    pub async fn move_to_waiting_children(self) -> Result<(), SdkError> {
        let waited = self.core().wait_children(true, None).await;
        self.abandon();
        waited.map(|_| ())
    }

    /// Like [`ClaimedTask::move_to_waiting_children`], but hands the task back with the outcomes when all children have ended.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use ff_sdk::task::WaitChildrenOutcome;
    /// # let engine = ff_sdk::testing::TestEngine::start().await?;
    /// # let id = engine.submit("plan", b"{}").await?;
    /// # let worker = engine.worker("w-1").await?;
    /// let task = worker.claim_next().await?.expect("one execution waits");
    /// match task.wait_children().await? {
    ///     WaitChildrenOutcome::Ended { task, children } => {
    ///         assert!(children.is_empty(), "none was spawned");
    ///         task.complete(None).await?;
    ///     }
    ///     WaitChildrenOutcome::Waiting { open } => println!("waits for {open}"),
    /// }
    /// # Ok::<(), ff_sdk::SdkError>(())
    /// # }).unwrap();
    /// ```
    pub async fn wait_children(self) -> Result<WaitChildrenOutcome, SdkError> {
        match self.core().wait_children(false, None).await {
            Ok(Waited::Aside { open }) => {
                self.abandon();
                Ok(WaitChildrenOutcome::Waiting { open })
            }
            Ok(Waited::Ended(children)) => Ok(WaitChildrenOutcome::Ended { task: self, children }),
            Err(error) => {
                self.abandon();
                Err(error)
            }
        }
    }

    /// The children whose ends let this very attempt go on, in the order they were spawned; none unless this claim is that resume.
    pub async fn resume_children(&self) -> Result<Vec<ChildSnapshot>, SdkError> {
        self.core().resume_children().await
    }

    /// Every child this execution has spawned, in any attempt, and what became of it so far.
    pub async fn children(&self) -> Result<Vec<ChildSnapshot>, SdkError> {
        self.core().children().await
    }
}
