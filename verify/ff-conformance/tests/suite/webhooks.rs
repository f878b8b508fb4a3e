//! Webhooks: every end owes one; a receiver gets it at least once under one id; no receiver delays another.

use std::collections::BTreeMap;

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, HOME};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::Route;
use ff_script::generated::*;

const URL: &str = "https://hooks.example.org/done?a=b";
const HOLD_MS: i64 = 20_000;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

struct Taken {
    items: Vec<Webhook>,
    more: bool,
    held: bool,
    next_at: Option<i64>,
}

async fn take_from(store: &Store, route: Route, call: TakeWebhooks) -> Taken {
    let TakeWebhooksReply::Taken { items, more, held, next_at, now } = store.call(route, &call).await.unwrap();
    assert_eq!(now, store.now());
    Taken { items, more, held, next_at }
}

async fn take(store: &Store) -> Vec<Webhook> {
    take_from(store, HOME, TakeWebhooks { each: 8, in_flight: BTreeMap::new(), limit: 64 }).await.items
}

async fn take_one(store: &Store) -> Webhook {
    let mut items = take(store).await;
    assert_eq!(items.len(), 1, "{items:?}");
    items.remove(0)
}

fn tried(webhook: &Webhook, result: WebhookResult) -> NoteWebhook {
    NoteWebhook::new(webhook.delivery_id, 500, result, webhook.tries)
}

async fn note(store: &Store, call: &NoteWebhook) -> NoteWebhookReply {
    store.ask(call).await.unwrap()
}

async fn deliver(store: &Store, webhook: &Webhook) {
    let call = NoteWebhook { status: Some(204), ..tried(webhook, WebhookResult::Delivered) };
    assert_eq!(note(store, &call).await, NoteWebhookReply::Delivered);
}

async fn status(store: &Store, execution_id: ExecutionId) -> Option<WebhookStatus> {
    let call = DescribeWebhook { execution_id: Some(execution_id), ..DescribeWebhook::default() };
    let DescribeWebhookReply::Webhook { status } = store.call(store.route_of(execution_id), &call).await.unwrap();
    status
}

/// The store holds nothing that belongs to webhooks.
async fn nothing_owed(store: &Store) {
    let left: Vec<String> =
        store.dump().await.into_keys().filter(|key| key.starts_with("ff:hook:") || key.contains(":receiver")).collect();
    assert_eq!(left, Vec::<String>::new());
}

fn told(submission: Submission) -> Submission {
    let once = Retry { max_attempts: Some(1), ..Retry::default() };
    Submission { completion_webhook: Some(URL.into()), retry: Some(once), ..submission }
}

