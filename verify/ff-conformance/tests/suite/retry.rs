//! Failures: retried by the policy, in whole milliseconds and within its bounds; poisonous work always ends.

use ff_conformance::work::Fenced;
use ff_conformance::{Store, for_each_host};
use ff_core::types::ExecutionId;
use ff_script::Bytes;
use ff_script::generated::*;

fn fixed(delay_ms: i64) -> Backoff {
    Backoff { delay_ms: Some(delay_ms), ..Backoff::new(BackoffType::Fixed) }
}

fn exponential(initial_ms: i64, factor: i64, max_ms: i64) -> Backoff {
    Backoff {
        initial_ms: Some(initial_ms),
        factor: Some(factor),
        max_ms: Some(max_ms),
        ..Backoff::new(BackoffType::Exponential)
    }
}

fn policy(max_attempts: i64, backoff: Backoff, jitter: Jitter) -> Retry {
    Retry {
        max_attempts: Some(max_attempts),
        backoff: Some(backoff),
        jitter: Some(jitter),
        retry_on: None,
        never_on: None,
    }
}

fn failing(task: &Task, category: &str, draw: i64) -> FailExecution {
    FailExecution::new(category.into(), draw, task.execution_id, task.fence(), "down".into())
}

/// Fails every attempt with this draw, and returns the delays until the execution failed for good.
async fn delays(store: &Store, retry: Retry, draw: i64) -> Vec<i64> {
    let mut task = store.start_with(Submission { retry: Some(retry), ..store.submission("mail") }, "w1").await;
    let mut delays = Vec::new();
    loop {
        match store.ask(&failing(&task, "net", draw)).await.unwrap() {
            FailExecutionReply::RetryScheduled { delay_until, replayed: false } => {
                delays.push(delay_until - store.now());
                let state = if delay_until > store.now() { PublicState::Delayed } else { PublicState::Waiting };
                assert_eq!(store.state(task.execution_id).await, state);
                store.go_to(delay_until);
                store.fire_all().await;
                task = store.claim_one("w1").await;
                assert_eq!((task.attempt_type, task.attempt_index), (AttemptType::Retry, delays.len() as i64));
            }
            FailExecutionReply::Failed { replayed: false } => return delays,
            other => panic!("{other:?}"),
        }
    }
}

async fn ended_with(store: &Store, id: ExecutionId, category: &str) {
    let e = store.describe(id).await;
    let failure = e.failure.expect("a failure");
    assert_eq!(
        (e.outcome, failure.category.as_str(), failure.reason.as_str()),
        (Some(Outcome::Failed), category, "down")
    );
    let last = e.attempts.last().unwrap();
    assert_eq!((last.state, last.failure.as_ref()), (AttemptState::Failed, Some(&failure)));
}

