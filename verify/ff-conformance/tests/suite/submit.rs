//! Submission: accepted or refused as a whole, every field applied, and repetitions return the first one.

use std::collections::BTreeMap;

use ff_conformance::for_each_host;
use ff_conformance::harness::{code_of, refusal};
use ff_conformance::work::{HOME, LANE, NAMESPACE, digest, plain_lane};
use ff_core::ErrorCode;
use ff_script::Bytes;
use ff_script::generated::*;
use uuid::Uuid;

fn tags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn exponential(initial: i64, factor: i64, max: i64) -> Backoff {
    Backoff {
        initial_ms: Some(initial),
        factor: Some(factor),
        max_ms: Some(max),
        ..Backoff::new(BackoffType::Exponential)
    }
}

for_each_host! {
    async fn every_field_is_honoured_and_described(store) {
        store.install_lane("acme", "mail.out", plain_lane()).await;
        let now = store.now();
        let (budget, quota) = (Uuid::from_u128(7), Uuid::from_u128(8));
        let retry = Retry {
            max_attempts: Some(7), backoff: Some(exponential(50, 3, 9_000)), jitter: Some(Jitter::None),
            retry_on: Some(vec!["net".into()]), never_on: Some(vec!["auth".into()]),
        };
        let budgets = vec![BudgetRef { budget_id: budget, estimate: Some(BTreeMap::from([("tokens".into(), 12), ("usd".into(), 3)])) }];
        let quotas = vec![QuotaRef { quota_id: quota, key: "openai".into(), weight: Some(4) }];
        let submission = Submission {
            namespace: "acme".into(), lane: "mail.out".into(), kind: "send mail/v1".into(),
            input: Some(Bytes::from("hello")), input_encoding: Some("text/plain".into()), tags: Some(tags(&[("customer", "42"), ("empty", "")])),
            priority: Some(9_000), delay_until: Some(now + 5_000), deadline_at: Some(now + 60_000), start_within_ms: Some(40_000),
            idempotency_key: Some("order 42".into()), idempotency_ttl_ms: Some(1_000), retry: Some(retry.clone()), attempt_timeout_ms: Some(9_000),
            max_reclaims: Some(0), max_replays: Some(3), requires: Some(vec!["gpu".into(), "cuda".into(), "gpu".into()]), prefers: Some(vec!["eu".into()]),
            fairness_key: Some("tenant-1".into()), budgets: Some(budgets.clone()), quotas: Some(quotas.clone()),
            fallbacks: Some(vec![Bytes::from("a"), Bytes::from(&[0_u8, 255][..])]), retention_ms: Some(86_400_000), stream: Some(StreamOptions { max_frames: Some(5) }),
            trace_parent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()), completion_webhook: Some("https://example.com/done".into()),
            ..store.submission("send mail/v1")
        };
        let id = store.submit(submission.clone()).await;
        let e = store.describe(id).await;
        assert_eq!((e.execution_id, e.namespace.as_str(), e.lane.as_str(), e.kind.as_str()), (id, "acme", "mail.out", "send mail/v1"));
        assert_eq!((e.state, e.phase, e.outcome, e.blocking_reason), (PublicState::Delayed, LifecyclePhase::Runnable, None, None));
        assert_eq!((&e.input[..], e.input_encoding.as_str()), (&b"hello"[..], "text/plain"));
        assert_eq!(e.tags, tags(&[("customer", "42"), ("empty", "")]));
        assert_eq!((e.priority, e.delay_until, e.deadline_at, e.start_by), (9_000, Some(now + 5_000), Some(now + 60_000), Some(now + 40_000)));
        assert_eq!((e.created_at, e.updated_at, e.ended_at), (now, now, None));
        assert_eq!(e.retry, retry);
        assert_eq!((e.attempt_timeout_ms, e.max_reclaims, e.max_replays), (Some(9_000), 0, 3));
        assert_eq!((e.requires, e.prefers, e.fairness_key), (vec!["cuda".to_owned(), "gpu".to_owned()], vec!["eu".to_owned()], Some("tenant-1".to_owned())));
        assert_eq!((e.budgets, e.quotas), (budgets, quotas));
        assert_eq!(e.fallbacks, [Bytes::from("a"), Bytes::from(&[0_u8, 255][..])]);
        assert_eq!((e.retention_ms, e.max_frames), (86_400_000, 5));
        assert_eq!(e.trace_parent, submission.trace_parent);
        assert_eq!(e.completion_webhook, submission.completion_webhook);
        assert_eq!((e.reclaim_count, e.replay_count, e.fallback_index, e.attempts.len(), e.lease), (0, 0, None, 0, None));
    }

    async fn what_was_not_said_has_the_documented_default(store) {
        store.install_default_lane().await;
        let e = store.describe(store.submit_kind("mail").await).await;
        assert_eq!((e.priority, e.input_encoding.as_str(), e.input.len()), (0, "json", 0));
        assert_eq!((e.max_reclaims, e.max_replays, e.retention_ms, e.max_frames), (5, 10, 7 * 86_400_000, 10_000));
        assert_eq!((e.delay_until, e.deadline_at, e.start_by, e.attempt_timeout_ms), (None, None, None, None));
        let retry = Retry { max_attempts: Some(3), backoff: Some(exponential(1_000, 2, 60_000)), jitter: Some(Jitter::Full), retry_on: None, never_on: None };
        assert_eq!(e.retry, retry);
        assert_eq!((e.state, e.tags.len(), e.requires.len(), e.fallbacks.len()), (PublicState::Waiting, 0, 0, 0));
    }

    async fn a_lane_gives_the_policy_its_executions_do_not_have(store) {
        let fixed = Backoff { delay_ms: Some(77), ..Backoff::new(BackoffType::Fixed) };
        let of_lane = Retry { max_attempts: Some(9), backoff: Some(fixed), jitter: Some(Jitter::None), retry_on: None, never_on: Some(vec!["auth".into()]) };
        let lane = LaneDefinition { retry: Some(of_lane.clone()), attempt_timeout_ms: Some(1_234), retention_ms: Some(5_678), ..plain_lane() };
        store.install_lane(NAMESPACE, LANE, lane).await;
        let silent = store.describe(store.submit_kind("mail").await).await;
        assert_eq!((silent.retry, silent.attempt_timeout_ms, silent.retention_ms), (of_lane.clone(), Some(1_234), 5_678));

        let retry = Retry { max_attempts: Some(2), ..Retry::default() };
        let said = Submission { retry: Some(retry), attempt_timeout_ms: Some(1), retention_ms: Some(2), ..store.submission("mail") };
        let said = store.describe(store.submit(said).await).await;
        assert_eq!((said.retry, said.attempt_timeout_ms, said.retention_ms), (Retry { max_attempts: Some(2), ..of_lane }, Some(1), 2));
    }

    async fn the_same_id_with_the_same_body_is_a_duplicate_and_with_another_a_conflict(store) {
        store.install_default_lane().await;
        let first = store.submission("mail");
        let id = store.submit(first.clone()).await;
        let before = store.dump().await;
        let again = store.try_submit(first.clone()).await;
        assert_eq!(again, Ok(SubmitExecutionReply::Duplicate { execution_id: id, state: Some(PublicState::Waiting) }));
        let other = Submission { body_digest: digest("another body"), ..first };
        assert_eq!(refusal(store.try_submit(other).await), ErrorCode::IdempotencyConflict);
        assert_eq!(store.dump().await, before, "a repetition writes nothing");
    }

    async fn a_key_answers_the_first_execution_whatever_id_is_proposed(store) {
        store.install_default_lane().await;
        let keyed = |id: Submission| Submission { idempotency_key: Some("order-1".into()), ..id };
        let first = store.submit(keyed(store.submission("mail"))).await;
        let task = store.claim_one("w1").await;
        let before = store.dump().await;
        let again = store.try_submit(keyed(store.submission("mail"))).await;
        assert_eq!(again, Ok(SubmitExecutionReply::Duplicate { execution_id: first, state: Some(PublicState::Active) }));
        let other = Submission { body_digest: digest("another body"), ..keyed(store.submission("mail")) };
        assert_eq!(refusal(store.try_submit(other).await), ErrorCode::IdempotencyConflict);
        assert_eq!(store.dump().await, before, "a repetition writes nothing");
        store.complete(&task).await;

        // Another namespace has its own keys.
        store.install_lane("acme", LANE, plain_lane()).await;
        let elsewhere = store.submit(Submission { namespace: "acme".into(), ..keyed(store.submission("mail")) }).await;
        assert_ne!(elsewhere, first);
    }

    async fn a_key_holds_for_its_ttl_and_not_a_millisecond_less(store) {
        store.install_default_lane().await;
        let keyed = |id: Submission| Submission { idempotency_key: Some("k".into()), idempotency_ttl_ms: Some(1_000), ..id };
        let first = store.submit(keyed(store.submission("mail"))).await;
        store.advance(999);
        store.fire_all().await;
        let repeated = store.try_submit(keyed(store.submission("mail"))).await;
        assert_eq!(repeated, Ok(SubmitExecutionReply::Duplicate { execution_id: first, state: Some(PublicState::Waiting) }));
        store.advance(1);
        // No timer has fired yet, so the time in the record decides.
        let second = store.submit(keyed(store.submission("mail"))).await;
        assert_ne!(second, first);
        store.fire_all().await;
        let repeated = store.try_submit(keyed(store.submission("mail"))).await;
        assert_eq!(repeated, Ok(SubmitExecutionReply::Duplicate { execution_id: second, state: Some(PublicState::Waiting) }));
        store.advance(1_000);
        store.fire_all().await;
        assert!(store.dump().await.keys().all(|key| !key.starts_with("ff:idem:")), "an ended key is gone");
    }

    async fn a_key_outlives_the_execution_it_named(store) {
        store.install_default_lane().await;
        let keyed = |id: Submission| Submission { idempotency_key: Some("k".into()), retention_ms: Some(10), ..id };
        let first = store.submit(keyed(store.submission("mail"))).await;
        let task = store.claim_one("w1").await;
        store.complete(&task).await;
        store.advance(10);
        store.fire_all().await;
        assert_eq!(refusal(store.find(first).await), ErrorCode::ExecutionNotFound);
        let again = store.try_submit(keyed(store.submission("mail"))).await;
        assert_eq!(again, Ok(SubmitExecutionReply::Duplicate { execution_id: first, state: None }));
    }

    async fn a_key_never_takes_over_an_execution_that_exists(store) {
        store.install_default_lane().await;
        let first = store.submission("mail");
        let id = store.submit(first.clone()).await;
        let keyed = Submission { idempotency_key: Some("k".into()), ..first };
        assert_eq!(refusal(store.try_submit(keyed).await), ErrorCode::IdempotencyConflict);
        assert_eq!(store.state(id).await, PublicState::Waiting);
    }

    async fn a_list_is_answered_one_by_one(store) {
        store.install_default_lane().await;
        let first = store.submission("mail");
        store.submit(first.clone()).await;
        let fresh = store.submission("mail");
        let keyed = Submission { idempotency_key: Some("k".into()), ..store.submission("mail") };
        let submissions = [
            fresh.clone(),
            first.clone(),
            Submission { body_digest: digest("other"), ..first.clone() },
            Submission { kind: String::new(), ..store.submission("mail") },
            Submission { lane: "nowhere".into(), ..store.submission("mail") },
            keyed.clone(),
            Submission { execution_id: store.execution_id(), ..keyed.clone() },
            Submission { requires: Some(vec!["a,b".into()]), ..store.submission("mail") },
        ];
        let calls = submissions.map(|submission| SubmitExecution { submission });
        let answers = store.ask_all(&calls).await;
        let code = |at: usize| code_of(answers[at].as_ref().unwrap_err());
        let expected = [(2, ErrorCode::IdempotencyConflict), (3, ErrorCode::InvalidArgument), (4, ErrorCode::LaneUnseen), (7, ErrorCode::CapabilityInvalid)];
        for (at, refused) in expected {
            assert_eq!(code(at), Some(refused), "submission {at}");
        }
        assert!(answers[3].as_ref().unwrap_err().to_string().contains("kind"), "{:?}", answers[3]);
        let state = PublicState::Waiting;
        let created = |execution_id| Ok(SubmitExecutionReply::Created { execution_id, state });
        let known = |execution_id| Ok(SubmitExecutionReply::Duplicate { execution_id, state: Some(state) });
        assert_eq!(answers[..2], [created(fresh.execution_id), known(first.execution_id)]);
        assert_eq!(answers[5..7], [created(keyed.execution_id), known(keyed.execution_id)]);
        assert_eq!(store.claim("w1", 10).await.len(), 3);
    }

    async fn more_than_a_list_holds_becomes_several(store) {
        store.install_default_lane().await;
        let calls: Vec<_> = (0..150).map(|_| SubmitExecution { submission: store.submission("mail") }).collect();
        assert!(store.ask_all(&calls).await.iter().all(Result::is_ok));
        assert_eq!(store.claim("w1", 64).await.len(), 64);
    }

    async fn a_time_said_twice_is_refused_with_the_field(store) {
        store.install_default_lane().await;
        let plain = store.submission("mail");
        let table = [
            ("delay_ms", Submission { delay_until: Some(1), delay_ms: Some(1), ..plain.clone() }),
            ("deadline_ms", Submission { deadline_at: Some(1), deadline_ms: Some(1), ..plain.clone() }),
            ("idempotency_ttl_ms", Submission { idempotency_ttl_ms: Some(1), ..plain.clone() }),
        ];
        let before = store.dump().await;
        for (field, submission) in table {
            let error = store.try_submit(submission).await.unwrap_err();
            assert!(error.to_string().starts_with(&format!("invalid argument {field}: ")), "{error}");
        }
        assert_eq!(store.dump().await, before);
    }

    async fn a_delay_already_past_means_now(store) {
        store.install_default_lane().await;
        let now = store.now();
        let past = [Submission { delay_until: Some(0), ..store.submission("a") }, Submission { delay_until: Some(now), ..store.submission("a") },
            Submission { delay_ms: Some(0), ..store.submission("a") }];
        for submission in past {
            let reply = store.try_submit(submission.clone()).await;
            assert_eq!(reply, Ok(SubmitExecutionReply::Created { execution_id: submission.execution_id, state: PublicState::Waiting }));
        }
        assert_eq!(store.claim("w1", 10).await.len(), 3);
    }

    async fn relative_times_count_from_the_submission(store) {
        store.install_default_lane().await;
        let now = store.now();
        let submission = Submission { delay_ms: Some(5), deadline_ms: Some(50), ..store.submission("mail") };
        let e = store.describe(store.submit(submission).await).await;
        assert_eq!((e.delay_until, e.deadline_at), (Some(now + 5), Some(now + 50)));
    }

    async fn bytes_in_are_bytes_out(store) {
        store.install_default_lane().await;
        let every: Vec<u8> = (0..=255).collect();
        let megabyte: Vec<u8> = (0..1_048_576_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let sizes = [Vec::new(), vec![0], vec![0xff, 0xfe], every, vec![7; 4_096], vec![8; 4_097], megabyte];
        for bytes in sizes {
            let submission = Submission { input: Some(Bytes(bytes.clone())), retention_ms: Some(1), ..store.submission("mail") };
            let task = store.start_with(submission, "w1").await;
            assert!(task.input.0 == bytes, "the worker sees {} bytes as they were", bytes.len());
            let result = Some(Bytes(bytes.iter().rev().copied().collect()));
            let call = CompleteExecution { result: result.clone(), result_encoding: Some("raw".into()), ..CompleteExecution::new(task.execution_id, ff_conformance::work::Fenced::fence(&task)) };
            assert_eq!(store.ask(&call).await, Ok(CompleteExecutionReply::Completed));
            let e = store.describe(task.execution_id).await;
            assert!(e.input.0 == bytes && e.result == result, "{} bytes are described as they were", bytes.len());
            assert_eq!(e.result_encoding.as_deref(), Some("raw"));
            let waited = store.ask(&AwaitResult { execution_id: task.execution_id }).await.unwrap();
            assert!(matches!(waited, AwaitResultReply::Ended { result: answered, outcome: Outcome::Success, .. } if answered == result));
        }
        let too_long = Submission { input: Some(Bytes(vec![0; 1_048_577])), ..store.submission("mail") };
        let error = store.try_submit(too_long).await.unwrap_err();
        assert_eq!(error.to_string(), "invalid argument submission.input: must be at most 1048576 bytes long, got 1048577");
    }

    async fn a_result_that_was_not_given_is_not_an_empty_one(store) {
        store.install_default_lane().await;
        let without = store.start("mail", "w1").await;
        store.complete(&without).await;
        let with = store.start("mail", "w1").await;
        let call = CompleteExecution { result: Some(Bytes(Vec::new())), ..CompleteExecution::new(with.execution_id, ff_conformance::work::Fenced::fence(&with)) };
        store.ask(&call).await.unwrap();
        assert_eq!(store.describe(without.execution_id).await.result, None);
        assert_eq!(store.describe(with.execution_id).await.result, Some(Bytes(Vec::new())));
        assert_eq!(store.describe(with.execution_id).await.result_encoding.as_deref(), Some("json"));
    }

    async fn a_lane_no_partition_has_seen_is_reported_and_nothing_is_written(store) {
        let before = store.dump().await;
        assert_eq!(refusal(store.try_submit(store.submission("mail")).await), ErrorCode::LaneUnseen);
        assert_eq!(store.dump().await, before);
        let call = store.claim_call("w1", 1);
        assert_eq!(store.call(HOME, &call).await, Ok(ClaimExecutionsReply::Claimed { tasks: vec![], next_score: None, admission_needed: None }));
    }
}
