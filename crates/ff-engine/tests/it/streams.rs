//! Streams of attempts: everything once, in order, whoever reads from wherever, and at little cost to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ff_core::types::ExecutionId;
use ff_engine::{Engine, FrameRange, Merged, MergedCursor, StreamPage, Streams, fence_of};
use ff_script::generated::{
    AttemptState, Backoff, BackoffType, Frame, FrameMode, NewFrame, Retry, SuspensionReason, Task, TimeoutBehavior,
};
use ff_script::{Bytes, Error, HostError};
use uuid::Uuid;

use crate::kit::*;
use crate::on_both_hosts;
use crate::wiretap::Wiretap;
use ff_testkit::Tasks;

const LONG: Duration = Duration::from_secs(120);

fn frame(text: impl Into<String>) -> NewFrame {
    framed(FrameMode::Durable, text)
}

fn framed(mode: FrameMode, text: impl Into<String>) -> NewFrame {
    NewFrame { payload: Some(Bytes(text.into().into_bytes())), ..NewFrame::new("text".to_owned(), mode) }
}

fn text(frame: &Frame) -> String {
    String::from_utf8(frame.payload.clone().unwrap().0).unwrap()
}

fn shown(page: &StreamPage) -> Vec<String> {
    page.frames.iter().map(text).collect()
}

async fn running(engine: &Engine) -> Task {
    let mut new = work("writer");
    new.fields.retry = Some(Retry {
        max_attempts: Some(5),
        backoff: Some(Backoff { delay_ms: Some(1), ..Backoff::new(BackoffType::Fixed) }),
        ..Retry::default()
    });
    let id = submit(engine.operations(), new).await;
    claim_one(engine.operations(), &worker("w", 60_000), id).await
}

async fn append(engine: &Engine, task: &Task, frames: Vec<NewFrame>) -> Vec<String> {
    engine.streams().append(task.execution_id, fence_of(task), frames, None, None).await.unwrap().ids
}

fn tail(streams: &Arc<Streams>, id: ExecutionId, after: Option<String>) -> tokio::task::JoinHandle<StreamPage> {
    let streams = Arc::clone(streams);
    tokio::spawn(async move { streams.tail(id, 0, after, 100, LONG).await.unwrap() })
}

/// Waits until nothing more is asked of the store: everyone who follows waits.
async fn quiet(tap: &Wiretap) {
    eventually("everyone waits", async || {
        let count = || tap.calls("ff_read_stream") + tap.calls("ff_follow_stream");
        let before = count();
        tokio::time::sleep(ms(150)).await;
        (before > 0 && count() == before).then_some(())
    })
    .await;
}

