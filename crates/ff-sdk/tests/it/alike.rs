//! What a caller says means the same on every transport: nothing of it is lost or changed on the way.

use ff_script::Bytes;
use ff_script::generated::{Backoff, BackoffType, Retry, StreamOptions};
use ff_sdk::snapshot::ExecutionSnapshot as Execution;
use ff_sdk::task::StreamCursor;
use ff_sdk::{ExecutionFilter, FlowSpec, MemberSpec};

use crate::world::{World, claim};

for_each_transport! {
    async fn a_list_of_a_flow_shows_its_members_only(world: &World) {
        world.submit("beside it", b"{}").await;
        let flow = FlowSpec::new("default", "pair").member(MemberSpec::new("one", "work")).member(MemberSpec::new("two", "work"));
        let submitted = world.admin.submit_flow(flow).await.unwrap();
        let filter = ExecutionFilter { flow_id: Some(submitted.flow_id), ..ExecutionFilter::default() };
        let page = world.admin.list_executions(&filter, None, 10).await.unwrap();
        let mut kinds: Vec<&str> = page.items.iter().map(|item| item.kind.as_str()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["work", "work"]);
    }

    async fn every_filter_of_a_list_counts(world: &World) {
        let mut new = world.new_execution("wanted");
        new.fields.tags = Some([("tenant".to_owned(), "a b/ü&=".to_owned())].into());
        let id = world.admin.submit(new).await.unwrap();
        world.submit("other", b"{}").await;
        let created = world.describe(&id).await.created_at.0;
        let text = |text: &str| Some(text.to_owned());
        let none = ExecutionFilter::default;
        let filters = [
            ExecutionFilter { kind: text("wanted"), ..none() },
            ExecutionFilter { tag: Some(("tenant".to_owned(), "a b/ü&=".to_owned())), ..none() },
            ExecutionFilter { namespace: text("elsewhere"), ..none() },
            ExecutionFilter { lane: text("elsewhere"), ..none() },
            ExecutionFilter { worker: text("nobody"), ..none() },
            ExecutionFilter { state: Some(ff_core::state::PublicState::Completed), ..none() },
            ExecutionFilter { created_before: Some(created - 60_000), ..none() },
            ExecutionFilter { created_after: Some(created + 60_000), ..none() },
        ];
        let mut shown = Vec::new();
        for filter in &filters {
            let page = world.admin.list_executions(filter, None, 10).await.unwrap();
            shown.push(page.items.iter().map(|item| item.kind.clone()).collect::<Vec<_>>().join(" "));
        }
        assert_eq!(shown, ["wanted", "wanted", "", "", "", "", "", ""]);
    }

    async fn an_execution_is_shown_whole(world: &World) {
        let mut new = world.new_execution("work");
        new.fields.tags = Some([("tenant".to_owned(), "acme".to_owned())].into());
        new.fields.fairness_key = Some("acme".to_owned());
        new.fields.prefers = Some(vec!["gpu".to_owned()]);
        new.fields.retry = Some(Retry { max_attempts: Some(3), ..Retry::default() });
        new.fields.deadline_ms = Some(3_600_000);
        new.fields.attempt_timeout_ms = Some(60_000);
        new.fields.input = Some(Bytes(r#"{"z":1,"a":12345678901234567890123}"#.into()));
        let id = world.admin.submit(new).await.unwrap();
        let stored = async || Execution::from(world.operations.describe(id).await.unwrap());
        assert_eq!(world.describe(&id).await, stored().await, "while it waits");
        let worker = world.worker("w-1").await;
        let task = claim(&worker).await;
        task.update_progress(40, "halfway").await.unwrap();
        let (seen, stored_now) = (world.describe(&id).await, stored().await);
        assert_eq!(seen.lease.as_ref().map(|lease| lease.worker_instance.as_str()), Some("w-1"));
        // A renewal may come between the two looks.
        assert_eq!(Execution { lease: None, ..seen }, Execution { lease: None, ..stored_now }, "while it runs");
        task.complete(Some(vec![0xff, 0])).await.unwrap();
        let seen = world.describe(&id).await;
        assert_eq!(seen, stored().await, "once it has ended");
        assert_eq!((seen.result, seen.attempts.len(), seen.retry.max_attempts), (Some(vec![0xff, 0]), 1, Some(3)));
    }

    async fn how_streams_are_kept_is_part_of_a_submission(world: &World) {
        let mut new = world.new_execution("work");
        new.fields.stream = Some(StreamOptions { max_frames: Some(3) });
        world.admin.submit(new).await.unwrap();
        let worker = world.worker("w-1").await;
        let task = claim(&worker).await;
        for n in 0..5_u8 {
            task.append_frame("line", &[n], None).await.unwrap();
        }
        let page = task.read_stream(StreamCursor::Start, StreamCursor::End, 10).await.unwrap();
        let kept: Vec<u8> = page.frames.iter().flat_map(|frame| frame.payload.clone()).collect();
        assert_eq!(kept, [2, 3, 4]);
        task.complete(None).await.unwrap();
    }

    async fn json_is_json_whatever_the_order_of_its_keys(world: &World) {
        for input in [r#"{"name":"a","age":3}"#, r#"{"n":12345678901234567890123}"#, "{ }", "[1.0, 1e2]"] {
            let id = world.submit("work", input.as_bytes()).await;
            let seen = world.operations.describe(id).await.unwrap();
            assert_eq!((seen.input.0.as_slice(), seen.input_encoding.as_str()), (input.as_bytes(), "json"));
        }
        let id = world.submit("work", &[0xff, 0]).await;
        assert_eq!(world.operations.describe(id).await.unwrap().input.0, [0xff, 0]);
    }

    async fn tiers_of_a_fallback_keep_their_text(world: &World) {
        let tier = r#"{"z":1,"a":12345678901234567890123}"#;
        let mut new = world.new_execution("work");
        new.fields.fallbacks = Some(vec![Bytes(tier.into())]);
        let backoff = Backoff { delay_ms: Some(1), ..Backoff::new(BackoffType::Fixed) };
        new.fields.retry = Some(Retry { max_attempts: Some(2), backoff: Some(backoff), ..Retry::default() });
        world.admin.submit(new).await.unwrap();
        let worker = world.worker("w-1").await;
        claim(&worker).await.fail("try the next tier", "busy").await.unwrap();
        let task = claim(&worker).await;
        assert_eq!(task.fallback().map(String::from_utf8_lossy).as_deref(), Some(tier));
        task.complete(None).await.unwrap();
    }
}
