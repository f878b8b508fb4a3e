//! Children: spawned by a running attempt, waited for without a worker, closed with their parent.

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, HOME, LANE, LEASE_MS, NAMESPACE, digest};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{ExecutionId, SuspensionId};
use ff_script::generated::*;

use crate::suspend::invalid;

fn child(store: &Store, key: &str) -> NewChild {
    let mut submission =
        Submission::new(store.execution_id(), NAMESPACE.into(), LANE.into(), "child".into(), digest(key));
    submission.retry = Some(Retry { max_attempts: Some(1), ..Default::default() });
    NewChild { key: Some(key.to_owned()), ..NewChild::new(submission) }
}

async fn spawn(store: &Store, parent: &Task, children: Vec<NewChild>) -> Vec<ExecutionId> {
    let call = SpawnChildren::new(children, parent.execution_id, parent.fence());
    let SpawnChildrenReply::Spawned { items } = store.ask(&call).await.unwrap();
    items.into_iter().map(|item| item.execution_id.unwrap()).collect()
}

async fn wait(store: &Store, parent: &Task) -> WaitChildrenReply {
    let wait_id = SuspensionId::from_uuid(store.uuid(0));
    store.ask(&WaitChildren::new(parent.execution_id, parent.fence(), wait_id)).await.unwrap()
}

async fn open_children(store: &Store, id: ExecutionId) -> (i64, i64) {
    let e = store.describe(id).await;
    (e.children, e.children_open)
}