on_both_hosts! {
    async fn a_thousand_frames_go_in_with_one_call_and_only_once(kit) {
        let engine = kit.engine().await;
        let task = running(&engine).await;
        let (id, streams) = (task.execution_id, engine.streams());
        append(&engine, &task, vec![frame("before")]).await;
        let frames: Vec<NewFrame> = (0..1_000).map(|n| frame(format!("{n}"))).collect();
        let request = Some(Uuid::now_v7());
        let first = streams.append(id, fence_of(&task), frames.clone(), None, request).await.unwrap();
        assert_eq!((first.ids.len(), first.next_sequence, first.replayed), (1_000, 1_001, false));
        for (sequence, request) in [(None, request), (Some(1), None)] {
            let again = streams.append(id, fence_of(&task), frames.clone(), sequence, request).await.unwrap();
            assert_eq!((again.replayed, again.next_sequence, &again.ids), (true, 1_001, &first.ids));
        }
        // A longer batch at a known place adds what is new.
        let longer = streams.append(id, fence_of(&task), [frames, vec![frame("more")]].concat(), Some(1), None).await.unwrap();
        assert_eq!((longer.replayed, longer.next_sequence, &longer.ids[..1_000]), (false, 1_002, &first.ids[..]));
        let nothing = streams.append(id, fence_of(&task), Vec::new(), None, None).await.unwrap_err();
        assert!(nothing.to_string().contains("frames"), "{nothing}");

        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let range = FrameRange { after: after.clone(), ..FrameRange::default() };
            let page = streams.read(id, None, range, 300).await.unwrap();
            assert_eq!((page.attempt_index, page.terminal, page.closed), (Some(0), false, None));
            seen.extend(shown(&page));
            if !page.more {
                break;
            }
            assert_eq!(page.frames.len(), 300);
            after = page.frames.last().map(|frame| frame.id.clone());
        }
        let expected = std::iter::once("before".to_owned()).chain((0..1_000).map(|n| n.to_string())).chain(["more".to_owned()]);
        assert_eq!(seen, expected.collect::<Vec<_>>());
        let range = FrameRange { from: Some(first.ids[10].clone()), to: Some(first.ids[12].clone()), after: None };
        assert_eq!(shown(&streams.read(id, Some(0), range, 300).await.unwrap()), ["10", "11", "12"]);
        engine.stop().await;
    }

    async fn writers_side_by_side_lose_nothing(kit) {
        let engine = kit.engine().await;
        let task = running(&engine).await;
        let (id, streams) = (task.execution_id, engine.streams());
        let writers = (0..6).map(|writer| {
            let (streams, fence) = (Arc::clone(streams), fence_of(&task));
            tokio::spawn(async move {
                // Some write one by one, some more than one call holds.
                let at_once = if writer % 2 == 0 { 1 } else { 150 };
                for batch in 0..300 / at_once {
                    let frames = (0..at_once).map(|n| frame(format!("{writer} {}", batch * at_once + n))).collect();
                    streams.append(id, fence, frames, None, None).await.unwrap();
                }
            })
        });
        for done in futures::future::join_all(writers).await {
            done.unwrap();
        }
        let page = streams.read(id, Some(0), FrameRange::default(), 10_000).await.unwrap();
        assert_eq!(page.frames.iter().map(|frame| frame.sequence).collect::<Vec<_>>(), (0..1_800).collect::<Vec<_>>());
        for writer in 0..6 {
            let own: Vec<String> = shown(&page).into_iter().filter_map(|text| text.strip_prefix(&format!("{writer} ")).map(str::to_owned)).collect();
            assert_eq!(own, (0..300).map(|n| n.to_string()).collect::<Vec<_>>(), "writer {writer}");
        }
        engine.stop().await;
    }

    async fn a_tail_wakes_with_a_frame_and_with_the_end(kit) {
        let (engine, other) = (kit.engine().await, kit.tool(kit.another_host().await).await);
        let task = running(&engine).await;
        let id = task.execution_id;
        for streams in [engine.streams(), other.streams()] {
            let after = streams.read(id, None, FrameRange::default(), 10).await.unwrap().frames.last().map(|f| f.id.clone());
            let waiting = tail(streams, id, after);
            tokio::time::sleep(ms(200)).await;
            assert!(!waiting.is_finished());
            append(&engine, &task, vec![frame("hello")]).await;
            assert_eq!(shown(&waiting.await.unwrap()), ["hello"]);
        }
        let after = Some("99999999999999-0".to_owned());
        let waiting = [engine.streams(), other.streams()].map(|streams| tail(streams, id, after.clone()));
        tokio::time::sleep(ms(200)).await;
        complete(engine.operations(), &task, b"").await;
        for waiting in waiting {
            let page = waiting.await.unwrap();
            assert!(page.frames.is_empty());
            assert!(matches!(page.closed, Some((_, AttemptState::Succeeded))), "{page:?}");
        }
        // An attempt that can no longer come is not waited for.
        let _began = Instant::now();
        let page = engine.streams().tail(id, 1, None, 10, LONG).await.unwrap();
        assert_eq!((page.attempt_index, page.terminal), (None, true));
        engine.stop().await;
        other.stop().await;
    }

    async fn everyone_hears_of_an_end_whenever_they_came(kit) {
        let engine = kit.engine().await;
        for round in 0..25_u64 {
            let task = running(&engine).await;
            let id = task.execution_id;
            let waiting: Vec<_> = (0..12_u64)
                .map(|n| {
                    let streams = Arc::clone(engine.streams());
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_micros(n * (100 + 40 * round))).await;
                        streams.tail(id, 0, None, 10, LONG).await.unwrap()
                    })
                })
                .collect();
            tokio::time::sleep(Duration::from_micros(600 + 240 * round)).await;
            complete(engine.operations(), &task, b"").await;
            for page in futures::future::join_all(waiting).await {
                assert!(page.unwrap().closed.is_some());
            }
        }
        engine.stop().await;
    }

    async fn a_thousand_readers_cost_what_one_does(kit) {
        const APPENDS: usize = 10;
        let tap = Wiretap::on(kit.host());
        let engine = kit.engine_on(tap.clone()).await;
        for readers in [1, 1_000] {
            let task = running(&engine).await;
            let id = task.execution_id;
            let reads_before = tap.calls("ff_read_stream");
            let follows_before = tap.calls("ff_follow_stream");
            let seen = Arc::new(AtomicUsize::new(0));
            let reading: Vec<_> = (0..readers)
                .map(|_| {
                    let (streams, seen) = (Arc::clone(engine.streams()), Arc::clone(&seen));
                    tokio::spawn(async move {
                        let (mut all, mut after) = (Vec::new(), None);
                        loop {
                            let page = streams.tail(id, 0, after.clone(), 100, LONG).await.unwrap();
                            all.extend(shown(&page));
                            if page.closed.is_some() {
                                return all;
                            }
                            after = page.frames.last().map(|frame| frame.id.clone()).or(after);
                            seen.fetch_add(page.frames.len(), Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            quiet(&tap).await;
            let started = tap.calls("ff_read_stream") - reads_before;
            assert!(started <= 8, "{readers} readers began with {started} reads");
            for n in 0..APPENDS {
                append(&engine, &task, vec![frame(format!("{n}"))]).await;
                eventually("everyone saw it", async || {
                    (seen.load(Ordering::SeqCst) >= (n + 1) * readers).then_some(())
                })
                .await;
            }
            quiet(&tap).await;
            let reads = tap.calls("ff_read_stream") - reads_before - started;
            let follows = tap.calls("ff_follow_stream") - follows_before;
            eprintln!("{readers} readers: {started} reads to begin, {reads} for {APPENDS} appends, {follows} marks");
            // What is new, and that there is nothing behind it.
            assert!(reads <= 3 * APPENDS, "{readers} readers made {reads} reads of {APPENDS} appends");
            assert_eq!(follows, 1);
            complete(engine.operations(), &task, b"").await;
            let expected: Vec<String> = (0..APPENDS).map(|n| n.to_string()).collect();
            for all in futures::future::join_all(reading).await {
                assert_eq!(all.unwrap(), expected);
            }
        }
        engine.stop().await;
    }

    async fn the_merged_view_shows_everything_once_through_retry_and_resume(kit) {
        let (engine, other) = (kit.engine().await, kit.tool(kit.another_host().await).await);
        let operations = engine.operations();
        let keys = tempfile::tempdir().unwrap();
        let keys = ff_keys::Keys::open(ff_keys::Source::DataDir(keys.path().join("keys"))).unwrap();
        let waitpoints = ff_engine::Waitpoints::new(operations.clone(), keys);
        let task = running(&engine).await;
        let id = task.execution_id;
        let reader = {
            let streams = Arc::clone(other.streams());
            tokio::spawn(async move {
                let (mut all, mut cursor) = (Vec::new(), MergedCursor::default());
                loop {
                    let (seen, next) = streams.merged(id, cursor, 3, LONG).await.unwrap();
                    // A reader that comes back has only the text of its cursor.
                    cursor = next.to_string().parse().unwrap();
                    let closed = matches!(seen.last(), Some(Merged::Closed { .. }));
                    all.extend(seen);
                    if closed {
                        return all;
                    }
                }
            })
        };
        let write = async |task: &Task, names: std::ops::Range<u32>| {
            for n in names {
                let mode = if n % 3 == 0 { FrameMode::Live } else { FrameMode::Durable };
                append(&engine, task, vec![framed(mode, n.to_string())]).await;
            }
        };
        let who = worker("w", 60_000);
        let claim_again = async || {
            let route = operations.client().route_of(&id);
            eventually("it can be claimed again", async || {
                operations.claim(route, &who, 1, Uuid::now_v7()).await.unwrap().tasks.pop()
            })
            .await
        };
        write(&task, 0..10).await;
        operations.client().fail(id, fence_of(&task), "no", "transient").await.unwrap();
        // An attempt that says nothing.
        let task = claim_again().await;
        operations.client().fail(id, fence_of(&task), "no", "transient").await.unwrap();
        let task = claim_again().await;
        write(&task, 10..15).await;
        let opened = waitpoints
            .suspend(ff_engine::NewSuspension {
                execution_id: id,
                fence: fence_of(&task),
                namespace: None,
                reason: SuspensionReason::WaitingForSignal,
                waitpoints: Vec::new(),
                adopt: None,
                condition: Default::default(),
                timeout_ms: None,
                timeout_behavior: TimeoutBehavior::Fail,
                continuation: None,
                continuation_encoding: None,
                step: None,
                wait: None,
                request_id: None,
            })
            .await
            .unwrap();
        let ff_engine::Suspended::Waiting { waitpoints: opened, .. } = opened else { panic!("{opened:?}") };
        let signal = ff_engine::NewSignal { name: "go".to_owned(), ..Default::default() };
        waitpoints.deliver(id, opened[0].waitpoint_id, &opened[0].tokens[0].token, signal).await.unwrap();
        let task = claim_again().await;
        write(&task, 15..20).await;
        complete(operations, &task, b"").await;

        let told: Vec<String> = reader.await.unwrap().iter().map(|seen| match seen {
            Merged::Frame { attempt, frame } => format!("{attempt}:{}", text(frame)),
            Merged::Superseded { attempt, closed } => format!("{attempt} superseded {:?}", closed.unwrap().1),
            Merged::Closed { attempt, closed } => format!("{} closed {:?}", attempt.unwrap(), closed.unwrap().1),
        }).collect();
        let mut expected: Vec<String> = (0..10).map(|n| format!("0:{n}")).collect();
        expected.extend(["0 superseded Failed".to_owned(), "1 superseded Failed".to_owned()]);
        expected.extend((10..20).map(|n| format!("2:{n}")));
        expected.push("2 closed Succeeded".to_owned());
        assert_eq!(told, expected);
        engine.stop().await;
        other.stop().await;
    }

    async fn lost_announcements_cost_time_and_no_frame(kit) {
        let tap = Wiretap::on(kit.host());
        let engine = kit.engine_on(tap.clone()).await;
        let task = running(&engine).await;
        let (id, streams) = (task.execution_id, engine.streams());
        let route = engine.operations().client().route_of(&id);
        let elsewhere = engine.operations().client().execution_routes().filter(|other| *other != route).collect();

        // Lost, and said so.
        let waiting = tail(streams, id, None);
        quiet(&tap).await;
        tap.mute(true);
        let ids = append(&engine, &task, vec![frame("a")]).await;
        tap.say_lost(elsewhere);
        tokio::time::sleep(ms(200)).await;
        assert!(!waiting.is_finished());
        tap.say_lost(vec![route]);
        assert_eq!(shown(&waiting.await.unwrap()), ["a"]);

        // Lost without a word: found when the time is over, while another reader stays at the same place.
        let after = Some(ids[0].clone());
        let staying = tail(streams, id, after.clone());
        quiet(&tap).await;
        append(&engine, &task, vec![frame("b")]).await;
        assert_eq!(shown(&streams.tail(id, 0, after.clone(), 100, ms(1_500)).await.unwrap()), ["b"]);
        // Who does not wait sees what is there, whatever others saw before.
        assert_eq!(shown(&streams.tail(id, 0, after.clone(), 100, ms(0)).await.unwrap()), ["b"]);
        let (merged, _) = streams.merged(id, MergedCursor { attempt: 0, after }, 100, ms(0)).await.unwrap();
        assert_eq!(merged.len(), 1);
        tap.say_lost(vec![route]);
        assert_eq!(shown(&staying.await.unwrap()), ["b"]);

        // The store is told again that someone follows: the one that was told may be gone.
        let last = append(&engine, &task, vec![frame("c")]).await;
        let marks = tap.calls("ff_follow_stream");
        let waiting = tail(streams, id, Some(last[0].clone()));
        quiet(&tap).await;
        assert_eq!(tap.calls("ff_follow_stream"), marks + 1);
        tap.mute(false);
        complete(engine.operations(), &task, b"").await;
        assert!(waiting.await.unwrap().closed.is_some());
        engine.stop().await;
    }

    async fn a_reader_that_leaves_takes_nothing_from_the_others(kit) {
        let engine = kit.engine().await;
        let task = running(&engine).await;
        let (id, streams) = (task.execution_id, engine.streams());
        for n in 0..20 {
            let after = streams.read(id, None, FrameRange::default(), 100).await.unwrap().frames.last().map(|f| f.id.clone());
            let staying = tail(streams, id, after.clone());
            let leaving: Vec<_> = (0..10).map(|_| tail(streams, id, after.clone())).collect();
            tokio::time::sleep(Duration::from_micros(150 * n)).await;
            leaving.iter().for_each(tokio::task::JoinHandle::abort);
            append(&engine, &task, vec![frame(format!("{n}"))]).await;
            assert_eq!(shown(&staying.await.unwrap()), [n.to_string()]);
        }
        engine.stop().await;
    }

    async fn a_stop_ends_every_wait(kit) {
        let engine = kit.engine().await;
        let task = running(&engine).await;
        let streams = Arc::clone(engine.streams());
        let waiting = tail(&streams, task.execution_id, None);
        tokio::time::sleep(ms(100)).await;
        engine.stop().await;
        assert!(waiting.await.unwrap().frames.is_empty());
        let late = streams.tail(task.execution_id, 0, None, 10, LONG).await;
        assert_eq!(late, Err(Error::Host(HostError::Closed)));
    }

    async fn summaries_of_two_writers_hold_both(kit) {
        let (engine, other) = (kit.engine().await, kit.tool(kit.another_host().await).await);
        let task = running(&engine).await;
        let id = task.execution_id;
        let start = r#"{"big": 12345678901234567890123, "exact": 1.10, "far": 1e400, "none": [], "nothing": {}, "gone": 1}"#;
        append(&engine, &task, vec![framed(FrameMode::Summary, start)]).await;
        let writers = [(engine.streams(), "a"), (other.streams(), "b"), (engine.streams(), "c")].map(|(streams, name)| {
            let (streams, fence) = (Arc::clone(streams), fence_of(&task));
            tokio::spawn(async move {
                for n in 0..15 {
                    let patch = framed(FrameMode::Summary, format!(r#"{{"gone": null, "{name}": {{"{n}": {n}}}}}"#));
                    streams.append(id, fence, vec![frame("beside"), patch], None, None).await.unwrap();
                }
            })
        });
        for done in futures::future::join_all(writers).await {
            done.unwrap();
        }
        let document = String::from_utf8(other.streams().summary(id, None).await.unwrap().unwrap()).unwrap();
        let head = r#"{"big":12345678901234567890123,"exact":1.10,"far":1e400,"none":[],"nothing":{},"#;
        assert!(document.starts_with(head), "{document}");
        for name in ["a", "b", "c"] {
            let counted: Vec<String> = (0..15).map(|n| format!(r#""{n}":{n}"#)).collect();
            let expected = format!(r#""{name}":{{{}}}"#, counted.join(","));
            assert!(document.contains(&expected), "{expected} in {document}");
        }
        // Each patch is in the stream, too.
        assert_eq!(engine.streams().read(id, None, FrameRange::default(), 1_000).await.unwrap().frames.len(), 91);
        engine.stop().await;
        other.stop().await;
    }

    async fn a_summary_that_grows_too_large_is_refused_by_the_frame_that_does_it(kit) {
        let engine = kit.engine().await;
        let task = running(&engine).await;
        let id = task.execution_id;
        let patch = |n: usize| framed(FrameMode::Summary, format!(r#"{{"{n}":"{}"}}"#, "x".repeat(60_000)));
        append(&engine, &task, (0..17).map(patch).collect()).await;
        let before = engine.streams().summary(id, None).await.unwrap().unwrap();
        let frames = vec![frame("beside"), patch(17)];
        let error = engine.streams().append(id, fence_of(&task), frames, None, None).await.unwrap_err();
        let message = error.to_string();
        assert!(message.contains("frames[1].payload") && message.contains("1048576"), "{message}");
        let error = engine.streams().append(id, fence_of(&task), vec![framed(FrameMode::Summary, "{")], None, None).await.unwrap_err();
        assert!(error.to_string().contains("frames[0].payload"), "{error}");
        assert_eq!(engine.streams().summary(id, None).await.unwrap().unwrap(), before);
        // A patch that makes room is welcome.
        append(&engine, &task, vec![framed(FrameMode::Summary, r#"{"0":null}"#), patch(17)]).await;
        assert!(engine.streams().summary(id, None).await.unwrap().unwrap().starts_with(br#"{"1":"#));
        engine.stop().await;
    }
}
