//! Streams: the frames of an attempt, in order and without gaps, written only under its lease, until the attempt ends.

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, LEASE_MS};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::generated::*;

use crate::suspend::invalid;

fn frame(payload: &str, mode: FrameMode) -> NewFrame {
    NewFrame { payload: Some(payload.into()), ..NewFrame::new("token".into(), mode) }
}

/// Frames from a text: one letter each; capital letters are live frames.
fn frames(text: &str) -> Vec<NewFrame> {
    let mode = |letter: char| if letter.is_uppercase() { FrameMode::Live } else { FrameMode::Durable };
    text.chars().map(|letter| frame(&letter.to_string(), mode(letter))).collect()
}

fn append(task: &Task, text: &str) -> AppendFrames {
    AppendFrames::new(task.execution_id, task.fence(), frames(text))
}

/// The ids and the next number of a successful append, and whether it was a repetition.
async fn appended(store: &Store, call: &AppendFrames) -> (Vec<String>, i64, bool) {
    let AppendFramesReply::Appended { ids, next_sequence, replayed } = store.ask(call).await.unwrap();
    (ids, next_sequence, replayed)
}

/// One returned page.
struct Page {
    frames: Vec<Frame>,
    more: bool,
    attempt: Option<i64>,
    latest: Option<i64>,
    terminal: bool,
    closed: Option<(i64, AttemptState)>,
}

async fn read(store: &Store, call: ReadStream) -> Page {
    let ReadStreamReply::Page { frames, more, attempt_index, latest_attempt, terminal, closed_at, closed_reason } =
        store.ask(&call).await.unwrap();
    assert_eq!(closed_at.is_some(), closed_reason.is_some());
    let closed = closed_at.zip(closed_reason);
    Page { frames, more, attempt: attempt_index, latest: latest_attempt, terminal, closed }
}

/// The whole stream of the latest attempt, page by page.
async fn all(store: &Store, id: ExecutionId, limit: i64) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    loop {
        let after = frames.last().map(|frame| frame.id.clone());
        let page = read(store, ReadStream { after, ..ReadStream::new(id, limit) }).await;
        assert!(page.frames.len() <= limit as usize);
        frames.extend(page.frames);
        if !page.more {
            return frames;
        }
    }
}

fn text(frames: &[Frame]) -> String {
    frames.iter().map(|frame| String::from_utf8(frame.payload.as_ref().unwrap().to_vec()).unwrap()).collect()
}

fn started_with(store: &Store, max_frames: i64) -> Submission {
    Submission { stream: Some(StreamOptions { max_frames: Some(max_frames) }), ..store.submission("mail") }
}

