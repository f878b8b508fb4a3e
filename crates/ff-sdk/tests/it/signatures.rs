//! The exact signatures a program may rely on: this file compiles, or the contract is broken.

use std::collections::HashMap;
use std::sync::Arc;

use ff_core::contracts::{ClaimGrant, ReclaimGrant};
use ff_core::error::{ConflictKind, ContentionKind, StateKind, ValidationKind};
use ff_core::types::{
    AttemptId, AttemptIndex, BudgetId, EdgeId, ExecutionId, FlowId, LaneId, LeaseEpoch, LeaseId, Namespace,
    QuotaPolicyId, SignalId, SuspensionId, TimestampMs, WaitpointId, WaitpointToken, WorkerId, WorkerInstanceId,
};
use ff_sdk::runtime::{BackoffPolicy, Ctx, Data, HandlerResult, Payload, PayloadBytes, TaskInfo, WorkerRuntime};
use ff_sdk::task::{
    AppendFrameOutcome, ConditionMatcher, FailOutcome, MAX_TAIL_BLOCK_MS, ResumeSignal, STREAM_READ_HARD_CAP, Signal,
    SignalOutcome, StreamCursor, StreamFrame, StreamFrames, SuspendOutcome, TimeoutBehavior, read_stream, tail_stream,
};
use ff_sdk::{ClaimedTask, EngineError, FlowFabricAdminClient, FlowFabricWorker, SdkError, WorkerConfig};

fn ids() {
    let _: [String; 4] = [
        LaneId::new("x").to_string(),
        Namespace::new("x".to_owned()).to_string(),
        WorkerId::new("x").to_string(),
        WorkerInstanceId::new("x").to_string(),
    ];
    fn copy_ord<T: Copy + Ord>(_: T) {}
    copy_ord(AttemptIndex::new(3_u32));
    copy_ord(LeaseEpoch::new(3));
    let TimestampMs(ms) = TimestampMs::from_millis(5);
    let _: i64 = ms + TimestampMs::now().0;
    let token = WaitpointToken::new("secret").clone();
    assert_eq!(token.as_str(), "secret");
    assert!(!format!("{token} {token:?}").contains("secret"));
    let _ = (
        FlowId::mint(),
        EdgeId::mint(),
        BudgetId::mint(),
        QuotaPolicyId::mint(),
        WaitpointId::mint(),
        SuspensionId::mint(),
        SignalId::mint(),
    );
}

fn config() -> WorkerConfig {
    let mut config: WorkerConfig =
        WorkerConfig::new("localhost", 6379_u16, "worker", String::from("worker-1"), "default", "lane");
    config.worker_id = WorkerId::new("w");
    config.worker_instance_id = WorkerInstanceId::new("w-1");
    config.namespace = Namespace::new("default");
    config.lanes = vec![LaneId::new("a"), LaneId::new("b")];
    config.capabilities = vec!["gpu".to_owned()];
    config.lease_ttl_ms = 30_000;
    config.claim_poll_interval_ms = 1_000;
    config.max_concurrent_tasks = 1;
    let _ = WorkerConfig::http("http://127.0.0.1:7433", "w", "w-1", "default", "lane");
    let _ = &config.backend;
    config
}

async fn worker(
    worker: FlowFabricWorker,
    admin: FlowFabricAdminClient,
    grant: ClaimGrant,
    reclaim: ReclaimGrant,
) -> Result<(), SdkError> {
    let claimed: Result<Option<ClaimedTask>, SdkError> = worker.claim_next().await;
    drop(claimed);
    let claimed: Option<ClaimedTask> = worker.claim_via_server(&admin, &LaneId::new("a"), 5_000).await?;
    drop(claimed);
    let claimed: ClaimedTask = worker.claim_from_grant(LaneId::new("a"), grant).await?;
    drop(claimed);
    let claimed: ClaimedTask = worker.claim_from_reclaim_grant(reclaim).await?;
    drop(claimed);
    let _ = worker.describe_execution(&ExecutionId::mint()).await?;
    let _ = worker.describe_flow(&FlowId::mint()).await?;
    let _ = (worker.backend(), worker.completion_backend(), worker.config(), worker.partition_config());
    worker.disconnect().await
}

