//! One writer of a stream, alone and with a hundred readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use ff_engine::{Streams, fence_of};
use ff_script::Bytes;
use ff_script::generated::{FrameMode, NewFrame, Task};
use tokio::sync::Notify;

use super::report::{Fan, Report, Step};
use super::world::World;
use super::{Scale, sorted};
use ff_testkit::Tasks;

/// Size of a frame.
pub const FRAME_BYTES: usize = 256;
pub const BATCH: usize = 16;
pub const TAILS: usize = 100;
/// The default maximum of frames in a stream.
const FRAMES_MAX: u64 = 10_000;

pub fn frames(count: usize) -> Vec<NewFrame> {
    let frame = NewFrame::new("text".to_owned(), FrameMode::Durable);
    vec![NewFrame { payload: Some(Bytes(vec![b'x'; FRAME_BYTES])), ..frame }; count]
}

pub async fn measure(world: &World, scale: &Scale, report: &mut Report) -> Result<()> {
    let store = world.setting.name();
    let streams = world.engine.streams();
    // First a stream that keeps everything, then a full one, where every frame removes another one.
    for (step, at_once, full) in [(Step::Frame, 1, false), (Step::Frames, BATCH, false), (Step::FrameFull, 1, true)] {
        let task = world.task((!full).then_some(1_000_000)).await?;
        let mut next = 0;
        if full {
            next = append(streams, &task, FRAMES_MAX as usize, 0).await?;
        }
        let (mut each, began) = (Vec::new(), Instant::now());
        while began.elapsed() < scale.writing {
            let began = Instant::now();
            next = append(streams, &task, at_once, next).await?;
            each.push(began.elapsed());
        }
        report.note_rate(store, step, at_once, &sorted(each, began.elapsed()));
        world.operations().client().complete(task.execution_id, fence_of(&task), None).await?;
    }
    follow(world, scale, report).await
}

async fn append(streams: &Streams, task: &Task, count: usize, next: u64) -> Result<u64> {
    let appended = streams.append(task.execution_id, fence_of(task), frames(count), Some(next), None).await?;
    Ok(appended.next_sequence)
}

/// A hundred tails of one stream. First each frame waits until all tails have the previous one, then the writer does
/// not wait.
async fn follow(world: &World, scale: &Scale, report: &mut Report) -> Result<()> {
    let (store, streams) = (world.setting.name(), world.engine.streams());
    let task = world.task(None).await?;
    let id = task.execution_id;
    let seen = Arc::new((AtomicUsize::new(0), Notify::new()));
    let tails: Vec<_> = (0..TAILS)
        .map(|_| {
            let (streams, seen) = (Arc::clone(streams), Arc::clone(&seen));
            tokio::spawn(async move {
                let (mut after, mut count) = (None, 0);
                loop {
                    let page = streams.tail(id, 0, after.clone(), 1_000, Duration::from_secs(30)).await?;
                    let new = page.frames.len();
                    count += new;
                    if (seen.0.fetch_add(new, Ordering::SeqCst) + new).is_multiple_of(TAILS) {
                        seen.1.notify_one();
                    }
                    if page.closed.is_some() {
                        return anyhow::Ok(count);
                    }
                    after = page.frames.last().map(|frame| frame.id.clone()).or(after);
                }
            })
        })
        .collect();
    // All tails are at the end of the stream.
    tokio::time::sleep(Duration::from_millis(300)).await;

    let all_saw = async |count: usize| {
        while seen.0.load(Ordering::SeqCst) < count * TAILS {
            seen.1.notified().await;
        }
    };
    let (mut next, mut each, began) = (0, Vec::new(), Instant::now());
    for _ in 0..scale.frames_followed {
        let began = Instant::now();
        next = append(streams, &task, 1, next).await?;
        all_saw(next as usize).await;
        each.push(began.elapsed());
    }
    report.note_time(store, Step::Followed, &sorted(each, began.elapsed()));

    let commands = world.store.host.store_commands().await?;
    let (mut each, began, first) = (Vec::new(), Instant::now(), next);
    while began.elapsed() < scale.writing {
        let began = Instant::now();
        next = append(streams, &task, 1, next).await?;
        each.push(began.elapsed());
    }
    let wrote = began.elapsed();
    all_saw(next as usize).await;
    let took = began.elapsed();
    let commands = world.store.host.store_commands().await? - commands;
    let written = (next - first) as f64;
    report.note_rate(store, Step::FrameFollowed, 1, &sorted(each, wrote));
    report.note_fan(Fan {
        store,
        delivered_per_second: written * TAILS as f64 / took.as_secs_f64(),
        commands_per_frame: commands as f64 / written,
    });
    world.operations().client().complete(id, fence_of(&task), None).await?;
    for tail in tails {
        let count = tail.await??;
        anyhow::ensure!(count as u64 == next, "a tail saw {count} of {next} frames");
    }
    Ok(())
}