for_each_host! {
    async fn frames_are_numbered_without_a_gap_and_read_as_written(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        let rich = NewFrame { r#type: "delta".into(), payload: Some((0..=255).collect::<Vec<u8>>().into()), payload_encoding: Some("raw".into()), correlation_id: Some("c".into()), mode: FrameMode::Summary };
        let (first, next, replayed) = appended(&store, &AppendFrames::new(id, task.fence(), vec![rich, NewFrame::new("bare".into(), FrameMode::Live)])).await;
        assert_eq!((first.len(), next, replayed), (2, 2, false));
        let at = store.now();
        store.advance(7);
        let (second, next, _) = appended(&store, &append(&task, &"x".repeat(64))).await;
        assert_eq!((second.len(), next), (64, 66));
        let frames = all(&store, id, 100).await;
        assert_eq!(frames.iter().map(|frame| frame.sequence).collect::<Vec<_>>(), (0..66).collect::<Vec<_>>());
        assert_eq!(frames.iter().map(|frame| frame.id.clone()).collect::<Vec<_>>(), [first, second].concat());
        assert_eq!(frames[0], Frame {
            id: frames[0].id.clone(), sequence: 0, r#type: "delta".into(), at, payload: Some((0..=255).collect::<Vec<u8>>().into()), payload_encoding: Some("raw".into()), correlation_id: Some("c".into()), mode: FrameMode::Summary,
        });
        assert_eq!((frames[1].payload.as_ref(), frames[1].mode, frames[2].at), (None, FrameMode::Live, at + 7));
        assert_eq!(store.describe(id).await.attempts[0].frames, 66);
        let page = read(&store, ReadStream::new(id, 1)).await;
        assert_eq!((page.attempt, page.latest, page.terminal, page.closed, page.more), (Some(0), Some(0), false, None, true));
    }

    async fn what_is_no_batch_of_frames_is_refused(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let before = store.dump().await;
        let large = AppendFrames::new(task.execution_id, task.fence(), vec![NewFrame { payload: Some(vec![0; 65_537].into()), ..frame("", FrameMode::Durable) }]);
        for (call, words) in [(append(&task, ""), "frames"), (append(&task, &"x".repeat(65)), "frames"), (large, "frames[0].payload")] {
            assert!(invalid(store.ask(&call).await).contains(words));
        }
        assert_eq!(store.dump().await, before);
        let largest = AppendFrames::new(task.execution_id, task.fence(), vec![NewFrame { payload: Some(vec![0xff; 65_536].into()), ..frame("", FrameMode::Durable) }]);
        appended(&store, &largest).await;
        assert_eq!(all(&store, task.execution_id, 5).await[0].payload, Some(vec![0xff; 65_536].into()));
    }

    async fn a_repeated_batch_answers_the_ids_it_got(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let request = store.uuid(0);
        let from = |first: i64, text: &str| AppendFrames { first_sequence: Some(first), ..append(&task, text) };
        let asked = |call: AppendFrames| AppendFrames { request_id: Some(request), ..call };
        let (a, ..) = appended(&store, &from(0, "abC")).await;
        store.advance(3);
        let repeat = async |call: AppendFrames, ids: &[String]| {
            let before = store.dump().await;
            let next = store.describe(task.execution_id).await.attempts[0].frames;
            assert_eq!(appended(&store, &call).await, (ids.to_vec(), next, true));
            assert_eq!(store.dump().await, before, "a repetition writes nothing");
        };
        repeat(from(0, "abC"), &a).await;
        repeat(from(1, "bC"), &a[1..]).await;
        repeat(from(0, "a"), &a[..1]).await;
        // A batch that overlaps a known one: the known part is returned, and the rest is written.
        let (b, next, replayed) = appended(&store, &asked(from(1, "bCde"))).await;
        assert_eq!((&b[..2], next, replayed), (&a[1..], 5, false));
        store.advance(3);
        repeat(asked(from(1, "bCde")), &b).await;
        repeat(asked(append(&task, "bCde")), &b).await;
        let (_, next, _) = appended(&store, &append(&task, "f")).await;
        assert_eq!(next, 6);
        repeat(asked(append(&task, "bCde")), &b).await;
        assert_eq!(text(&all(&store, task.execution_id, 2).await), "abCdef");
        // Without a number or a request id it is a new batch.
        appended(&store, &append(&task, "f")).await;
        assert_eq!(text(&all(&store, task.execution_id, 100).await), "abCdeff");
    }

    async fn a_known_number_is_answered_though_its_frame_has_left(store) {
        store.install_default_lane().await;
        let task = store.start_with(started_with(&store, 3), "w1").await;
        let (ids, ..) = appended(&store, &append(&task, "ab")).await;
        store.advance(5);
        appended(&store, &append(&task, "cdef")).await;
        assert_eq!(text(&all(&store, task.execution_id, 10).await), "def");
        assert_eq!(appended(&store, &AppendFrames { first_sequence: Some(0), ..append(&task, "ab") }).await, (ids, 6, true));
    }

    async fn a_gap_is_refused_with_the_number_expected(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        appended(&store, &append(&task, "ab")).await;
        let before = store.dump().await;
        for first in [3, 100] {
            let call = AppendFrames { first_sequence: Some(first), ..append(&task, "x") };
            assert_eq!(refusal(store.ask(&call).await), ErrorCode::FramesMissing);
            let reply = store.reply(ff_conformance::work::HOME, &call).await;
            assert_eq!(reply["detail"]["expected"].as_str(), Some("2"));
        }
        assert_eq!(store.dump().await, before);
    }

    async fn a_full_stream_drops_live_frames_first_then_the_oldest(store) {
        store.install_default_lane().await;
        for (max, batches, left) in [
            (5, vec!["abc", "de", "f"], "bcdef"),
            (5, vec!["aBcDe", "f"], "acDef"),
            (5, vec!["aBcDe", "fg"], "acefg"),
            (5, vec!["aBcDe", "fgh"], "cefgh"),
            (5, vec!["abcde", "F"], "abcde"),
            (5, vec!["abcdE", "FG"], "abcdG"),
            (5, vec!["ABCDEFG"], "CDEFG"),
            (5, vec!["ABCD", "EFGHIJ"], "FGHIJ"),
            (5, vec!["abCdefGhijk"], "fhijk"),
            (1, vec!["ab", "cdE", "F"], "d"),
            (3, vec!["A", "bcdef", "G", "h"], "efh"),
        ] {
            let task = store.start_with(started_with(&store, max), "w1").await;
            for batch in &batches {
                appended(&store, &append(&task, batch)).await;
                store.assert_sound().await; // the counts are exact
                store.advance(1);
            }
            let kept = text(&all(&store, task.execution_id, 2).await);
            assert_eq!(kept, left, "{batches:?} in a stream of {max}");
            store.complete(&task).await;
        }
    }

    async fn a_stream_is_read_from_anywhere_in_pages_of_any_size(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        for batch in ["aB", "cdE", "F", "ghij"] {
            appended(&store, &append(&task, batch)).await;
            store.advance(1);
        }
        let whole = all(&store, id, 100).await;
        assert_eq!(text(&whole), "aBcdEFghij");
        for limit in 1..=11 {
            assert_eq!(all(&store, id, limit).await, whole, "pages of {limit}");
        }
        let name = |n: usize| Some(whole[n].id.clone());
        for (call, expected, more) in [
            (ReadStream { after: name(2), ..ReadStream::new(id, 100) }, "dEFghij", false),
            (ReadStream { from: name(2), ..ReadStream::new(id, 100) }, "cdEFghij", false),
            (ReadStream { from: name(2), to: name(5), ..ReadStream::new(id, 100) }, "cdEF", false),
            (ReadStream { after: name(2), to: name(5), ..ReadStream::new(id, 100) }, "dEF", false),
            (ReadStream { to: name(1), ..ReadStream::new(id, 100) }, "aB", false),
            (ReadStream { from: name(2), to: name(5), ..ReadStream::new(id, 3) }, "cdE", true),
            (ReadStream { from: name(5), to: name(2), ..ReadStream::new(id, 3) }, "", false),
            (ReadStream { after: name(9), ..ReadStream::new(id, 3) }, "", false),
            (ReadStream { after: Some("0-0".into()), ..ReadStream::new(id, 100) }, "aBcdEFghij", false),
        ] {
            let page = read(&store, call.clone()).await;
            assert_eq!((text(&page.frames).as_str(), page.more), (expected, more), "{call:?}");
        }
        for wrong in ["99999999999999999999-0", "0-18446744073709551616"] {
            assert!(invalid(store.ask(&ReadStream { after: Some(wrong.into()), ..ReadStream::new(id, 1) }).await).contains("after"));
        }
        // A reader that waits at the end sees all new frames, even after the attempt was suspended.
        let door = store.waitpoint("door");
        store.suspend(&task, &[&door]).await;
        assert_eq!(read(&store, ReadStream::new(id, 1)).await.closed, None);
        store.wake(id, &door, "go").await;
        let again = store.claim_one("w1").await;
        appended(&store, &append(&again, "kl")).await;
        assert_eq!(text(&read(&store, ReadStream { after: name(9), ..ReadStream::new(id, 100) }).await.frames), "kl");
    }

    async fn a_time_stands_for_the_frames_written_then(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let start = store.now();
        for letters in ["ab", "Cd", "eF"] {
            store.advance(10);
            appended(&store, &append(&task, letters)).await;
        }
        let bare = |ms: i64| format!("{ms}-{}", u64::MAX);
        let whole = ReadStream::new(task.execution_id, 100);
        for (after, seen) in [(start - 5, "abCdeF"), (start, "abCdeF"), (start + 9, "abCdeF"), (start + 10, "CdeF"), (start + 15, "CdeF"), (start + 20, "eF"), (start + 30, ""), (i64::MAX >> 11, "")] {
            let page = read(&store, ReadStream { after: Some(bare(after)), ..whole.clone() }).await;
            assert_eq!(text(&page.frames), seen, "after {}", after - start);
        }
        for (from, to, seen) in [(start, start + 10, "ab"), (start + 10, start + 20, "abCd"), (start + 11, start + 19, ""), (start + 20, start + 90, "CdeF")] {
            let page = read(&store, ReadStream { from: Some(format!("{from}-0")), to: Some(bare(to)), ..whole.clone() }).await;
            assert_eq!(text(&page.frames), seen, "{} to {}", from - start, to - start);
        }
    }

    async fn a_page_of_large_frames_is_cut_and_goes_on(store) {
        store.install_default_lane().await;
        for live_every in [3, 61] {
            let task = store.start("mail", "w1").await;
            let mode = |n: usize| if n % live_every == live_every - 1 { FrameMode::Live } else { FrameMode::Durable };
            let big = |n: usize| NewFrame { payload: Some(vec![n as u8; 60_000].into()), ..frame("", mode(n)) };
            for batch in 0..3 {
                appended(&store, &AppendFrames::new(task.execution_id, task.fence(), (batch * 20..batch * 20 + 20).map(big).collect())).await;
            }
            let page = read(&store, ReadStream::new(task.execution_id, 1_000)).await;
            assert!(page.more && page.frames.len() < 60, "{} frames", page.frames.len());
            let whole = all(&store, task.execution_id, 1_000).await;
            assert_eq!(whole.iter().map(|frame| (frame.sequence, frame.payload.as_ref().unwrap()[0])).collect::<Vec<_>>(), (0..60).map(|n| (n, n as u8)).collect::<Vec<_>>());
        }
    }

    async fn a_long_stream_is_read_in_bounded_pages(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        for _ in 0..5 {
            appended(&store, &append(&task, &"x".repeat(64))).await;
        }
        let page = read(&store, ReadStream::new(task.execution_id, 10_000)).await;
        assert_eq!((page.frames.len(), page.more), (256, true));
        assert_eq!(all(&store, task.execution_id, 10_000).await.len(), 320);
    }

    async fn a_stream_closes_with_its_attempt_and_says_why(store) {
        store.install_default_lane().await;
        let retry = || Some(Retry { max_attempts: Some(9), jitter: Some(Jitter::None), backoff: Some(Backoff { delay_ms: Some(0), ..Backoff::new(BackoffType::Fixed) }), ..Retry::default() });
        for (end, reason) in [
            ("complete", AttemptState::Succeeded), ("fail", AttemptState::Failed), ("cancel", AttemptState::Cancelled), ("operator", AttemptState::Cancelled), ("delay", AttemptState::Interrupted), ("yield", AttemptState::Interrupted),
            ("lose", AttemptState::Interrupted), ("revoke", AttemptState::Interrupted), ("time out", AttemptState::TimedOut), ("deadline", AttemptState::Interrupted), ("suspension", AttemptState::Failed),
        ] {
            let deadline_ms = (end == "deadline").then_some(20);
            let attempt_timeout_ms = (end == "time out").then_some(20);
            let task = store.start_with(Submission { retry: retry(), deadline_ms, attempt_timeout_ms, ..store.submission("mail") }, "w1").await;
            let (id, fence) = (task.execution_id, task.fence());
            appended(&store, &append(&task, "ab")).await;
            store.advance(10);
            match end {
                "complete" => store.complete(&task).await,
                "fail" => { store.fail(&task, "net").await; }
                "cancel" => { store.ask(&CancelAttempt::new(id, fence)).await.unwrap(); }
                "operator" => { store.ask(&CancelExecution::new("op".into(), id)).await.unwrap(); }
                "delay" => { store.ask(&DelayExecution { delay_ms: Some(5), ..DelayExecution::new(id, fence) }).await.unwrap(); }
                "yield" => { store.ask(&YieldExecution { execution_id: id, fence }).await.unwrap(); }
                "lose" => { store.advance(LEASE_MS - 10); store.fire_all().await; }
                "revoke" => { store.ask(&RevokeLease::new("op".into(), id)).await.unwrap(); }
                "suspension" => {
                    store.suspend_with(&SuspendExecution { timeout_ms: Some(5), ..store.suspend_call(&task, &[&store.waitpoint("door")]) }).await;
                    store.advance(5);
                    store.fire_all().await;
                }
                _ => { store.advance(10); store.fire_all().await; }
            }
            let page = read(&store, ReadStream::new(id, 100)).await;
            assert_eq!((text(&page.frames).as_str(), page.attempt, page.closed), ("ab", Some(0), Some((store.now(), reason))), "{end}");
            let e = store.describe(id).await;
            assert_eq!((page.terminal, e.attempts[0].frames), (e.outcome.is_some(), 2), "{end}");
            let before = store.dump().await;
            assert!(store.ask(&append(&task, "c")).await.is_err(), "nothing is written after the close");
            assert_eq!(store.dump().await, before);
            store.ask(&CancelExecution::new("op".into(), id)).await.unwrap();
        }
    }

    async fn each_attempt_has_a_stream_of_its_own(store) {
        store.install_default_lane().await;
        let id = store.submit(Submission { max_reclaims: Some(5), ..store.submission("mail") }).await;
        let page = read(&store, ReadStream::new(id, 10)).await;
        assert_eq!((page.frames.len(), page.attempt, page.latest, page.closed), (0, None, None, None), "nothing has run yet");
        let page = read(&store, ReadStream { attempt_index: Some(0), ..ReadStream::new(id, 10) }).await;
        assert_eq!((page.frames.len(), page.attempt), (0, None), "an attempt to come has an empty stream");
        let first = store.claim_one("w1").await;
        appended(&store, &append(&first, "ab")).await;
        let second = store.lose_and_reclaim(&first, "w1").await;
        assert_eq!(second.frames, 0);
        let page = read(&store, ReadStream::new(id, 10)).await;
        assert_eq!((page.frames.len(), page.attempt, page.latest), (0, Some(1), Some(1)), "the latest, which has written nothing");
        appended(&store, &append(&second, "c")).await;
        for (index, expected) in [(Some(0), "ab"), (Some(1), "c"), (None, "c")] {
            let page = read(&store, ReadStream { attempt_index: index, ..ReadStream::new(id, 10) }).await;
            assert_eq!((text(&page.frames).as_str(), page.latest), (expected, Some(1)));
        }
        let page = read(&store, ReadStream { attempt_index: Some(2), ..ReadStream::new(id, 10) }).await;
        assert_eq!((page.frames.len(), page.attempt), (0, None));
        assert_eq!(refusal(store.ask(&ReadStream { attempt_index: Some(3), ..ReadStream::new(id, 10) }).await), ErrorCode::AttemptNotFound);
        assert_eq!(refusal(store.ask(&ReadStream::new(store.execution_id(), 10)).await), ErrorCode::ExecutionNotFound);
    }

    async fn streams_of_a_hundred_attempts_are_kept(store) {
        store.install_default_lane().await;
        let retry = Retry { max_attempts: Some(1_000), jitter: Some(Jitter::None), backoff: Some(Backoff { delay_ms: Some(0), ..Backoff::new(BackoffType::Fixed) }), ..Retry::default() };
        let mut task = store.start_with(Submission { retry: Some(retry), ..store.submission("mail") }, "w1").await;
        let id = task.execution_id;
        for n in 0..104 {
            // An attempt without frames takes no space.
            if ![5, 7, 9].contains(&n) {
                let summary = Some(NewSummary { document: "{}".into(), version: 0 });
                appended(&store, &AppendFrames { summary, ..append(&task, "aB") }).await;
            }
            store.fail(&task, "net").await;
            task = store.claim_one("w1").await;
        }
        let streams: Vec<String> = store.dump().await.into_keys().filter(|key| key.starts_with("ff:stream:")).collect();
        assert_eq!(streams.len(), 3 * 100, "durable, live and summary of a hundred attempts");
        let page = read(&store, ReadStream { attempt_index: Some(0), ..ReadStream::new(id, 10) }).await;
        assert_eq!((page.frames.len(), page.closed.map(|(_, state)| state)), (0, Some(AttemptState::Failed)), "the oldest has left");
        assert_eq!(read(&store, ReadStream { attempt_index: Some(103), ..ReadStream::new(id, 10) }).await.frames.len(), 2);
    }

    async fn a_summary_is_replaced_by_whoever_saw_the_last(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        let look = async |index| {
            let ReadSummaryReply::Summary { document, version, attempt_index } = store.ask(&ReadSummary { attempt_index: index, ..ReadSummary::new(id) }).await.unwrap();
            (document, version, attempt_index)
        };
        assert_eq!(look(None).await, (None, 0, Some(0)));
        let fold = |version: i64, document: &str| AppendFrames { summary: Some(NewSummary { document: document.into(), version }), request_id: Some(store.uuid(0)), ..AppendFrames::new(id, task.fence(), vec![frame("{}", FrameMode::Summary)]) };
        let first = fold(0, r#"{"n":1.0,"list":[]}"#);
        appended(&store, &first).await;
        assert_eq!(look(None).await, (Some(r#"{"n":1.0,"list":[]}"#.into()), 1, Some(0)));
        let before = store.dump().await;
        assert!(appended(&store, &first).await.2, "a lost reply is returned again, whatever its version");
        for version in [0, 2] {
            assert_eq!(refusal(store.ask(&fold(version, "{}")).await), ErrorCode::SummaryChanged);
        }
        assert_eq!(store.dump().await, before, "neither frame nor document of a refused one is left");
        appended(&store, &fold(1, "{}")).await;
        appended(&store, &append(&task, "x")).await;
        assert_eq!(look(None).await, (Some("{}".into()), 2, Some(0)), "frames alone leave it as it is");
        let next = store.lose_and_reclaim(&task, "w1").await;
        assert_eq!(look(None).await, (None, 0, Some(1)), "the next attempt starts empty");
        assert_eq!(look(Some(0)).await, (Some("{}".into()), 2, Some(0)));
        assert_eq!(refusal(store.ask(&ReadSummary { attempt_index: Some(2), ..ReadSummary::new(id) }).await), ErrorCode::AttemptNotFound);
        store.complete(&next).await;
    }

    async fn a_clock_that_steps_back_keeps_the_order_of_frames(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        for (batch, step) in [("a", 1_000), ("b", -1_500), ("c", 10)] {
            appended(&store, &append(&task, batch)).await;
            store.advance(step);
        }
        assert_eq!(text(&all(&store, task.execution_id, 10).await), "abc");
    }
}
