//! Calls for tests of waits: open a waitpoint, suspend, signal, read.

use ff_core::condition::Condition;
use ff_core::types::{ExecutionId, SignalId, SuspensionId, WaitpointId};
use ff_script::Error;
use ff_script::generated::{
    ConditionNode, CreateWaitpoint, CreateWaitpointReply, DeliverSignal, DeliverSignalReply, DescribeWaitpoint,
    DescribeWaitpointReply, ExecutionWaitpoints, ExecutionWaitpointsReply, ListWaitpoints, ListWaitpointsReply,
    NewWaitpoint, ReadSignals, ReadSignalsReply, Signal, SuspendExecution, SuspendExecutionReply, SuspensionReason,
    Task, TimeoutBehavior, Token, Waitpoint,
};
use sha2::{Digest, Sha256};

use crate::harness::Store;
use crate::work::Fenced;

/// The digest of a test's token with this name.
pub fn token(name: &str) -> String {
    hex::encode(Sha256::digest(name))
}

/// A condition in the form of the library.
pub fn nodes(condition: &Condition) -> Vec<ConditionNode> {
    let node = |node: ff_core::condition::Node| ConditionNode {
        parent: node.parent.map(|place| place as i64),
        name: node.name,
        waitpoint: node.waitpoint,
        n: node.n.map(i64::from),
        over: node.over.map(|over| over.as_str().parse().expect("the same words")),
        ..ConditionNode::new(node.op.as_str().parse().expect("the same words"))
    };
    condition.flatten().into_iter().map(node).collect()
}

/// A condition from JSON, in the form of the library.
pub fn condition(json: &str) -> Vec<ConditionNode> {
    nodes(&serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}")))
}

impl Store {
    /// A waitpoint with one token, named by the waitpoint's key.
    pub fn waitpoint(&self, key: &str) -> NewWaitpoint {
        NewWaitpoint::new(self.waitpoint_id(), key.into(), vec![Token::new(token(key))])
    }

    /// A waitpoint with one token for each approver, named `key/label`.
    pub fn approvals(&self, key: &str, approvers: &[&str]) -> NewWaitpoint {
        let token = |label: &&str| Token {
            approver: Some((*label).to_owned()),
            ..Token::new(token(&format!("{key}/{label}")))
        };
        NewWaitpoint::new(self.waitpoint_id(), key.into(), approvers.iter().map(token).collect())
    }

    /// A fresh waitpoint id in partition 0.
    pub fn waitpoint_id(&self) -> WaitpointId {
        WaitpointId::from_uuid(self.uuid(0))
    }

    /// Opens a waitpoint while the attempt runs.
    pub async fn open_early(&self, task: &Task, waitpoint: &NewWaitpoint) {
        let call = CreateWaitpoint::new(task.execution_id, task.fence(), waitpoint.clone());
        let reply = self.ask(&call).await;
        assert!(matches!(reply, Ok(CreateWaitpointReply::Created { replayed: false, .. })), "not created: {reply:?}");
    }

    /// A suspend that waits for any signal, without a timeout. Tests change the fields they need.
    pub fn suspend_call(&self, task: &Task, waitpoints: &[&NewWaitpoint]) -> SuspendExecution {
        SuspendExecution::new(
            Vec::new(),
            task.execution_id,
            task.fence(),
            SuspensionReason::WaitingForSignal,
            SuspensionId::from_uuid(self.uuid(0)),
            TimeoutBehavior::Fail,
            waitpoints.iter().map(|&waitpoint| waitpoint.clone()).collect(),
        )
    }

    /// Makes this suspend, which must suspend the attempt.
    pub async fn suspend_with(&self, call: &SuspendExecution) {
        let reply = self.ask(call).await;
        assert!(
            matches!(reply, Ok(SuspendExecutionReply::Suspended { replayed: false, .. })),
            "not suspended: {reply:?}"
        );
    }

    /// Suspends a task at these waitpoints until any signal arrives.
    pub async fn suspend(&self, task: &Task, waitpoints: &[&NewWaitpoint]) {
        self.suspend_with(&self.suspend_call(task, waitpoints)).await;
    }

    /// Starts an execution and suspends it at a waitpoint `door`.
    pub async fn start_suspended(&self) -> (Task, NewWaitpoint) {
        let (task, door) = (self.start("mail", "w1").await, self.waitpoint("door"));
        self.suspend(&task, &[&door]).await;
        (task, door)
    }

    /// A fresh signal with the waitpoint's first token.
    pub fn signal_call(&self, id: ExecutionId, waitpoint: &NewWaitpoint, name: &str) -> DeliverSignal {
        let signal_id = SignalId::from_uuid(self.uuid(0));
        DeliverSignal::new(id, name.into(), signal_id, waitpoint.tokens[0].digest.clone(), waitpoint.waitpoint_id)
    }

    /// A fresh signal from one approver.
    pub fn answer_call(&self, id: ExecutionId, waitpoint: &NewWaitpoint, approver: &str, name: &str) -> DeliverSignal {
        let own = waitpoint.tokens.iter().find(|token| token.approver.as_deref() == Some(approver));
        let token_digest = own.expect("an approver of the waitpoint").digest.clone();
        DeliverSignal { token_digest, ..self.signal_call(id, waitpoint, name) }
    }

    /// Delivers a fresh signal with the waitpoint's first token.
    pub async fn signal(
        &self,
        id: ExecutionId,
        waitpoint: &NewWaitpoint,
        name: &str,
    ) -> Result<DeliverSignalReply, Error> {
        self.ask(&self.signal_call(id, waitpoint, name)).await
    }

    /// Delivers a signal that must resume the execution.
    pub async fn wake(&self, id: ExecutionId, waitpoint: &NewWaitpoint, name: &str) {
        let reply = self.signal(id, waitpoint, name).await;
        assert!(matches!(reply, Ok(DeliverSignalReply::TriggeredResume { .. })), "not resumed: {reply:?}");
    }

    /// Every signal of an execution, oldest first.
    pub async fn signals(&self, execution_id: ExecutionId) -> Vec<Signal> {
        let mut all: Vec<Signal> = Vec::new();
        loop {
            let after = all.last().map(|signal| signal.id.clone());
            let call = ReadSignals { after, ..ReadSignals::new(execution_id, 1_000, false) };
            let ReadSignalsReply::Page { signals, more } = self.ask(&call).await.expect("signals are read");
            all.extend(signals);
            if !more {
                return all;
            }
        }
    }

    /// One waitpoint, which must exist.
    pub async fn look(&self, waitpoint: &NewWaitpoint) -> Waitpoint {
        let DescribeWaitpointReply::Found { waitpoint } =
            self.ask(&DescribeWaitpoint { waitpoint_id: waitpoint.waitpoint_id }).await.expect("a waitpoint");
        waitpoint
    }

    /// The waitpoints of an execution, closed ones first.
    pub async fn waitpoints_of(&self, execution_id: ExecutionId) -> Vec<Waitpoint> {
        let ExecutionWaitpointsReply::Found { waitpoints } =
            self.ask(&ExecutionWaitpoints { execution_id }).await.expect("an execution");
        waitpoints
    }

    /// Every open waitpoint of partition 0, oldest first.
    pub async fn inbox(&self) -> Vec<Waitpoint> {
        let ListWaitpointsReply::Page { items, more, .. } =
            self.ask(&ListWaitpoints::new(1_000)).await.expect("a list");
        assert!(!more, "a test has few waitpoints");
        items
    }
}
