//! The worker processes of the demo, one of which is killed now and then.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use ff_api::Ask;
use ff_api::executions::{ListExecutions, ListQuery};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, ChildStdin, Command};
use tokio_util::sync::CancellationToken;

use super::screen::Screen;
use crate::client::Api;

/// How long a worker may take to leave.
const LEAVE: Duration = Duration::from_secs(10);

struct Member {
    instance: String,
    process: Child,
    /// Open while we live: a worker whose stdin ends goes too, so that none outlives a demo that was killed.
    _lifeline: Option<ChildStdin>,
}

/// The workers that are alive.
pub struct Crew {
    api: Arc<Api>,
    url: String,
    screen: Screen,
    members: Mutex<Vec<Member>>,
    hired: AtomicUsize,
    /// Tells the workers of this start from those of an earlier one.
    name: u16,
}

impl Crew {
    /// Starts this many workers.
    pub fn hire(api: Arc<Api>, url: &str, count: usize, screen: &Screen) -> anyhow::Result<Self> {
        let crew = Self {
            api,
            url: url.to_owned(),
            screen: screen.clone(),
            members: Mutex::default(),
            hired: AtomicUsize::new(0),
            name: rand::random(),
        };
        for _ in 0..count {
            crew.hire_one()?;
        }
        Ok(crew)
    }

    fn hire_one(&self) -> anyhow::Result<()> {
        let number = self.hired.fetch_add(1, Ordering::Relaxed) + 1;
        let instance = format!("worker-{number}-{:04x}", self.name);
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut process = Command::new(program)
            .args(["dev-worker", "--url", &self.url, "--instance", &instance])
            .env("FF_LOG", std::env::var("FF_LOG").unwrap_or_else(|_| "error".to_owned()))
            // Ctrl-C is for us: we tell the workers to leave.
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start a worker")?;
        let lifeline = process.stdin.take();
        let member = Member { instance, process, _lifeline: lifeline };
        self.members.lock().unwrap_or_else(PoisonError::into_inner).push(member);
        Ok(())
    }

    /// Kills the busiest worker every so often.
    pub async fn kill_now_and_then(self: Arc<Self>, every: Duration, stop: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(every) => self.kill_one().await?,
            }
        }
    }

    /// Ends a worker as a crash would: mid-sentence, leases and registration left behind. Another is hired.
    async fn kill_one(&self) -> anyhow::Result<()> {
        let instances: Vec<String> = self
            .members
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|one| one.instance.clone())
            .collect();
        let mut busiest = (0, String::new());
        for instance in instances {
            let query = ListQuery { worker: Some(instance.clone()), ..ListQuery::default() };
            let held = self.api.ask(&Ask::<ListExecutions>::by((), query)).await?.value.items.len();
            if held >= busiest.0 {
                busiest = (held, instance);
            }
        }
        let member = {
            let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
            let place = members.iter().position(|member| member.instance == busiest.1);
            place.map(|place| members.swap_remove(place))
        };
        if let Some(mut member) = member {
            member.process.kill().await.context("cannot kill a worker")?;
            self.screen.killed(&member.instance, busiest.0);
            self.hire_one()?;
        }
        Ok(())
    }

    /// Ends every worker politely: what it holds is handed back, its registration ends.
    pub async fn leave(&self) {
        let members = std::mem::take(&mut *self.members.lock().unwrap_or_else(PoisonError::into_inner));
        for member in &members {
            let pid = member.process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        for mut member in members {
            if tokio::time::timeout(LEAVE, member.process.wait()).await.is_err() {
                tracing::warn!(worker = member.instance, "a worker did not leave in time and is killed");
                let _ = member.process.kill().await;
            }
        }
    }
}
