//! Why work does not run, asked by a program on every transport.

use ff_sdk::snapshot::{Explanation, LaneReasonOf};

use crate::world::{LANE, World, claim, until};

fn reasons(explained: &Explanation) -> Vec<&str> {
    explained.reasons.iter().map(|cause| cause.reason.as_str()).collect()
}

for_each_transport! {
    async fn an_execution_tells_which_worker_comes_nearest(world: &World) {
        let mut new = world.new_execution("render");
        new.fields.requires = Some(vec!["eu".to_owned(), "gpu".to_owned()]);
        let id = world.admin.submit(new).await.unwrap();
        let explained = world.admin.explain(&id).await.unwrap();
        assert!(reasons(&explained).contains(&"no_worker"), "{explained:#?}");

        let mut config = world.config("w-eu");
        config.capabilities = vec!["eu".to_owned()];
        let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
        let explained = worker.explain(&id).await.unwrap();
        let requires = explained.requires.as_ref().expect("it requires something");
        let nearest = requires.nearest.as_ref().expect("a worker is there");
        assert_eq!((nearest.instance.as_str(), nearest.missing.as_slice()), ("w-eu", ["gpu".to_owned()].as_slice()));
        assert!(!requires.covered && !explained.can_run, "{explained:#?}");
        worker.disconnect().await.unwrap();
    }

    async fn an_execution_tells_how_full_its_quota_is(world: &World) {
        let quota = world.admin.create_quota(ff_sdk::QuotaSpec::new("default").concurrency(1)).await.unwrap().quota_id;
        let limited = || world.new_execution("work").quota(&quota, "acme");
        world.admin.submit(limited()).await.unwrap();
        let worker = world.worker("w-1").await;
        let task = claim(&worker).await;
        let waits = world.admin.submit(limited()).await.unwrap();
        let other = world.worker("w-2").await;
        until("the quota refuses the second one", || async {
            assert!(other.claim_next().await.unwrap().is_none(), "only one may run");
            reasons(&world.admin.explain(&waits).await.unwrap()).contains(&"waiting_for_quota")
        }).await;
        let explained = world.admin.explain(&waits).await.unwrap();
        let facts = &explained.quotas[0];
        assert_eq!((facts.quota_id, facts.state.key.as_str(), facts.state.held), (quota, "acme", 1));
        assert!(facts.remedy.as_ref().is_some_and(|remedy| remedy.contains("raise the concurrency 1")), "{facts:#?}");

        let lane = world.admin.explain_lane("default", LANE).await.unwrap();
        assert_eq!((lane.lane.lane.as_str(), lane.running, lane.waiting), (LANE, 1, 1));
        let reason = lane.reasons.iter().find(|reason| reason.reason == "waiting_for_quota").expect("it is the reason");
        assert_eq!(reason.count, 1);
        assert_eq!(reason.parts[0].what, LaneReasonOf::Quota { quota_id: quota, key: "acme".to_owned() });
        task.complete(None).await.unwrap();
    }

    async fn work_that_runs_or_is_not_there_is_told_apart(world: &World) {
        let id = world.submit("work", b"{}").await;
        let worker = world.worker("w-1").await;
        let task = claim(&worker).await;
        let explained = world.admin.explain(&id).await.unwrap();
        assert!(explained.can_run && explained.reasons.is_empty(), "{explained:#?}");
        task.complete(None).await.unwrap();
        assert_eq!(reasons(&world.admin.explain(&id).await.unwrap()), ["ended"]);

        let unknown = ff_core::types::ExecutionId::mint();
        let error = world.admin.explain(&unknown).await.expect_err("nobody submitted it");
        assert_eq!(error.engine().map(ff_core::EngineError::code), Some("execution_not_found"));
        let error = world.admin.explain_lane("default", "no-such-lane").await.expect_err("nobody defined it");
        assert_eq!(error.engine().map(ff_core::EngineError::code), Some("lane_not_found"));
    }
}
