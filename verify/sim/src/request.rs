//! Every call of an actor, as a value that the network can lose, copy and delay.

use std::fmt::{self, Write};

use ff_core::EngineError;
use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::*;
use ff_script::{Call, Client, Error, Route};

macro_rules! requests {
    ($($name:ident),+ $(,)?) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(clippy::large_enum_variant, reason = "requests live in an Arc; their size does not matter")]
        pub(crate) enum Request { $($name($name),)+ }

        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Reply { $($name(<$name as Call>::Reply),)+ }

        impl Request {
            pub async fn call(&self, client: &Client, route: Route) -> Result<Reply, Error> {
                match self { $(Request::$name(call) => Ok(Reply::$name(client.call(route, call).await?)),)+ }
            }

            /// The function's name without its prefix.
            pub fn name(&self) -> &'static str {
                match self { $(Request::$name(_) => $name::FUNCTION.trim_start_matches("ff_"),)+ }
            }
        }

        impl Reply {
            /// The name of the reply's variant.
            pub fn variant(&self) -> String {
                match self { $(Reply::$name(reply) => first_word(reply),)+ }
            }

            fn brief(&self) -> String {
                match self { $(Reply::$name(reply) => shortened(reply),)+ }
            }
        }

        $(impl From<$name> for Request { fn from(call: $name) -> Self { Request::$name(call) } })+
    };
}

requests!(
    SubmitExecution,
    CompleteExecution,
    FailExecution,
    CancelExecution,
    CancelAttempt,
    DelayExecution,
    YieldExecution,
    UpdateProgress,
    HoldExecution,
    ReleaseExecution,
    ChangeExecution,
    ReplayExecution,
    DeleteExecution,
    AwaitResult,
    ClaimExecutions,
    RenewLease,
    RevokeLease,
    DrainLeases,
    IssueGrants,
    ConsumeGrant,
    ReleaseGrant,
    BlockExecution,
    UnblockExecution,
    GrantReclaim,
    SuspendExecution,
    ResumeExecution,
    FailSuspension,
    CreateWaitpoint,
    CloseWaitpoint,
    DeliverSignal,
    ReissueToken,
    AppendFrames,
    ReadStream,
    DefineLane,
    InstallLane,
    RegisterWorker,
    HeartbeatWorkers,
    DeregisterWorker,
    DrainWorker,
    MarkWorkerDead,
    ListWorkers,
    ReadOutbox,
    AckOutbox,
    FireDue,
    ReviewRoutes,
    SubmitFlow,
    AddMembers,
    AddEdges,
    SealFlow,
    CancelFlow,
    WalkFlow,
    AwaitFlow,
    ReadFlow,
    SpawnChildren,
    WaitChildren,
    ReadChildren,
    PutQuota,
    DeleteQuota,
    AdmitQuota,
    ReturnQuota,
    GiveUpCalled,
    SettleQuota,
    ThrottleQuota,
    ListHolders,
    CheckHolders,
    ConfirmHolders,
    CreateBudget,
    ChangeBudget,
    GetBudget,
    DeleteBudget,
    ResetBudget,
    ApproveBudget,
    CorrectBudget,
    AdmitBudget,
    ReleaseBudget,
    ReserveBudget,
    SettleReservation,
    ReleaseReservation,
    ApplyUsage,
    ClearedBudgets,
    AcknowledgeCleared,
    NoteScope,
    NoteUsage,
    SettleUsage,
    ReadUsage,
    HoldBudget,
    UnblockBudget,
    WaitingForBudgets,
    TakeWebhooks,
    NoteWebhook,
);

impl Request {
    /// The executions that the call names.
    pub fn targets(&self) -> Vec<ExecutionId> {
        match self {
            Request::SubmitExecution(c) => vec![c.submission.execution_id],
            Request::CompleteExecution(c) => vec![c.execution_id],
            Request::FailExecution(c) => vec![c.execution_id],
            Request::CancelExecution(c) => vec![c.execution_id],
            Request::CancelAttempt(c) => vec![c.execution_id],
            Request::DelayExecution(c) => vec![c.execution_id],
            Request::YieldExecution(c) => vec![c.execution_id],
            Request::UpdateProgress(c) => vec![c.execution_id],
            Request::HoldExecution(c) => vec![c.execution_id],
            Request::ReleaseExecution(c) => vec![c.execution_id],
            Request::ChangeExecution(c) => vec![c.execution_id],
            Request::ReplayExecution(c) => vec![c.execution_id],
            Request::DeleteExecution(c) => vec![c.execution_id],
            Request::AwaitResult(c) => vec![c.execution_id],
            Request::RenewLease(c) => vec![c.execution_id],
            Request::RevokeLease(c) => vec![c.execution_id],
            Request::ConsumeGrant(c) => vec![c.execution_id],
            Request::ReleaseGrant(c) => vec![c.execution_id],
            Request::BlockExecution(c) => vec![c.execution_id],
            Request::UnblockExecution(c) => vec![c.execution_id],
            Request::GrantReclaim(c) => vec![c.execution_id],
            Request::SuspendExecution(c) => vec![c.execution_id],
            Request::ResumeExecution(c) => vec![c.execution_id],
            Request::FailSuspension(c) => vec![c.execution_id],
            Request::CreateWaitpoint(c) => vec![c.execution_id],
            Request::CloseWaitpoint(c) => vec![c.execution_id],
            Request::DeliverSignal(c) => vec![c.execution_id],
            Request::ReissueToken(c) => vec![c.execution_id],
            Request::AppendFrames(c) => vec![c.execution_id],
            Request::ReadStream(c) => vec![c.execution_id],
            Request::SpawnChildren(c) => vec![c.execution_id],
            Request::WaitChildren(c) => vec![c.execution_id],
            Request::ReadChildren(c) => vec![c.execution_id],
            Request::NoteUsage(c) => vec![c.execution_id],
            Request::SettleUsage(c) => vec![c.execution_id],
            Request::ReadUsage(c) => vec![c.execution_id],
            Request::HoldBudget(c) => vec![c.execution_id],
            _ => Vec::new(),
        }
    }