async fn task(task: ClaimedTask) -> Result<(), SdkError> {
    let _: &ExecutionId = task.execution_id();
    let _: &AttemptId = task.attempt_id();
    let _: &LeaseId = task.lease_id();
    let _: &LaneId = task.lane_id();
    let _: &str = task.execution_kind();
    let _: AttemptIndex = task.attempt_index();
    let _: LeaseEpoch = task.lease_epoch();
    let _: &[u8] = task.input_payload();
    let _: &HashMap<String, String> = task.tags();
    let _: &HashMap<String, Vec<u8>> = task.passed();
    let _: bool = task.is_lease_healthy();
    let _ = task.consecutive_renewal_failures() > 0;
    task.renew_lease().await?;
    task.update_progress(5_u8, "going").await?;
    task.complete(Some(vec![1])).await
}

async fn waiting(
    worker: FlowFabricWorker,
    task: ClaimedTask,
    waitpoint_token: WaitpointToken,
) -> Result<Option<ClaimedTask>, SdkError> {
    let (waitpoint_id, token): (WaitpointId, WaitpointToken) = task.create_pending_waitpoint("key", 60_000_u64).await?;
    let signals: Vec<ResumeSignal> = task.resume_signals().await?;
    assert!(signals.is_empty());
    let execution_id: ExecutionId = *task.execution_id();
    // Exactly these fields, by literal.
    let signal = Signal {
        signal_name: "approved".to_owned(),
        signal_category: "approval".to_owned(),
        payload: Some(vec![1]),
        source_type: "human".to_owned(),
        source_identity: "ann".to_owned(),
        idempotency_key: None,
        waitpoint_token: token,
    };
    match worker.deliver_signal(&execution_id, &waitpoint_id, signal).await? {
        SignalOutcome::Accepted { .. } | SignalOutcome::TriggeredResume { .. } | SignalOutcome::Duplicate { .. } => {}
    }
    let matchers = [ConditionMatcher { signal_name: String::new() }];
    let timeout_ms: Option<u64> = Some(1_000);
    match task.suspend("waiting_for_signal", &matchers, timeout_ms, TimeoutBehavior::AutoResume).await? {
        SuspendOutcome::Suspended { suspension_id, waitpoint_id, waitpoint_key, waitpoint_token: token } => {
            let _: (SuspensionId, WaitpointId, String) = (suspension_id, waitpoint_id, waitpoint_key);
            assert_ne!(token.as_str(), waitpoint_token.as_str());
            Ok(None)
        }
        SuspendOutcome::AlreadySatisfied { task, signals, .. } => {
            let _: Vec<ResumeSignal> = signals;
            Ok(Some(task))
        }
    }
}

async fn streaming(worker: FlowFabricWorker, task: ClaimedTask) -> Result<(), SdkError> {
    let _: AppendFrameOutcome = task.append_frame("token", b"payload", Some("metadata")).await?;
    let StreamFrames { frames, .. } = task.read_stream(StreamCursor::Start, StreamCursor::End, 10_u64).await?;
    let frames: Vec<StreamFrame> = frames;
    let after = frames.last().map_or_else(StreamCursor::from_beginning, |frame| StreamCursor::At(frame.id.clone()));
    let _: StreamFrames = task.tail_stream(after.clone(), MAX_TAIL_BLOCK_MS, STREAM_READ_HARD_CAP).await?;
    let (id, attempt) = (*task.execution_id(), task.attempt_index());
    let backend: &dyn ff_sdk::backend::Backend = worker.backend().as_ref();
    let _: StreamFrames = read_stream(backend, &id, attempt, StreamCursor::Start, StreamCursor::End, 10).await?;
    let _: StreamFrames = tail_stream(worker.backend(), &id, attempt, after, 0, 10).await?;
    Ok(())
}