for_each_host! {
    async fn a_parent_waits_without_a_worker_and_goes_on_with_the_outcomes(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        let ids = spawn(&store, &parent, vec![child(&store, "a"), child(&store, "b")]).await;
        assert_eq!(wait(&store, &parent).await, WaitChildrenReply::Waiting { open: 2 });
        let seen = store.describe(parent.execution_id).await;
        assert_eq!((seen.state, seen.blocking_reason, seen.lease), (PublicState::WaitingChildren, Some(BlockingReason::WaitingForChildren), None));
        store.assert_sound().await;
        let tasks = store.claim("w2", 10).await;
        assert_eq!(tasks.iter().map(|t| t.execution_id).collect::<Vec<_>>(), ids);
        assert_eq!((tasks[0].parent_id, tasks[0].key.as_deref()), (Some(parent.execution_id), Some("a")));
        let call = CompleteExecution { result: Some(b"one".to_vec().into()), ..CompleteExecution::new(ids[0], tasks[0].fence()) };
        store.ask(&call).await.unwrap();
        assert!(store.claim("w3", 1).await.is_empty(), "one child is open");
        store.fail(&tasks[1], "broken").await;
        store.assert_sound().await;
        assert_eq!(store.state(parent.execution_id).await, PublicState::Resumable);
        let again = store.claim_one("w3").await;
        assert_eq!((again.execution_id, again.attempt_index, again.attempt_id), (parent.execution_id, 0, parent.attempt_id));
        assert!(again.lease_epoch > parent.lease_epoch);
        let resume = again.resume.clone().unwrap();
        assert_eq!((resume.cause, resume.more_children), (ResumeCause::Children, None));
        let outcomes: Vec<_> = resume.children.unwrap().into_iter().map(|c| (c.execution_id, c.key, c.outcome, c.result, c.failure.map(|f| f.category))).collect();
        assert_eq!(outcomes, [
            (ids[0], Some("a".into()), Some(Outcome::Success), Some(b"one".to_vec().into()), None),
            (ids[1], Some("b".into()), Some(Outcome::Failed), None, Some("broken".into())),
        ]);
        store.complete(&again).await;
        assert_eq!(store.story(parent.execution_id).await, [
            "execution.submitted", "execution.started", "execution.waiting", "execution.resumed", "execution.started", "execution.completed",
        ]);
        store.fire_all().await;
        store.assert_sound().await;
    }

    async fn a_wait_for_children_that_have_ended_keeps_the_lease(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        assert_eq!(wait(&store, &parent).await, WaitChildrenReply::Ended { children: vec![], more: false });
        spawn(&store, &parent, vec![child(&store, "a")]).await;
        store.complete(&store.claim_one("w2").await).await;
        let WaitChildrenReply::Ended { children, .. } = wait(&store, &parent).await else { panic!("not ended") };
        assert_eq!(children.len(), 1);
        store.complete(&parent).await;
        store.assert_sound().await;
    }

    async fn an_attempt_goes_aside_though_its_children_have_ended_when_it_says_so(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        spawn(&store, &parent, vec![child(&store, "a")]).await;
        store.complete(&store.claim_one("w2").await).await;
        let wait_id = SuspensionId::from_uuid(store.uuid(0));
        let call = WaitChildren { aside: Some(true), ..WaitChildren::new(parent.execution_id, parent.fence(), wait_id) };
        assert_eq!(store.ask(&call).await, Ok(WaitChildrenReply::Waiting { open: 0 }));
        assert_eq!(store.ask(&call).await, Ok(WaitChildrenReply::Waiting { open: 0 }));
        store.assert_sound().await;
        let again = store.claim_one("w2").await;
        let resume = again.resume.clone().unwrap();
        assert_eq!((again.attempt_id, resume.cause, resume.children.unwrap().len()), (parent.attempt_id, ResumeCause::Children, 1));
        store.complete(&again).await;
        store.assert_sound().await;
    }

    async fn lost_replies_are_answered_again(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        let call = SpawnChildren::new(vec![child(&store, "a")], parent.execution_id, parent.fence());
        let SpawnChildrenReply::Spawned { items } = store.ask(&call).await.unwrap();
        let SpawnChildrenReply::Spawned { items: again } = store.ask(&call).await.unwrap();
        assert_eq!((items[0].execution_id, again[0].duplicate), (again[0].execution_id, Some(true)));
        assert_eq!(open_children(&store, parent.execution_id).await, (1, 1));
        assert_eq!(wait(&store, &parent).await, WaitChildrenReply::Waiting { open: 1 });
        assert_eq!(wait(&store, &parent).await, WaitChildrenReply::Waiting { open: 1 });
        // A zombie spawns nothing.
        assert_eq!(refusal(store.ask(&call).await), ErrorCode::ExecutionNotActive);
        store.assert_sound().await;
    }

    async fn a_key_is_known_under_its_parent_only(store) {
        store.install_default_lane().await;
        let parents = [store.start("agent", "w1").await, store.start("agent", "w1").await];
        let keyed = || {
            let mut one = child(&store, "a");
            one.submission.idempotency_key = Some("k".into());
            one
        };
        let first = spawn(&store, &parents[0], vec![keyed()]).await;
        assert_eq!(spawn(&store, &parents[0], vec![keyed()]).await, first);
        assert_ne!(spawn(&store, &parents[1], vec![keyed()]).await, first);
        store.assert_sound().await;
    }

    async fn the_end_of_a_parent_cancels_its_children_unless_they_are_abandoned(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        let first = child(&store, "a");
        let left = NewChild { parent_close: Some(ParentClose::Abandon), ..child(&store, "left") };
        let ids = spawn(&store, &parent, vec![first, left]).await;
        let grandchild = {
            let a = store.claim_one("w2").await;
            spawn(&store, &a, vec![child(&store, "deep")]).await[0]
        };
        store.complete(&parent).await;
        assert_eq!(store.state(ids[0]).await, PublicState::Cancelled);
        assert_eq!(store.state(grandchild).await, PublicState::Cancelled);
        assert_eq!(store.state(ids[1]).await, PublicState::Waiting);
        assert_eq!(store.describe(ids[0]).await.failure.unwrap().reason, "its parent ended");
        store.assert_sound().await;
        store.complete(&store.claim_one("w3").await).await;
        store.assert_sound().await;
    }

    async fn many_children_are_closed_in_pieces(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        for batch in 0..3 {
            spawn(&store, &parent, (0..64).map(|n| child(&store, &format!("{batch}-{n}"))).collect()).await;
        }
        assert_eq!(open_children(&store, parent.execution_id).await, (192, 192));
        store.complete(&parent).await;
        store.assert_sound().await;
        store.fire_all().await;
        assert!(store.claim("w2", 10).await.is_empty());
        let ListExecutionsReply::Page { items, .. } = store.ask(&ListExecutions { state: Some(PublicState::Cancelled), ..ListExecutions::new(1000) }).await.unwrap();
        assert_eq!(items.len(), 192);
        store.assert_sound().await;
    }

    async fn a_child_shares_deadline_and_partition_with_its_parent(store) {
        store.install_default_lane().await;
        let parent = store.start_with(Submission { deadline_ms: Some(9_000), ..store.submission("agent") }, "w1").await;
        let ids = spawn(&store, &parent, vec![child(&store, "a")]).await;
        assert_eq!(store.describe(ids[0]).await.deadline_at, store.describe(parent.execution_id).await.deadline_at);
        let mut stranger = child(&store, "b");
        stranger.submission.execution_id = ExecutionId::from_uuid(store.uuid(1));
        let call = SpawnChildren::new(vec![child(&store, "c"), stranger], parent.execution_id, parent.fence());
        assert!(invalid(store.ask(&call).await).contains("children[1].submission.execution_id"));
        assert_eq!(open_children(&store, parent.execution_id).await, (1, 1));
    }

    async fn a_parent_that_waits_is_ended_like_any_other(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        let ids = spawn(&store, &parent, vec![child(&store, "a")]).await;
        wait(&store, &parent).await;
        // Its lease is gone, so time changes nothing.
        store.advance(LEASE_MS * 3);
        store.fire_all().await;
        assert_eq!(store.state(parent.execution_id).await, PublicState::WaitingChildren);
        store.ask(&HoldExecution::new("ann".into(), parent.execution_id)).await.unwrap();
        store.ask(&ReleaseExecution::new("ann".into(), parent.execution_id)).await.unwrap();
        assert_eq!(store.state(parent.execution_id).await, PublicState::WaitingChildren);
        store.ask(&CancelExecution::new("ann".into(), parent.execution_id)).await.unwrap();
        assert_eq!(store.state(ids[0]).await, PublicState::Cancelled);
        assert_eq!(store.describe(parent.execution_id).await.attempts[0].state, AttemptState::Cancelled);
        store.assert_sound().await;
    }

    async fn children_are_kept_as_long_as_their_parent_runs(store) {
        store.install_default_lane().await;
        let parent = store.start_with(Submission { retention_ms: Some(1_000), ..store.submission("agent") }, "w1").await;
        let mut one = child(&store, "a");
        one.submission.retention_ms = Some(1_000);
        let ids = spawn(&store, &parent, vec![one]).await;
        wait(&store, &parent).await;
        store.complete(&store.claim_one("w2").await).await;
        store.advance(5_000);
        store.fire_all().await;
        assert_eq!(refusal(store.ask(&DeleteExecution { actor: "ann".into(), execution_id: ids[0] }).await), ErrorCode::FlowNotTerminal);
        store.complete(&store.claim_one("w2").await).await;
        store.fire_all().await;
        store.advance(1_000);
        store.fire_all().await;
        assert_eq!(refusal(store.find(ids[0]).await), ErrorCode::ExecutionNotFound);
        assert_eq!(refusal(store.find(parent.execution_id).await), ErrorCode::ExecutionNotFound);
        store.assert_sound().await;
    }

    async fn a_replayed_child_is_waited_for_again(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        let ids = spawn(&store, &parent, vec![child(&store, "a")]).await;
        store.fail(&store.claim_one("w2").await, "broken").await;
        store.ask(&ReplayExecution::new("ann".into(), ids[0])).await.unwrap();
        assert_eq!(wait(&store, &parent).await, WaitChildrenReply::Waiting { open: 1 });
        store.complete(&store.claim_one("w2").await).await;
        assert_eq!(store.claim_one("w1").await.execution_id, parent.execution_id);
        store.assert_sound().await;
    }

    async fn children_are_read_in_pages(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        let ids = spawn(&store, &parent, (0..10).map(|n| child(&store, &format!("c{n}"))).collect()).await;
        for task in store.claim("w2", 64).await {
            let call = CompleteExecution { result: Some(vec![7; 20_000].into()), ..CompleteExecution::new(task.execution_id, task.fence()) };
            store.ask(&call).await.unwrap();
        }
        let (mut seen, mut from) = (Vec::new(), None);
        loop {
            let ReadChildrenReply::Page { children, next } = store.ask(&ReadChildren { execution_id: parent.execution_id, from, limit: 4 }).await.unwrap();
            seen.extend(children.into_iter().map(|child| child.execution_id));
            from = next;
            if from.is_none() { break }
        }
        assert_eq!(seen, ids);
        // A claim carries as many outcomes as fit.
        let WaitChildrenReply::Ended { children, more } = wait(&store, &parent).await else { panic!("not ended") };
        assert_eq!((children.len(), more), (3, true));
        let _ = HOME;
    }
}
