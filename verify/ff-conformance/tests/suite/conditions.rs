//! Conditions: the library counts signals like the reference in `ff_core`, whenever they arrive.

use ff_conformance::harness::Kind;
use ff_conformance::waits::nodes;
use ff_conformance::{Store, work::Fenced};
use ff_core::condition::{Arrived, Condition, Matcher, Over, evaluate};
use ff_script::generated::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const KEYS: [&str; 3] = ["w0", "w1", "w2"];
const NAMES: [&str; 3] = ["a", "b", "c"];
/// The approvers of each waitpoint. An empty list is one token without a name.
const APPROVERS: [&[&str]; 3] = [&[], &["ann", "bob"], &["bob", "cid"]];

/// One wait: its condition, the signals, how many of them arrive before the suspend, and the waitpoints that exist by
/// then.
#[derive(Clone, Debug)]
struct Wait {
    condition: Condition,
    /// Name, waitpoint and token of each signal, as numbers.
    arrivals: Vec<(usize, usize, usize)>,
    early: usize,
    pending: [bool; 3],
}

fn any_condition() -> impl Strategy<Value = Condition> {
    let name = || proptest::option::of(proptest::sample::select(NAMES.to_vec()).prop_map(str::to_owned));
    let key = || proptest::option::of(proptest::sample::select(KEYS.to_vec()).prop_map(str::to_owned));
    let over = proptest::sample::select(vec![Over::Signals, Over::Waitpoints, Over::Approvers]);
    let of = proptest::option::of((name(), key()).prop_map(|(name, waitpoint)| Matcher { name, waitpoint }));
    let leaf = prop_oneof![
        (name(), key()).prop_map(|(name, waitpoint)| Condition::Signal { name, waitpoint }),
        (1_u32..4, over, of).prop_map(|(n, over, of)| Condition::Count { n, over, of }),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Condition::AnyOf),
            proptest::collection::vec(inner, 1..4).prop_map(Condition::AllOf),
        ]
    })
}

fn any_wait() -> impl Strategy<Value = Wait> {
    let arrivals = proptest::collection::vec((0..NAMES.len(), 0..KEYS.len(), 0..2_usize), 0..14);
    (any_condition(), arrivals, 0..14_usize, any::<[bool; 3]>())
        .prop_map(|(condition, arrivals, early, pending)| Wait { condition, arrivals, early, pending })
}

struct Run<'a> {
    store: &'a Store,
    task: Task,
    waitpoints: [NewWaitpoint; 3],
}

impl Run<'_> {
    fn call(&self, (name, at, who): (usize, usize, usize)) -> (DeliverSignal, Arrived) {
        let waitpoint = &self.waitpoints[at];
        let token = &waitpoint.tokens[who % waitpoint.tokens.len()];
        let call = self.store.signal_call(self.task.execution_id, waitpoint, NAMES[name]);
        let arrived = Arrived {
            name: NAMES[name].to_owned(),
            waitpoint_key: waitpoint.key.clone(),
            waitpoint_id: waitpoint.waitpoint_id,
            approver_token: token.approver.clone().unwrap_or_else(|| waitpoint.waitpoint_id.to_string()),
        };
        (DeliverSignal { token_digest: token.digest.clone(), ..call }, arrived)
    }
}

/// The signals that ended the wait, as the reference names them.
fn expected(
    condition: &Condition,
    arrived: &[Arrived],
    ids: &[ff_core::types::SignalId],
) -> Vec<ff_core::types::SignalId> {
    evaluate(condition, arrived).satisfying().iter().map(|&index| ids[index]).collect()
}