    /// The flow that the call names.
    pub fn flow(&self) -> Option<FlowId> {
        match self {
            Request::SubmitFlow(c) => Some(c.flow.flow_id),
            Request::AddMembers(c) => Some(c.flow_id),
            Request::AddEdges(c) => Some(c.flow_id),
            Request::SealFlow(c) => Some(c.flow_id),
            Request::CancelFlow(c) => Some(c.flow_id),
            Request::WalkFlow(c) => Some(c.flow_id),
            Request::AwaitFlow(c) => Some(c.flow_id),
            Request::ReadFlow(c) => Some(c.flow_id),
            _ => None,
        }
    }

    /// The fence for each named execution.
    pub fn fences(&self) -> Vec<(ExecutionId, &Fence)> {
        match self {
            Request::CompleteExecution(c) => vec![(c.execution_id, &c.fence)],
            Request::FailExecution(c) => vec![(c.execution_id, &c.fence)],
            Request::CancelAttempt(c) => vec![(c.execution_id, &c.fence)],
            Request::DelayExecution(c) => vec![(c.execution_id, &c.fence)],
            Request::YieldExecution(c) => vec![(c.execution_id, &c.fence)],
            Request::UpdateProgress(c) => vec![(c.execution_id, &c.fence)],
            Request::RenewLease(c) => vec![(c.execution_id, &c.fence)],
            Request::SuspendExecution(c) => vec![(c.execution_id, &c.fence)],
            Request::CreateWaitpoint(c) => vec![(c.execution_id, &c.fence)],
            Request::CloseWaitpoint(c) => vec![(c.execution_id, &c.fence)],
            Request::AppendFrames(c) => vec![(c.execution_id, &c.fence)],
            Request::SpawnChildren(c) => vec![(c.execution_id, &c.fence)],
            Request::WaitChildren(c) => vec![(c.execution_id, &c.fence)],
            Request::NoteUsage(c) => vec![(c.execution_id, &c.fence)],
            Request::HoldBudget(c) => vec![(c.execution_id, &c.fence)],
            _ => Vec::new(),
        }
    }
}

/// How a call ended, from the host's view.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one outcome exists at a time; its size does not matter")]
pub(crate) enum Outcome {
    Reply(Reply),
    Refused(EngineError),
    Failed(Failure),
}

/// A call without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The disk was full; nothing was written.
    Full,
    /// The disk failed during the call; nothing was written.
    Broken,
    /// The process died before the commit: nothing was written.
    Crashed,
    /// The process died after the commit: everything was written, but no reply was sent.
    Died,
}

impl Outcome {
    /// True if the call's plan is in the store.
    pub fn committed(&self) -> bool {
        matches!(self, Outcome::Reply(_) | Outcome::Failed(Failure::Died))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let debug = shortened(self);
        // The Debug text of a call repeats its name: Claim(ClaimExecutions { … }).
        let fields = debug.find('{').map_or("", |at| debug[at..].trim_end_matches(')'));
        write!(f, "{} {fields}", self.name())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Reply(reply) => f.write_str(&reply.brief()),
            Outcome::Refused(error) => write!(f, "refused {}: {error}", error.code()),
            Outcome::Failed(failure) => write!(f, "no answer ({failure:?})"),
        }
    }
}

/// The first word of a value's Debug text, without formatting the rest.
fn first_word(value: &impl fmt::Debug) -> String {
    struct Word(String);
    impl Write for Word {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            match text.find(|c: char| !c.is_alphanumeric()) {
                Some(end) => {
                    self.0.push_str(&text[..end]);
                    Err(fmt::Error)
                }
                None => {
                    self.0.push_str(text);
                    Ok(())
                }
            }
        }
    }
    let mut word = Word(String::new());
    // The error only stops the formatting.
    let _ = write!(word, "{value:?}");
    word.0
}

/// A value's Debug text without absent fields. Ids are shortened to eight digits, and long byte strings to their
/// length.
fn shortened(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(", ") {
        if !part.contains(": None") || part.contains('{') {
            out.push_str(part);
        } else if part.contains('}') {
            let end = part.find('}').expect("it contains one");
            while out.ends_with([',', ' ']) {
                out.pop();
            }
            out.push(' ');
            out.push_str(&part[end..]);
        }
    }
    cut_long(&cut_ids(&out))
}

fn cut_ids(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_id = |at: usize| {
        bytes.get(at..at + 36).is_some_and(|id| {
            id.iter()
                .enumerate()
                .all(|(i, b)| if matches!(i, 8 | 13 | 18 | 23) { *b == b'-' } else { b.is_ascii_hexdigit() })
        })
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        if is_id(at) {
            out.push_str(&text[at..at + 8]);
            at += 36;
        } else {
            let c = text[at..].chars().next().expect("at is inside the text");
            out.push(c);
            at += c.len_utf8();
        }
    }
    out
}

/// Byte strings print as lists of numbers. One with more than 24 is replaced by its length.
fn cut_long(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("Bytes([") {
        let Some(end) = rest[start..].find("])") else {
            break;
        };
        let body = &rest[start + 7..start + end];
        let count = if body.is_empty() { 0 } else { body.split(',').count() };
        out.push_str(&rest[..start]);
        if count > 24 {
            let _ = write!(out, "{count} bytes");
        } else {
            let _ = write!(out, "[{body}]");
        }
        rest = &rest[start + end + 2..];
    }
    out.push_str(rest);
    out
}
