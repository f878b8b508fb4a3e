//! In-process workers of the demo, and the means to kill one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ff_core::types::ExecutionId;
use ff_engine::{Operations, fence_of};
use ff_scheduler::{Dispatcher, Profile};
use ff_script::Error;
use ff_script::generated::{RegisterWorker, Task};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::screen::Screen;
use super::{LANE, NAMESPACE};

const LEASE_TTL_MS: i64 = 3_000;
const SLOTS: u16 = 4;

type Held = Arc<Mutex<HashMap<ExecutionId, Task>>>;

struct Member {
    instance: String,
    held: Held,
    quit: CancellationToken,
    task: JoinHandle<()>,
}

/// The workers that are alive.
pub struct Crew {
    operations: Operations,
    dispatcher: Dispatcher,
    screen: Screen,
    members: Mutex<Vec<Member>>,
    hired: AtomicUsize,
}

impl Crew {
    /// Starts this many workers.
    pub fn hire(operations: &Operations, dispatcher: &Dispatcher, count: usize, screen: &Screen) -> Self {
        let crew = Self {
            operations: operations.clone(),
            dispatcher: dispatcher.clone(),
            screen: screen.clone(),
            members: Mutex::default(),
            hired: AtomicUsize::new(0),
        };
        for _ in 0..count {
            crew.hire_one();
        }
        crew
    }

    fn hire_one(&self) {
        let instance = format!("worker-{}", self.hired.fetch_add(1, Ordering::Relaxed) + 1);
        let held = Held::default();
        let quit = CancellationToken::new();
        let worker = Worker {
            operations: self.operations.clone(),
            dispatcher: self.dispatcher.clone(),
            instance: instance.clone(),
            held: Arc::clone(&held),
            quit: quit.clone(),
        };
        let task = tokio::spawn(worker.run());
        self.members.lock().unwrap_or_else(PoisonError::into_inner).push(Member { instance, held, quit, task });
    }

    /// Ends a worker as a crash would: mid-sentence, leases and registration left behind. Another is hired.
    pub async fn kill_one(&self) {
        let member = {
            let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
            let busiest =
                members.iter().enumerate().max_by_key(|(_, member)| held(&member.held).len()).map(|(index, _)| index);
            busiest.map(|index| members.remove(index))
        };
        if let Some(member) = member {
            member.task.abort();
            let holding = held(&member.held).len();
            self.screen.killed(&member.instance, holding);
            self.hire_one();
        }
    }

    /// Ends every worker politely: what it holds is handed back, its registration ends.
    pub async fn leave(&self) {
        let members = std::mem::take(&mut *self.members.lock().unwrap_or_else(PoisonError::into_inner));
        for member in members {
            member.quit.cancel();
            if let Err(error) = member.task.await {
                tracing::warn!(%error, worker = member.instance, "a worker did not end well");
            }
        }
    }
}

fn held(held: &Held) -> std::sync::MutexGuard<'_, HashMap<ExecutionId, Task>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Worker {
    operations: Operations,
    dispatcher: Dispatcher,
    instance: String,
    held: Held,
    quit: CancellationToken,
}

impl Worker {
    async fn run(self) {
        if let Err(error) = self.work().await {
            tracing::error!(%error, worker = self.instance, "a worker gave up");
        }
    }

    async fn work(&self) -> Result<(), Error> {
        let profile = Profile {
            namespace: NAMESPACE.to_owned(),
            lanes: vec![LANE.to_owned()],
            worker_id: "demo".to_owned(),
            instance: self.instance.clone(),
            capabilities: Vec::new(),
            lease_ttl_ms: LEASE_TTL_MS,
        };
        let registration = RegisterWorker {
            capabilities: Vec::new(),
            incarnation: None,
            instance: self.instance.clone(),
            lanes: profile.lanes.clone(),
            owner: None,
            namespace: profile.namespace.clone(),
            slots: i64::from(SLOTS),
            take_over: None,
            worker_id: profile.worker_id.clone(),
        };
        self.operations.register_worker(registration).await?;
        let mut running = tokio::task::JoinSet::new();
        let mut beat = tokio::time::interval(Duration::from_secs(10));
        loop {
            let free = SLOTS - u16::try_from(running.len()).unwrap_or(SLOTS);
            tokio::select! {
                () = self.quit.cancelled() => break,
                _ = beat.tick() => { self.operations.heartbeat(vec![self.instance.clone()]).await?; }
                Some(_) = running.join_next(), if !running.is_empty() => {}
                claimed = self.dispatcher.claim(&profile, free, Duration::from_secs(30), Uuid::now_v7()), if free > 0 => {
                    for task in claimed? {
                        held(&self.held).insert(task.execution_id, task.clone());
                        running.spawn(handle(self.operations.clone(), Arc::clone(&self.held), task));
                    }
                }
            }
        }
        running.shutdown().await;
        let tasks: Vec<Task> = held(&self.held).drain().map(|(_, task)| task).collect();
        for task in tasks {
            match self.operations.yield_back(task.execution_id, fence_of(&task)).await {
                Ok(_) | Err(Error::Engine(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.operations.deregister_worker(&self.instance, None).await?;
        self.dispatcher.forget(&self.instance);
        Ok(())
    }
}

/// Runs one task: some take long enough to be renewed, some fail at first.
async fn handle(operations: Operations, holding: Held, task: Task) {
    let id = task.execution_id;
    let fence = fence_of(&task);
    let takes = match task.kind.as_str() {
        "slow" => Duration::from_millis(rand::random_range(1_500..4_000)),
        "urgent" => Duration::from_millis(50),
        _ => Duration::from_millis(rand::random_range(50..400)),
    };
    let done = tokio::time::sleep(takes);
    tokio::pin!(done);
    let mut renew = tokio::time::interval(Duration::from_millis(1_000));
    renew.tick().await;
    loop {
        tokio::select! {
            () = &mut done => break,
            _ = renew.tick() => {
                if let Err(error) = operations.renew(id, fence.clone()).await {
                    tracing::debug!(%error, %id, "the lease is gone");
                    held(&holding).remove(&id);
                    return;
                }
            }
        }
    }
    let ended = if task.kind == "flaky" && task.attempt_index < 1 {
        operations.fail(id, fence, "the provider said no", "provider_error").await.map(|_| ())
    } else {
        operations.complete(id, fence, Some(br#"{"ok":true}"#.to_vec())).await.map(|_| ())
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %id, "the outcome was refused");
    }
    held(&holding).remove(&id);
}