/// Compares both, and returns how the wait ended, so that the run can check that every way occurred.
async fn agrees(store: &Store, wait: Wait) -> &'static str {
    let run = Run {
        store,
        task: store.start("mail", "w1").await,
        waitpoints: std::array::from_fn(|n| match APPROVERS[n] {
            [] => store.waitpoint(KEYS[n]),
            labels => store.approvals(KEYS[n], labels),
        }),
    };
    let id = run.task.execution_id;
    for (waitpoint, _) in run.waitpoints.iter().zip(wait.pending).filter(|(_, pending)| *pending) {
        store.open_early(&run.task, waitpoint).await;
    }
    let (mut arrived, mut ids) = (Vec::new(), Vec::new());
    let (early, late) = wait.arrivals.split_at(wait.early.min(wait.arrivals.len()));
    for &arrival in early.iter().filter(|arrival| wait.pending[arrival.1]) {
        let (call, one) = run.call(arrival);
        let reply = store.ask(&call).await.unwrap();
        assert_eq!(reply, DeliverSignalReply::Accepted { signal_id: call.signal_id, effect: SignalEffect::Buffered });
        arrived.push(one);
        ids.push(call.signal_id);
    }
    let new: Vec<_> = run
        .waitpoints
        .iter()
        .zip(wait.pending)
        .filter(|(_, pending)| !*pending)
        .map(|(waitpoint, _)| waitpoint)
        .collect();
    let call = SuspendExecution { condition: nodes(&wait.condition), ..store.suspend_call(&run.task, &new) };
    match store.ask(&call).await.unwrap() {
        SuspendExecutionReply::Done { resume } => panic!("it is not a step: {resume:?}"),
        SuspendExecutionReply::AlreadySatisfied { signals, .. } => {
            assert!(evaluate(&wait.condition, &arrived).satisfied, "too few were enough");
            let signals: Vec<_> = signals.into_iter().map(|signal| signal.signal_id).collect();
            assert_eq!(signals, expected(&wait.condition, &arrived, &ids));
            store.ask(&CompleteExecution::new(id, run.task.fence())).await.unwrap();
            return "satisfied";
        }
        SuspendExecutionReply::Suspended { .. } => {
            assert!(!evaluate(&wait.condition, &arrived).satisfied, "those that came early were enough");
        }
    }
    for &arrival in late {
        let (call, one) = run.call(arrival);
        arrived.push(one);
        ids.push(call.signal_id);
        let evaluation = evaluate(&wait.condition, &arrived);
        let counts = evaluation.taken.iter().any(|taken| taken.last() == Some(&(arrived.len() - 1)));
        let signal_id = call.signal_id;
        let effect = if counts { SignalEffect::Counted } else { SignalEffect::Unused };
        let reply = store.ask(&call).await.unwrap();
        if evaluation.satisfied {
            assert_eq!(reply, DeliverSignalReply::TriggeredResume { signal_id });
            let again = store.claim_one("w1").await;
            let signals: Vec<_> = again.resume.clone().unwrap().signals.iter().map(|signal| signal.signal_id).collect();
            assert_eq!(signals, expected(&wait.condition, &arrived, &ids));
            store.complete(&again).await;
            return "resumed";
        }
        assert_eq!(reply, DeliverSignalReply::Accepted { signal_id, effect });
        let progress = store.describe(id).await.suspension.unwrap().condition;
        let counted: Vec<_> = progress.iter().map(|node| node.counted as usize).collect();
        assert_eq!(counted, evaluation.taken.iter().map(Vec::len).collect::<Vec<_>>());
    }
    store.ask(&CancelExecution::new("op".into(), id)).await.unwrap();
    "waits"
}

#[test]
fn signals_count_as_the_reference_says() {
    if !Kind::Embedded.is_wanted() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = runtime.block_on(async {
        let store = Store::open(Kind::Embedded).await;
        store.install_default_lane().await;
        store
    });
    let met = std::cell::RefCell::new(std::collections::BTreeMap::<&str, usize>::new());
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&any_wait(), |wait| {
        let end = runtime.block_on(agrees(&store, wait));
        *met.borrow_mut().entry(end).or_default() += 1;
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    runtime.block_on(store.assert_sound());
    let met = met.into_inner();
    for end in ["satisfied", "resumed", "waits"] {
        assert!(met.get(end).is_some_and(|&times| times >= 20), "too few ended so: {met:?}");
    }
}