for_each_host! {
    async fn a_fixed_backoff_is_the_same_each_time(store) {
        store.install_default_lane().await;
        assert_eq!(delays(&store, policy(4, fixed(250), Jitter::None), 0).await, [250, 250, 250]);
        assert_eq!(delays(&store, policy(3, fixed(0), Jitter::None), 0).await, [0, 0]);
    }

    async fn an_exponential_backoff_grows_to_its_bound(store) {
        store.install_default_lane().await;
        assert_eq!(delays(&store, policy(7, exponential(100, 3, 2_000), Jitter::None), 0).await, [100, 300, 900, 2_000, 2_000, 2_000]);
        assert_eq!(delays(&store, policy(3, exponential(5_000, 2, 1_000), Jitter::None), 0).await, [1_000, 1_000], "the bound holds from the start");
        assert_eq!(delays(&store, policy(4, exponential(100, 1, 1_000), Jitter::None), 0).await, [100, 100, 100]);
    }

    async fn full_jitter_takes_the_callers_draw_of_the_delay(store) {
        store.install_default_lane().await;
        for (draw, expected) in [(0, [0, 0]), (1, [0, 0]), (333, [33, 66]), (500, [50, 100]), (999, [99, 199]), (1_000, [100, 200])] {
            assert_eq!(delays(&store, policy(3, exponential(100, 2, 60_000), Jitter::Full), draw).await, expected, "draw {draw}");
        }
    }

    async fn the_delay_of_a_timed_out_attempt_is_drawn_by_whoever_fires_it(store) {
        store.install_default_lane().await;
        let mut seen = std::collections::BTreeSet::new();
        for draw in [0, 250, 500, 750, 1_000] {
            let submission = Submission { attempt_timeout_ms: Some(10), retry: Some(policy(2, fixed(1_000), Jitter::Full)), ..store.submission("mail") };
            let task = store.start_with(submission, "w1").await;
            store.advance(10);
            store.ask(&FireDue { limit: 1, draw }).await.unwrap();
            let e = store.describe(task.execution_id).await;
            let delay = e.delay_until.map_or(0, |at| at - store.now());
            assert!((0..=1_000).contains(&delay), "{delay}");
            seen.insert(delay);
            store.ask(&CancelExecution::new("ann".into(), task.execution_id)).await.unwrap();
        }
        assert!(seen.len() >= 4, "the draw decides: {seen:?}");
    }

    async fn a_providers_word_overrides_the_backoff(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { retry: Some(policy(3, fixed(9), Jitter::Full)), ..store.submission("mail") }, "w1").await;
        let call = FailExecution { retry_after_ms: Some(123_456), ..failing(&task, "rate_limit", 0) };
        assert_eq!(store.ask(&call).await, Ok(FailExecutionReply::RetryScheduled { delay_until: store.now() + 123_456, replayed: false }));
        // It does not add attempts.
        let task = store.start_with(Submission { retry: Some(policy(1, fixed(9), Jitter::Full)), ..store.submission("mail") }, "w1").await;
        let call = FailExecution { retry_after_ms: Some(1), ..failing(&task, "rate_limit", 0) };
        assert_eq!(store.ask(&call).await, Ok(FailExecutionReply::Failed { replayed: false }));
    }

    async fn what_may_not_be_retried_ends_at_once(store) {
        store.install_default_lane().await;
        let on = |retry_on: Option<&[&str]>, never_on: Option<&[&str]>| {
            let list = |names: Option<&[&str]>| names.map(|names| names.iter().map(|&name| name.to_owned()).collect());
            Retry { retry_on: list(retry_on), never_on: list(never_on), ..policy(3, fixed(5), Jitter::None) }
        };
        let table = [
            ("nothing said", on(None, None), "net", None, true),
            ("retryable is false", on(None, None), "net", Some(false), false),
            ("retryable is true", on(None, None), "net", Some(true), true),
            ("in retry_on", on(Some(&["net", "io"]), None), "io", None, true),
            ("not in retry_on", on(Some(&["net"]), None), "auth", None, false),
            ("retry_on is empty", on(Some(&[]), None), "net", None, false),
            ("in never_on", on(None, Some(&["auth"])), "auth", None, false),
            ("not in never_on", on(None, Some(&["auth"])), "net", None, true),
            ("in both", on(Some(&["net"]), Some(&["net"])), "net", None, false),
            ("retryable does not overrule never_on", on(None, Some(&["net"])), "net", Some(true), false),
        ];
        for (why, retry, category, retryable, again) in table {
            let task = store.start_with(Submission { retry: Some(retry), ..store.submission("mail") }, "w1").await;
            let reply = store.ask(&FailExecution { retryable, ..failing(&task, category, 0) }).await.unwrap();
            assert_eq!(matches!(reply, FailExecutionReply::RetryScheduled { .. }), again, "{why}");
            if !again {
                ended_with(&store, task.execution_id, category).await;
            }
        }
    }

    async fn a_single_attempt_is_not_retried(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { retry: Some(policy(1, fixed(5), Jitter::None)), ..store.submission("mail") }, "w1").await;
        assert_eq!(store.fail(&task, "net").await, FailExecutionReply::Failed { replayed: false });
    }

    async fn each_retry_moves_to_the_next_tier_and_stays_at_the_last(store) {
        store.install_default_lane().await;
        let tiers = vec![Bytes::from("small"), Bytes::from("tiny")];
        let submission = Submission { retry: Some(policy(5, fixed(0), Jitter::None)), fallbacks: Some(tiers), ..store.submission("mail") };
        let mut task = store.start_with(submission, "w1").await;
        let mut seen = vec![(task.fallback_index, task.fallback.clone())];
        for _ in 0..3 {
            store.fail(&task, "net").await;
            task = store.claim_one("w1").await;
            seen.push((task.fallback_index, task.fallback.clone()));
        }
        let (small, tiny) = (Some(Bytes::from("small")), Some(Bytes::from("tiny")));
        assert_eq!(seen, [(None, None), (Some(0), small), (Some(1), tiny.clone()), (Some(1), tiny)]);
        assert_eq!(store.describe(task.execution_id).await.fallback_index, Some(1));
        // A reclaim is not a retry.
        let task = store.lose_and_reclaim(&task, "w1").await;
        assert_eq!(task.fallback_index, Some(1));
    }

    async fn attempts_beyond_the_last_eight_stay_readable(store) {
        store.install_default_lane().await;
        let mut task = store.start_with(Submission { retry: Some(policy(12, fixed(0), Jitter::None)), ..store.submission("mail") }, "w1").await;
        let id = task.execution_id;
        for _ in 0..11 {
            store.fail(&task, "net").await;
            store.advance(1);
            task = store.claim_one("w1").await;
        }
        let e = store.describe(id).await;
        assert_eq!(e.attempts_spilled, 4);
        assert_eq!(e.attempts.iter().map(|attempt| attempt.index).collect::<Vec<_>>(), (4..=11).collect::<Vec<_>>());
        for index in 0..=11 {
            let GetAttemptReply::Found { attempt } = store.ask(&GetAttempt { execution_id: id, index }).await.unwrap();
            let state = if index == 11 { AttemptState::Started } else { AttemptState::Failed };
            let kind = if index == 0 { AttemptType::Initial } else { AttemptType::Retry };
            assert_eq!((attempt.index, attempt.state, attempt.r#type), (index, state, kind));
            assert_eq!(attempt.failure.is_some(), index != 11);
        }
        let missing = store.ask(&GetAttempt { execution_id: id, index: 12 }).await;
        assert_eq!(ff_conformance::harness::refusal(missing), ff_core::ErrorCode::AttemptNotFound);
        store.complete(&task).await;
        assert_eq!(store.describe(id).await.attempts_spilled, 4, "an end spills none");
    }

    async fn a_retry_keeps_its_place_by_priority_and_age(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { retry: Some(policy(2, fixed(10), Jitter::None)), ..store.submission("old") }, "w1").await;
        store.advance(1);
        store.submit_kind("new").await;
        store.fail(&task, "net").await;
        store.advance(10);
        store.fire_all().await;
        assert_eq!(store.claim_one("w1").await.kind, "old");
    }
}
