//! One run of the program for one execution.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ff_sdk::CancelReason;
use ff_sdk::middleware::TaskError;
use ff_sdk::runtime::{Ctx, TaskInfo};
use ff_sdk::task::NewFrame;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::captured::{Tail, Written, lines};
use super::pipe::Pipe;

/// The exit code of a program that wants to be tried again: EX_TEMPFAIL.
const TRY_AGAIN: i32 = 75;
/// Lines that wait to be sent; a program that writes faster than the server takes is slowed down.
const WAITING: usize = 256;
/// The most frames one call carries.
const FRAMES: usize = 64;
/// How long the last output of a program that was stopped may take to be sent.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// A lost lease may be another worker's already: the program has this long at most.
const LOST: Duration = Duration::from_secs(1);

/// What to run.
pub struct Program {
    pub command: Vec<OsString>,
    pub kill_grace: Duration,
    /// Variables that are the same for every run.
    pub own: Vec<(&'static str, String)>,
}

/// The processes of one run; none of them outlives it.
///
/// **Invariant:** it has a number only while that is the program's: once the program is reaped, another group may be given it.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0
            && let Err(error) = kill_process_group(group, signal)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!(%error, ?group, "the program cannot be signalled");
        }
    }

    /// The program has just been reaped: whatever it left behind ends with it, and the group is forgotten.
    fn end(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Program {
    /// Runs it to its end, or until the execution is not ours any more.
    pub async fn run(&self, ctx: Ctx) -> Result<Option<Vec<u8>>, TaskError> {
        let mut child = self.spawn(&ctx)?;
        let mut group = Group::of(&child);
        let (mut stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let input = ctx.payload().to_vec();
        let feeding = tokio::spawn(async move {
            if let Some(stdin) = &mut stdin {
                // A program that does not want its input closes it.
                let _ = stdin.write_all(&input).await;
            }
        });
        let exit = CancellationToken::new();
        let (send, receive) = mpsc::channel(WAITING);
        let stdout = stdout.map(|stdout| Pipe::new(stdout, exit.clone()));
        let reading = tokio::spawn(async move {
            let mut written = Written::default();
            if let Some(stdout) = stdout {
                lines(stdout, &mut written, &send).await;
            }
            written
        });
        let sending = tokio::spawn(send_frames(ctx.clone(), receive));
        let complaining = tokio::spawn(Tail::read(stderr.map(|stderr| Pipe::new(stderr, exit.clone()))));
        // However this ends, nobody reads on.
        let running = exit.drop_guard();
        let (status, stopped) = self.watch(&ctx, &mut child, &mut group).await?;
        drop(running);
        feeding.abort();
        if let Some(reason) = stopped {
            // How it ended does not matter: it was told to.
            let _ = tokio::time::timeout(LAST_WORDS, sending).await;
            return Err(TaskError::new(format!("stopped: {reason}"), "stopped"));
        }
        // The reader waits for the sender, and both end: the pipe is read up to the exit, and each call has its deadline.
        let unread = |error: tokio::task::JoinError| {
            TaskError::new(format!("cannot read what the program wrote: {error}"), "cannot_read")
        };
        let written = reading.await.map_err(unread)?;
        let complaint = complaining.await.map_err(unread)?;
        let _ = sending.await;
        outcome(status, written, &complaint)
    }

    fn spawn(&self, ctx: &Ctx) -> Result<Child, TaskError> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.own.iter().map(|(name, value)| (*name, value.as_str())));
        command.envs(variables(&ctx.info()));
        command.spawn().map_err(|error| {
            let program = self.command[0].to_string_lossy();
            TaskError::new(format!("cannot start {program}: {error}"), "cannot_start")
        })
    }

    /// Waits for its end; when it is to stop, SIGTERM and after the grace SIGKILL see to it.
    async fn watch(
        &self,
        ctx: &Ctx,
        child: &mut Child,
        group: &mut Group,
    ) -> Result<(ExitStatus, Option<CancelReason>), TaskError> {
        let lost =
            |error: std::io::Error| TaskError::new(format!("cannot wait for the program: {error}"), "cannot_wait");
        let reason = tokio::select! {
            status = child.wait() => {
                let status = status.map_err(lost)?;
                group.end();
                return Ok((status, None));
            }
            reason = ctx.cancellation().cancelled() => reason,
        };
        tracing::info!(execution = %ctx.execution_id(), %reason, "the program is asked to end");
        group.signal(Signal::TERM);
        let grace = if reason == CancelReason::LeaseLost { self.kill_grace.min(LOST) } else { self.kill_grace };
        let status = match tokio::time::timeout(grace, child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                group.signal(Signal::KILL);
                child.wait().await
            }
        };
        let status = status.map_err(lost)?;
        group.end();
        Ok((status, Some(reason)))
    }
}