fn words() {
    let table = [
        (TimeoutBehavior::Fail, "fail"),
        (TimeoutBehavior::Cancel, "cancel"),
        (TimeoutBehavior::Expire, "expire"),
        (TimeoutBehavior::AutoResume, "auto_resume_with_timeout_signal"),
        (TimeoutBehavior::Escalate, "escalate"),
    ];
    for (behavior, word) in table {
        assert_eq!(behavior.as_str(), word);
        assert_eq!(word.parse::<TimeoutBehavior>().unwrap(), behavior, "{behavior:?}");
    }
    assert_eq!("auto_resume".parse::<TimeoutBehavior>().unwrap(), TimeoutBehavior::AutoResume);
    for text in ["start", "end", "1700000000000", "1700000000000-7"] {
        assert_eq!(text.parse::<StreamCursor>().unwrap().to_string(), text);
    }
    assert!("-".parse::<StreamCursor>().is_err() && "+".parse::<StreamCursor>().is_err());
    assert_eq!((MAX_TAIL_BLOCK_MS, STREAM_READ_HARD_CAP), (30_000, 10_000));
}

async fn endings(tasks: [ClaimedTask; 5]) -> Result<(), SdkError> {
    let [one, two, three, four, five] = tasks;
    match one.fail("reason", "category").await? {
        FailOutcome::RetryScheduled { delay_until } => {
            let _: TimestampMs = delay_until;
        }
        FailOutcome::TerminalFailed => {}
    }
    two.cancel("reason").await?;
    three.delay_execution(TimestampMs::now()).await?;
    four.yield_back().await?;
    five.move_to_waiting_children().await
}

fn errors(error: SdkError) -> &'static str {
    match error {
        SdkError::Config { context, field, message } => {
            let _: (String, Option<String>, String) = (context, field, message);
            "config"
        }
        SdkError::WorkerAtCapacity => "capacity",
        SdkError::Engine(engine) => {
            let _ = (engine.class(), engine.code());
            match *engine {
                EngineError::NotFound { entity } => entity,
                EngineError::Validation { kind: ValidationKind::CapabilityMismatch { missing }, detail } => {
                    drop::<(Vec<String>, String)>((missing, detail));
                    "mismatch"
                }
                EngineError::Validation { .. } => "validation",
                EngineError::Contention(ContentionKind::ExecutionNotActive {
                    terminal_outcome: _,
                    lease_epoch: _,
                    lifecycle_phase: _,
                    attempt_id: _,
                }) => "not active",
                EngineError::Contention(_) => "contention",
                EngineError::Conflict(ConflictKind::IdempotencyConflict { .. }) => "idempotency",
                EngineError::Conflict(_) => "conflict",
                EngineError::State(StateKind::StaleLease | StateKind::LeaseExpired | StateKind::LeaseRevoked) => {
                    "lease"
                }
                EngineError::State(_) => "state",
                EngineError::Corrupt { key: _, field: _ } => "corrupt",
                EngineError::Transport { .. } => "transport",
            }
        }
        SdkError::Transport { source: _, context: _ } => "transport",
        SdkError::Http { .. } => "http",
    }
}

struct State;

async fn none() -> HandlerResult {
    Ok(None)
}
async fn six(
    _: Payload<u8>,
    _: PayloadBytes,
    _: Data<State>,
    _: TaskInfo,
    _: Ctx,
    _: Payload<String>,
) -> HandlerResult {
    Ok(Some(Vec::new()))
}

async fn runtime(worker: FlowFabricWorker) -> Result<(), SdkError> {
    let _ = BackoffPolicy::default();
    WorkerRuntime::new(worker).data(State).on("none", none).on("six", six).run().await
}

#[test]
fn a_program_written_against_the_contract_compiles() {
    ids();
    assert_eq!(config().lanes.len(), 2);
    assert_eq!(errors(SdkError::WorkerAtCapacity), "capacity");
    // Named, not run: what counts is that they compile.
    words();
    let _ = (worker, task, waiting, streaming, endings, runtime);
    let _: Option<Arc<dyn ff_sdk::backend::Backend>> = None;
}