for_each_host! {
    async fn every_end_owes_one_webhook_that_says_how_it_was(store) {
        store.install_default_lane().await;
        let tags: BTreeMap<String, String> = [("team".to_owned(), "red".to_owned())].into();
        let done = store.start_with(Submission { tags: Some(tags.clone()), ..told(store.submission("done")) }, "w1").await;
        assert_eq!(status(&store, done.execution_id).await, None, "nothing is owed before the end");
        assert!(take(&store).await.is_empty());
        store.complete(&done).await;
        let failed = store.start_with(told(store.submission("failed")), "w1").await;
        store.fail(&failed, "net").await;
        let cancelled = store.submit(told(store.submission("cancelled"))).await;
        store.ask(&CancelExecution { reason: Some("enough".into()), ..CancelExecution::new("ann".into(), cancelled) }).await.unwrap();
        let poisoned = store.start_with(Submission { max_reclaims: Some(0), ..told(store.submission("poisoned")) }, "w1").await;
        let expired = store.submit(Submission { deadline_ms: Some(10), ..told(store.submission("expired")) }).await;
        store.submit(store.submission("untold")).await;
        store.advance(40_000);
        store.fire_all().await;
        let untold = store.claim_one("w1").await;
        store.complete(&untold).await;

        let mut items: BTreeMap<ExecutionId, Webhook> = take(&store).await.into_iter().map(|w| (w.execution_id.unwrap(), w)).collect();
        assert_eq!(items.len(), 5, "{items:?}");
        let one = items.remove(&done.execution_id).unwrap();
        let at = store.describe(done.execution_id).await.ended_at.unwrap();
        assert_eq!(one, Webhook {
            delivery_id: one.delivery_id, tries: 1, receiver: one.receiver.clone(), url: URL.into(), r#type: "execution.completed".into(), at,
            namespace: "default".into(), lane: Some("default".into()), kind: "done".into(), execution_id: Some(done.execution_id), flow_id: None,
            outcome: "success".into(), failure: None, tags, attempt_index: Some(0), replay_count: 0,
        });
        for (id, kind, outcome, category) in [
            (failed.execution_id, "execution.failed", "failed", "net"),
            (cancelled, "execution.cancelled", "cancelled", "cancelled"),
            (expired, "execution.expired", "expired", "deadline"),
            (poisoned.execution_id, "execution.failed", "failed", "poisoned"),
        ] {
            let w = items.remove(&id).unwrap();
            assert_eq!((w.r#type.as_str(), w.outcome.as_str(), w.failure.as_ref().map(|f| f.category.as_str())), (kind, outcome, Some(category)));
            assert_eq!(w.delivery_id.as_bytes()[14..], id.as_uuid().as_bytes()[14..], "it lives in the execution's partition");
            deliver(&store, &w).await;
        }
        let before = store.describe(done.execution_id).await;
        deliver(&store, &one).await;
        assert_eq!(store.describe(done.execution_id).await, before, "the execution itself does not change");
        assert_eq!(store.story(done.execution_id).await[2..], ["execution.completed", "webhook.delivered"]);
        let event = store.events(HOME).await.pop().unwrap();
        let said = event.texts();
        let data = |name: &str| said.get(name).cloned().unwrap_or_default();
        assert_eq!((data("delivery_id"), data("tries"), data("status")), (one.delivery_id.to_string(), "1".into(), "204".into()));
        assert_eq!((event.lane.as_deref(), event.kind.as_deref(), event.tags.get("team").map(String::as_str)), (Some("default"), Some("done"), Some("red")));
        let seen = status(&store, done.execution_id).await.unwrap();
        assert_eq!(seen, WebhookStatus {
            status: Some(204), ..WebhookStatus::new(one.delivery_id, WebhookState::Delivered, 1, at, store.now())
        });
        nothing_owed(&store).await;
        assert_eq!(note(&store, &tried(&one, WebhookResult::Delivered)).await, NoteWebhookReply::Stale, "a repeated answer counts once");
        assert_eq!(store.events(HOME).await.pop(), Some(event));
        store.assert_sound().await;
    }

    async fn each_end_of_a_replayed_execution_is_told(store) {
        store.install_default_lane().await;
        let task = store.start_with(told(store.submission("mail")), "w1").await;
        store.fail(&task, "net").await;
        let first = take_one(&store).await;
        store.ask(&ReplayExecution::new("ann".into(), task.execution_id)).await.unwrap();
        let again = store.claim_one("w1").await;
        store.complete(&again).await;
        let second = take_one(&store).await;
        assert_ne!(first.delivery_id, second.delivery_id);
        assert_eq!((second.r#type.as_str(), second.replay_count, second.attempt_index), ("execution.completed", 1, Some(1)));
        deliver(&store, &second).await;
        let seen = status(&store, task.execution_id).await.unwrap();
        assert_eq!((seen.delivery_id, seen.state), (second.delivery_id, WebhookState::Delivered));
        deliver(&store, &first).await;
        assert_eq!(status(&store, task.execution_id).await.unwrap(), seen, "the last end is shown");
        nothing_owed(&store).await;
    }

    async fn a_webhook_that_fails_is_tried_for_a_day_and_given_up(store) {
        store.install_default_lane().await;
        let long = Submission { retention_ms: Some(30 * DAY_MS), ..told(store.submission("mail")) };
        let task = store.start_with(long, "w1").await;
        store.complete(&task).await;
        let (began, mut expected, mut tries, mut id) = (store.now(), 1_000, 0, None);
        loop {
            let webhook = take_one(&store).await;
            tries += 1;
            assert_eq!((webhook.tries, *id.get_or_insert(webhook.delivery_id)), (tries, webhook.delivery_id));
            let call = NoteWebhook { status: Some(500), error: Some("answered 500".into()), ..tried(&webhook, WebhookResult::Failed) };
            match note(&store, &call).await {
                NoteWebhookReply::PutOff { next_at, now } => {
                    assert_eq!((now, next_at - now), (store.now(), expected), "after try {tries}");
                    let seen = status(&store, task.execution_id).await.unwrap();
                    assert_eq!((seen.state, seen.tries, seen.next_at, seen.status, seen.error.as_deref()), (WebhookState::Pending, tries, Some(next_at), Some(500), Some("answered 500")));
                    expected = (expected * 2).min(HOUR_MS);
                    store.go_to(next_at - 1);
                    assert!(take(&store).await.is_empty(), "not a millisecond early");
                    store.go_to(next_at);
                }
                NoteWebhookReply::Failed => break,
                other => panic!("{other:?}"),
            }
        }
        assert!((30..=40).contains(&tries), "{tries} tries");
        assert!((DAY_MS - 2 * HOUR_MS..=DAY_MS).contains(&(store.now() - began)), "{} ms", store.now() - began);
        let event = store.events(HOME).await.pop().unwrap();
        assert_eq!((event.r#type.as_str(), event.data.get("error").and_then(EventValue::as_str), event.execution_id), ("webhook.failed", Some("answered 500"), Some(task.execution_id)));
        let seen = status(&store, task.execution_id).await.unwrap();
        assert_eq!((seen.state, seen.tries, seen.next_at, seen.status), (WebhookState::Failed, tries, None, Some(500)));
        nothing_owed(&store).await;
        store.assert_sound().await;
    }

    async fn one_that_nobody_tried_in_time_is_still_tried_once(store) {
        store.install_default_lane().await;
        let task = store.start_with(told(store.submission("mail")), "w1").await;
        store.complete(&task).await;
        store.advance(3 * DAY_MS);
        let webhook = take_one(&store).await;
        assert_eq!(note(&store, &tried(&webhook, WebhookResult::Failed)).await, NoteWebhookReply::Failed);
        nothing_owed(&store).await;
    }

    async fn a_receiver_that_refuses_is_not_asked_again(store) {
        store.install_default_lane().await;
        let task = store.start_with(told(store.submission("mail")), "w1").await;
        store.complete(&task).await;
        let webhook = take_one(&store).await;
        let call = NoteWebhook { status: Some(410), error: Some("answered 410".into()), ..tried(&webhook, WebhookResult::Refused) };
        assert_eq!(note(&store, &call).await, NoteWebhookReply::Failed);
        assert_eq!(store.story(task.execution_id).await.last().map(String::as_str), Some("webhook.failed"));
        nothing_owed(&store).await;
    }

    async fn a_receiver_may_ask_for_patience_but_not_for_haste(store) {
        store.install_default_lane().await;
        for (asked, waits) in [(Some(500), 1_000), (Some(90_000), 90_000), (Some(DAY_MS), HOUR_MS), (None, 1_000)] {
            let task = store.start_with(told(store.submission("mail")), "w1").await;
            store.complete(&task).await;
            let webhook = take_one(&store).await;
            let call = NoteWebhook { retry_after_ms: asked, ..tried(&webhook, WebhookResult::Failed) };
            let due = store.now() + waits;
            assert_eq!(note(&store, &call).await, NoteWebhookReply::PutOff { next_at: due, now: store.now() });
            store.go_to(due);
            deliver(&store, &take_one(&store).await).await;
        }
        // A random jitter of a tenth.
        for (draw, waits) in [(0, 900), (1000, 1_100)] {
            let task = store.start_with(told(store.submission("mail")), "w1").await;
            store.complete(&task).await;
            let webhook = take_one(&store).await;
            let call = NoteWebhook { draw, ..tried(&webhook, WebhookResult::Failed) };
            assert_eq!(note(&store, &call).await, NoteWebhookReply::PutOff { next_at: store.now() + waits, now: store.now() });
            store.advance(waits);
            deliver(&store, &take_one(&store).await).await;
        }
    }

    async fn what_somebody_carries_is_given_to_nobody_else_for_a_while(store) {
        store.install_default_lane().await;
        let task = store.start_with(told(store.submission("mail")), "w1").await;
        store.complete(&task).await;
        let lost = take_one(&store).await;
        let all = TakeWebhooks { each: 8, in_flight: BTreeMap::new(), limit: 64 };
        let taken = take_from(&store, HOME, all.clone()).await;
        assert_eq!((taken.items.len(), taken.next_at, taken.more, taken.held), (0, Some(store.now() + HOLD_MS), false, false));
        store.advance(HOLD_MS - 1);
        assert!(take(&store).await.is_empty());
        store.advance(1);
        let again = take_one(&store).await;
        assert_eq!((again.delivery_id, again.tries), (lost.delivery_id, 2));
        // The first try returns late: its failure does not affect the second try, and its delivery settles the webhook.
        assert_eq!(note(&store, &tried(&lost, WebhookResult::Failed)).await, NoteWebhookReply::Stale);
        assert_eq!(note(&store, &tried(&lost, WebhookResult::Refused)).await, NoteWebhookReply::Stale);
        assert_eq!(note(&store, &tried(&lost, WebhookResult::Delivered)).await, NoteWebhookReply::Delivered);
        assert_eq!(note(&store, &tried(&again, WebhookResult::Failed)).await, NoteWebhookReply::Stale);
        nothing_owed(&store).await;
        let delivered = store.story(task.execution_id).await.iter().filter(|event| *event == "webhook.delivered").count();
        assert_eq!(delivered, 1);
    }

    async fn one_receiver_is_in_nobody_elses_way(store) {
        store.install_default_lane().await;
        let end = async |url: &str| {
            let submission = Submission { completion_webhook: Some(url.into()), ..store.submission("mail") };
            let task = store.start_with(submission, "w1").await;
            store.complete(&task).await;
        };
        for n in 0..20 { end(&format!("https://DEAD.example.org/{n}")).await; }
        end("https://dead.example.org:8443/").await;
        end("http://dead.example.org?x=1").await;
        end("https://live.example.org/1").await;
        let call = |limit, in_flight: &[(&str, i64)]| TakeWebhooks { each: 4, in_flight: in_flight.iter().map(|(r, n)| ((*r).to_owned(), *n)).collect(), limit };
        let first = take_from(&store, HOME, call(64, &[])).await;
        assert_eq!((first.items.len(), first.more, first.held), (7, false, true), "four for the dead one, and one for each of the others");
        let dead = first.items.iter().find(|w| w.url.starts_with("https://DEAD.example.org/")).unwrap().receiver.clone();
        assert_eq!(first.items.iter().filter(|w| w.receiver == dead).count(), 4);
        // While the receiver is busy it gets no more, and webhooks for others go out.
        let none = take_from(&store, HOME, call(64, &[(&dead, 4)])).await;
        assert_eq!((none.items.len(), none.more, none.held), (0, false, true));
        end("https://live.example.org/2").await;
        let live = take_from(&store, HOME, call(1, &[(&dead, 4)])).await;
        assert_eq!((live.items.len(), live.items[0].url.as_str(), live.held), (1, "https://live.example.org/2", true));
        // One of its tries has ended, so one more goes out.
        let one = take_from(&store, HOME, call(64, &[(&dead, 3)])).await;
        assert_eq!((one.items.len(), one.items[0].receiver == dead, one.held), (1, true, true));
        // A limited call reports that it had no room for more.
        end("https://a.example.org/").await;
        end("https://b.example.org/").await;
        let short = take_from(&store, HOME, call(1, &[(&dead, 4)])).await;
        assert_eq!((short.items.len(), short.more, short.held), (1, true, true));
        store.assert_sound().await;
    }

    async fn a_webhook_outlives_what_it_tells_of(store) {
        store.install_default_lane().await;
        let retired = store.start_with(Submission { retention_ms: Some(0), ..told(store.submission("retired")) }, "w1").await;
        store.complete(&retired).await;
        store.fire_all().await;
        assert_eq!(refusal(store.find(retired.execution_id).await), ErrorCode::ExecutionNotFound);
        let deleted = store.start_with(told(store.submission("deleted")), "w1").await;
        store.complete(&deleted).await;
        store.ask(&DeleteExecution { actor: "ann".into(), execution_id: deleted.execution_id }).await.unwrap();
        store.assert_sound().await;
        let mut items = take(&store).await;
        items.sort_by(|a, b| b.kind.cmp(&a.kind));
        assert_eq!(items.iter().map(|w| w.kind.as_str()).collect::<Vec<_>>(), ["retired", "deleted"]);
        let failed = note(&store, &tried(&items[0], WebhookResult::Failed)).await;
        assert!(matches!(failed, NoteWebhookReply::PutOff { .. }), "{failed:?}");
        store.advance(1_000);
        for webhook in [take_one(&store).await, items[1].clone()] { deliver(&store, &webhook).await; }
        nothing_owed(&store).await;
        let describe = DescribeWebhook { execution_id: Some(deleted.execution_id), ..DescribeWebhook::default() };
        assert_eq!(refusal(store.ask(&describe).await), ErrorCode::ExecutionNotFound);
        assert_eq!(store.story(deleted.execution_id).await.last().map(String::as_str), Some("webhook.delivered"));
    }

    async fn a_flow_tells_its_end_once_all_of_it_has_ended(store) {
        store.install_default_lane().await;
        let flow = NewFlow { completion_webhook: Some(URL.into()), on_member_failure: OnMemberFailure::FailFlow, ..store.new_flow() };
        let mut members = store.members("a b c");
        members[2].submission.completion_webhook = Some(URL.into());
        let flow = store.flow_of(flow, members, "a>c").await;
        assert_eq!(store.see_flow(flow.id).await.completion_webhook.as_deref(), Some(URL));
        let tasks = store.claim_members(&flow).await;
        store.fail(&tasks["a"], "net").await;
        store.fire_all().await;
        let mut items = take(&store).await;
        items.sort_by(|a, b| a.r#type.cmp(&b.r#type));
        assert_eq!(items.iter().map(|w| w.r#type.as_str()).collect::<Vec<_>>(), ["execution.skipped", "flow.failed"]);
        assert_eq!((items[0].execution_id, items[0].flow_id), (Some(flow.ids["c"]), Some(flow.id)));
        assert_eq!((items[1].execution_id, items[1].flow_id, items[1].outcome.as_str(), items[1].lane.clone()), (None, Some(flow.id), "failed", None));
        for webhook in &items { deliver(&store, webhook).await; }
        let of_flow = DescribeWebhook { flow_id: Some(flow.id), ..DescribeWebhook::default() };
        let DescribeWebhookReply::Webhook { status } = store.ask(&of_flow).await.unwrap();
        assert_eq!(status.map(|s| (s.delivery_id, s.state)), Some((items[1].delivery_id, WebhookState::Delivered)));
        let event = store.events(HOME).await.pop().unwrap();
        assert_eq!((event.r#type.as_str(), event.flow_id, event.execution_id), ("webhook.delivered", Some(flow.id), None));

        // It runs again, and ends again.
        for key in ["a", "b"] {
            store.ask(&ReplayExecution::new("ann".into(), flow.ids[key])).await.unwrap();
        }
        store.fire_all().await;
        while let Some(task) = store.claim("w1", 1).await.pop() { store.complete(&task).await; }
        store.fire_all().await;
        let again: Vec<Webhook> = take(&store).await.into_iter().filter(|w| w.execution_id.is_none()).collect();
        assert_eq!(again.iter().map(|w| w.r#type.as_str()).collect::<Vec<_>>(), ["flow.completed"]);
        assert_ne!(again[0].delivery_id, items[1].delivery_id);
        let both = DescribeWebhook { flow_id: Some(flow.id), execution_id: Some(flow.ids["a"]) };
        assert_eq!(refusal(store.ask(&both).await), ErrorCode::InvalidArgument);
        assert_eq!(refusal(store.ask(&DescribeWebhook::default()).await), ErrorCode::InvalidArgument);
        let unknown = DescribeWebhook { flow_id: Some(store.flow_id()), ..DescribeWebhook::default() };
        assert_eq!(refusal(store.ask(&unknown).await), ErrorCode::FlowNotFound);
    }

    async fn an_address_that_cannot_be_one_is_refused_by_name(store) {
        store.install_default_lane().await;
        for bad in ["", "example.org", "ftp://example.org/", "https://", "https:///x", "https://example.org/#x", "https://exa mple.org/", "https://example.org/\n"] {
            let submission = Submission { completion_webhook: Some(bad.into()), ..store.submission("mail") };
            let error = store.try_submit(submission).await.unwrap_err().to_string();
            assert!(error.contains("completion_webhook"), "{bad}: {error}");
        }
    }

    async fn damage_to_webhooks_is_found_and_repaired(store) {
        let Some(server) = store.server() else { return };
        store.install_default_lane().await;
        for url in [URL, "https://hooks.example.org/other", "https://other.example.org/"] {
            let submission = Submission { completion_webhook: Some(url.into()), ..store.submission("mail") };
            let task = store.start_with(submission, "w1").await;
            store.complete(&task).await;
            store.advance(5);
        }
        store.assert_sound().await;
        let sound = store.dump().await;
        let keys = |part: &str| sound.keys().filter(|key| key.contains(part)).cloned().collect::<Vec<_>>();
        let (records, lines, list) = (keys("ff:hook:"), keys(":receiver:"), keys(":receivers")[0].clone());
        assert_eq!((records.len(), lines.len()), (3, 2));
        let of = |line: &str| line.rsplit(':').next().unwrap().to_owned();
        let id = of(&records[0]);
        let line = lines.iter().find(|line| server.command::<Option<String>>(&["ZSCORE", line.as_str(), &id]).unwrap().is_some()).unwrap();
        let receiver = of(line);
        let ghost = "00000000-0000-8000-a000-00000000ff00";
        for (what, command, number) in [
            ("a lost entry", vec!["ZREM", line, &id], 10),
            ("a wrong time", vec!["ZADD", line, "1", &id], 10),
            ("an entry for nothing", vec!["ZADD", line, "1", ghost], 37),
            ("a receiver that is not listed", vec!["ZREM", &list, &receiver], 10),
            ("a receiver listed too late", vec!["ZADD", &list, "9000000000000", &receiver], 10),
            ("a receiver without a line", vec!["ZADD", &list, "1", "0123456789abcdef0123"], 37),
        ] {
            server.command::<redis::Value>(&command).unwrap();
            let found: Vec<i64> = store.fsck().await.iter().map(|finding| finding.invariant).collect();
            assert!(found.contains(&number), "{what}: found {found:?}");
            for _ in 0..2 {
                let keys = store.dump().await.into_keys().filter(|key| key.contains("{p:0}")).map(|key| key.into_bytes().into()).collect();
                store.ask(&CheckKeys { keys, repair: true }).await.unwrap();
            }
            store.assert_sound().await;
            assert_eq!(store.dump().await, sound, "{what} is undone");
        }
        let stray = "ff:outbox:{p:0}:else";
        server.command::<redis::Value>(&["SET", stray, "x"]).unwrap();
        assert!(store.fsck().await.iter().any(|finding| finding.invariant == 37));
        server.command::<redis::Value>(&["DEL", stray]).unwrap();
    }

    async fn a_worker_that_ends_many_at_once_owes_many(store) {
        store.install_default_lane().await;
        for _ in 0..5 { store.submit(told(store.submission("mail"))).await; }
        let tasks = store.claim("w1", 5).await;
        let completions: Vec<_> = tasks.iter().map(|task| CompleteExecution::new(task.execution_id, task.fence())).collect();
        assert!(store.ask_all(&completions).await.iter().all(Result::is_ok));
        let items = take(&store).await;
        assert_eq!(items.len(), 5);
        let ids: std::collections::BTreeSet<_> = items.iter().map(|w| w.delivery_id).collect();
        assert_eq!(ids.len(), 5);
        for webhook in &items { deliver(&store, webhook).await; }
        nothing_owed(&store).await;
    }
}
