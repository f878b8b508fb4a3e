//! Frames: appended once, read from any place, followed without polling.

use std::time::Duration;

use ff_core::types::AttemptIndex;
use ff_sdk::SdkError;
use ff_sdk::task::{
    FrameMode, MAX_TAIL_BLOCK_MS, NewFrame, STREAM_READ_HARD_CAP, StreamCursor, StreamFrames, TimeoutBehavior,
    read_stream, stream_summary, tail_stream,
};
use ff_sdk::testing::Call;

use crate::waits::signal;
use crate::world::{World, claim};

fn texts(page: &StreamFrames) -> Vec<&str> {
    page.frames.iter().map(|frame| std::str::from_utf8(&frame.payload).expect("text")).collect()
}

fn field(error: SdkError) -> String {
    match error {
        SdkError::Config { field: Some(field), .. } => field,
        other => panic!("a refusal before the wire, got {other:?}"),
    }
}

for_each_transport! {
    async fn frames_are_read_back_as_they_were_appended(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        let payloads: &[&[u8]] = &[b"hello", b"{\"z\":12345678901234567890,\"a\":[]}", b"", b"null", &[0, 255, 254]];
        for (n, payload) in payloads.iter().enumerate() {
            let appended = task.append_frame("part", payload, (n == 0).then_some("trace-7")).await.unwrap();
            assert_eq!(appended.frame_count, n as u64 + 1);
        }
        let page = task.read_stream(StreamCursor::Start, StreamCursor::End, 100).await.unwrap();
        assert_eq!(page.frames.iter().map(|frame| frame.payload.as_slice()).collect::<Vec<_>>(), payloads);
        assert_eq!(page.frames.iter().map(|frame| frame.sequence).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!((page.frames[0].frame_type.as_str(), page.frames[0].mode), ("part", FrameMode::Durable));
        assert_eq!(page.frames[0].correlation_id.as_deref(), Some("trace-7"));
        assert_eq!(page.frames[1].correlation_id, None);
        assert!(!page.is_closed());

        // From the second to the fourth, by id; two at a time; by millisecond.
        let at = |n: usize| StreamCursor::At(page.frames[n].id.clone());
        let middle = task.read_stream(at(1), at(3), 100).await.unwrap();
        assert_eq!(middle.frames, page.frames[1..4]);
        let two = task.read_stream(StreamCursor::Start, StreamCursor::End, 2).await.unwrap();
        assert_eq!((two.frames.as_slice(), &two.next), (&page.frames[..2], &at(1)));
        let ms = |n: usize| StreamCursor::At(page.frames[n].at.0.to_string());
        assert_eq!(task.read_stream(ms(0), ms(4), 100).await.unwrap().frames, page.frames);
        assert!(task.read_stream(StreamCursor::Start, StreamCursor::Start, 1).await.unwrap().frames.is_empty());
        assert!(task.read_stream(StreamCursor::End, StreamCursor::End, 1).await.unwrap().frames.is_empty());
        assert!(task.tail_stream(ms(4), 0, 10).await.unwrap().frames.is_empty(), "behind every frame of that time");

        let after = task.tail_stream(two.next, 1_000, 10).await.unwrap();
        assert_eq!(after.frames, page.frames[2..]);
        task.complete(None).await.unwrap();
        let all = read_stream(&world.admin, &id, AttemptIndex::new(0), StreamCursor::Start, StreamCursor::End, 100).await.unwrap();
        assert_eq!((all.frames.len(), all.closed_reason.as_deref()), (5, Some("succeeded")));
        let part = read_stream(worker.backend(), &id, AttemptIndex::new(0), StreamCursor::Start, StreamCursor::End, 4).await.unwrap();
        assert!(!part.is_closed(), "there is more");
    }

    async fn a_tail_is_woken_by_a_frame_and_by_the_end(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        let follow = |after: StreamCursor| {
            let admin = world.admin.clone();
            tokio::spawn(async move {
                // One that is not woken comes back with nothing when its time is over.
                tail_stream(admin.backend().as_ref(), &id, AttemptIndex::new(0), after, MAX_TAIL_BLOCK_MS, 10).await.unwrap()
            })
        };
        let waiting = follow(StreamCursor::from_beginning());
        tokio::time::sleep(Duration::from_millis(200)).await;
        task.append_frame("token", b"one", None).await.unwrap();
        let page = waiting.await.unwrap();
        assert_eq!(texts(&page), ["one"]);
        assert!(!page.is_closed());

        let empty = tail_stream(&worker, &id, AttemptIndex::new(0), page.next.clone(), 50, 10).await.unwrap();
        assert_eq!((empty.frames.len(), &empty.next), (0, &page.next));
        let waiting = follow(page.next);
        tokio::time::sleep(Duration::from_millis(200)).await;
        task.complete(None).await.unwrap();
        let page = waiting.await.unwrap();
        assert!(page.frames.is_empty() && page.is_closed(), "{page:?}");
        assert_eq!(page.closed_reason.as_deref(), Some("succeeded"));
    }

    async fn the_tail_of_an_execution_that_never_started_is_closed(world: &World) {
        let worker = world.worker("w-1").await;
        let mut later = world.new_execution("k");
        later.fields.delay_ms = Some(3_600_000);
        let id = world.admin.submit(later).await.unwrap();
        world.admin.cancel(&id, "not needed", None).await.unwrap();
        let page = tail_stream(&worker, &id, AttemptIndex::new(0), StreamCursor::from_beginning(), 20_000, 10).await.unwrap();
        assert!(page.frames.is_empty() && page.is_closed(), "{page:?}");
        assert_eq!((page.closed_reason.as_deref(), page.closed_at.is_some()), (Some("cancelled"), true));
    }

    async fn many_frames_of_every_mode_go_in_order(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        let mut frames: Vec<NewFrame> = (0..150).map(|n| NewFrame::new("token", n.to_string())).collect();
        frames[1] = NewFrame::new("token", "1").live();
        frames[2] = NewFrame::new("state", r#"{"tokens":3,"list":[]}"#).summary();
        let appended = task.append_frames(&frames).await.unwrap();
        assert_eq!(appended.len(), 150);
        assert_eq!(appended[149].frame_count, 150);
        task.append_frames(&[]).await.unwrap();
        task.append_frames(&[NewFrame::new("state", r#"{"tokens":null,"big":12345678901234567890}"#).summary()]).await.unwrap();
        let page = task.read_stream(StreamCursor::Start, StreamCursor::End, 1_000).await.unwrap();
        assert_eq!(page.frames.iter().map(|frame| frame.sequence).collect::<Vec<_>>(), (0..151).collect::<Vec<_>>());
        assert_eq!((page.frames[1].mode, page.frames[2].mode), (FrameMode::Live, FrameMode::Summary));
        let document = stream_summary(&world.admin, &id, None).await.unwrap().expect("a summary was written");
        assert_eq!(String::from_utf8(document).unwrap(), r#"{"list":[],"big":12345678901234567890}"#);
        task.complete(None).await.unwrap();
    }

    async fn an_append_whose_answer_was_lost_is_the_same_frame(world: &World) {
        let (worker, faults) = world.faulty_worker("w-1").await;
        world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        for n in 0..3 {
            faults.lose_answer(Call::Frames);
            let appended = task.append_frame("n", n.to_string().as_bytes(), None).await.unwrap();
            assert_eq!(appended.frame_count, n + 1);
        }
        faults.lose_answer(Call::Frames);
        let frames: Vec<NewFrame> = (3..100).map(|n| NewFrame::new("n", n.to_string())).collect();
        task.append_frames(&frames).await.unwrap();
        // A caller that gives up in the middle and goes on with something else.
        faults.lose_answer(Call::Frames);
        let given_up = tokio::time::timeout(Duration::from_millis(20), task.append_frame("n", b"100", None)).await;
        assert!(given_up.is_err(), "the repetition comes later");
        task.append_frame("n", b"101", None).await.unwrap();
        let page = task.read_stream(StreamCursor::Start, StreamCursor::End, 1_000).await.unwrap();
        let seen: Vec<u64> = texts(&page).iter().map(|text| text.parse().expect("a number")).collect();
        assert_eq!(seen, (0..102).collect::<Vec<_>>(), "each once, in order");
        task.complete(None).await.unwrap();
    }

    async fn a_resumed_attempt_goes_on_with_its_stream(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        task.append_frame("n", b"0", None).await.unwrap();
        let (at, token) = task.create_pending_waitpoint("x", 60_000).await.unwrap();
        task.suspend("waiting_for_signal", &[], None, TimeoutBehavior::Fail).await.unwrap();
        worker.deliver_signal(&id, &at, signal("x", &token)).await.unwrap();
        let task = claim(&worker).await;
        assert_eq!(task.append_frame("n", b"1", None).await.unwrap().frame_count, 2);
        let page = task.read_stream(StreamCursor::Start, StreamCursor::End, 10).await.unwrap();
        assert_eq!(texts(&page), ["0", "1"]);
        task.complete(None).await.unwrap();
    }

    async fn what_is_out_of_bounds_is_refused_before_the_wire(world: &World) {
        let worker = world.worker("w-1").await;
        world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        let begin = StreamCursor::from_beginning;
        for limit in [0, STREAM_READ_HARD_CAP + 1] {
            assert_eq!(field(task.read_stream(StreamCursor::Start, StreamCursor::End, limit).await.unwrap_err()), "limit");
            assert_eq!(field(task.tail_stream(begin(), 0, limit).await.unwrap_err()), "limit");
        }
        assert_eq!(field(task.tail_stream(begin(), MAX_TAIL_BLOCK_MS + 1, 1).await.unwrap_err()), "block_ms");
        for after in [StreamCursor::Start, StreamCursor::End, StreamCursor::At("-".to_owned()), StreamCursor::At("+".to_owned()), StreamCursor::At(String::new())] {
            assert_eq!(field(task.tail_stream(after, 0, 1).await.unwrap_err()), "after");
        }
        assert_eq!(field(task.read_stream(StreamCursor::At("-".to_owned()), StreamCursor::End, 1).await.unwrap_err()), "from");
        assert_eq!(field(task.read_stream(StreamCursor::Start, StreamCursor::At("+".to_owned()), 1).await.unwrap_err()), "to");
        assert!(task.read_stream(StreamCursor::Start, StreamCursor::End, STREAM_READ_HARD_CAP).await.unwrap().frames.is_empty());
        assert!(task.tail_stream(begin(), 0, STREAM_READ_HARD_CAP).await.unwrap().frames.is_empty());

        let refused = task.append_frame("too large", &[b'x'; 65_537], None).await.unwrap_err();
        assert!(!refused.is_transport(), "{refused:?}");
        task.append_frame("largest", &[b'x'; 65_536], None).await.unwrap();
        let refused = task.append_frame("", b"x", None).await.unwrap_err();
        assert_eq!(refused.engine().map(|error| error.code()), Some("invalid_argument"));
        task.complete(None).await.unwrap();
    }
}