/// What became of the execution.
fn outcome(status: ExitStatus, written: Written, complaint: &Tail) -> Result<Option<Vec<u8>>, TaskError> {
    match status.code() {
        Some(0) => written.result().map_err(|problem| TaskError::new(problem, "result_too_large").fatal()),
        Some(TRY_AGAIN) => Err(TaskError::new(complaint.after("exit code 75"), "try_again")),
        Some(code) => Err(TaskError::new(complaint.after(&format!("exit code {code}")), "exit_code").fatal()),
        None => {
            let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0);
            Err(TaskError::new(complaint.after(&format!("killed by signal {signal}")), "killed"))
        }
    }
}

/// Sends lines as frames, those that wait together.
async fn send_frames(ctx: Ctx, mut lines: mpsc::Receiver<Vec<u8>>) {
    let (mut batch, mut refused) = (Vec::new(), false);
    while lines.recv_many(&mut batch, FRAMES).await > 0 {
        let frames: Vec<NewFrame> = batch.drain(..).map(|line| NewFrame::new("stdout", line)).collect();
        if refused {
            continue;
        }
        if let Err(error) = ctx.append_frames(&frames).await {
            // The program goes on: its stream is not its result.
            tracing::warn!(%error, execution = %ctx.execution_id(), "output is not written to the stream any more");
            refused = true;
        }
    }
}

/// What the program is told about its execution.
fn variables(info: &TaskInfo) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = [
        ("FF_EXECUTION_ID", info.execution_id.to_string()),
        ("FF_ATTEMPT", info.attempt_index.to_string()),
        ("FF_ATTEMPT_ID", info.attempt_id.to_string()),
        ("FF_LEASE_ID", info.lease_id.to_string()),
        ("FF_LEASE_EPOCH", info.lease_epoch.to_string()),
        ("FF_KIND", info.kind.clone()),
        ("FF_LANE", info.lane_id.to_string()),
        ("FF_NAMESPACE", info.namespace.to_string()),
        ("FF_TAGS", serde_json::to_string(&info.tags).unwrap_or_else(|_| "{}".to_owned())),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let maybe = [
        ("FF_TRACE_PARENT", info.trace_parent.clone()),
        ("FF_DEADLINE_AT", info.deadline_at.map(|at| at.0.to_string())),
        ("FF_FLOW_ID", info.flow_id.map(|id| id.to_string())),
        ("FF_PARENT_ID", info.parent_id.map(|id| id.to_string())),
        ("FF_KEY", info.key.clone()),
    ];
    variables.extend(maybe.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    variables.extend(info.tags.iter().map(|(name, value)| (format!("FF_TAG_{}", variable(name)), value.clone())));
    // No variable can hold a zero byte.
    variables.retain(|(_, value)| !value.contains('\0'));
    variables
}

/// A tag's name as part of a variable's.
fn variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn the_exit_code_decides() {
        let end = |raw: i32| outcome(ExitStatus::from_raw(raw), Written::default(), &Tail::default());
        assert_eq!(end(0), Ok(None));
        let again = end(75 << 8).expect_err("it wants to be tried again");
        assert_eq!((again.category.as_str(), again.retryable), ("try_again", None));
        let failed = end(3 << 8).expect_err("it failed");
        assert_eq!((failed.reason.as_str(), failed.retryable), ("exit code 3", Some(false)));
        let killed = end(9).expect_err("it was killed");
        assert_eq!((killed.reason.as_str(), killed.retryable), ("killed by signal 9", None));
    }

    #[tokio::test]
    async fn a_group_is_not_signalled_once_its_program_was_reaped() {
        let mut child = Command::new("true").process_group(0).spawn().expect("it starts");
        let mut group = Group::of(&child);
        assert!(group.0.is_some());
        child.wait().await.expect("it ends");
        group.end();
        assert_eq!(group.0, None, "the number may be another group's now");
    }

    #[test]
    fn a_tag_becomes_a_variable() {
        assert_eq!(variable("cost-center.eu"), "COST_CENTER_EU");
    }
}
