//! The frames of attempts: appended under a lease, each once; readable without one.

use std::collections::BTreeMap;

use ff_script::Bytes;
use ff_script::generated::{
    AppendFrames, AppendFramesReply, AttemptState, FollowStream, FollowStreamReply, Frame, FrameMode, Outcome,
    ReadStream, ReadStreamReply, ReadSummary, ReadSummaryReply,
};
use uuid::Uuid;

use super::{Answer, Model, invalid, refused};

/// Frames of one page.
const PAGE: usize = 256;

/// Number of attempts of one execution whose frames are kept.
const STREAMS_KEPT: usize = 100;

/// The streams of an execution's attempts, by index.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    pub of: BTreeMap<i64, Stream>,
    pub followed: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Number of frames ever written.
    pub next: i64,
    /// The frames that are kept, in order.
    pub frames: Vec<Frame>,
    pub version: i64,
    pub document: Option<Bytes>,
    request: Option<(Uuid, i64)>,
}

impl Streams {
    pub fn count(&self, index: i64) -> i64 {
        self.of.get(&index).map_or(0, |stream| stream.next)
    }

    /// The attempt has ended. If too many attempts have frames, the oldest are dropped.
    pub fn closed(&mut self) {
        if self.of.len() > STREAMS_KEPT {
            self.of.pop_first();
        }
    }
}

impl Stream {
    /// Removes excess frames: the oldest, live frames first.
    fn trim(&mut self, max: usize) {
        while self.frames.len() > max {
            let live = self.frames.iter().position(|frame| frame.mode == FrameMode::Live);
            self.frames.remove(live.unwrap_or(0));
        }
    }
}

/// How a stream ends to which no attempt wrote.
fn end_without_attempt(outcome: Outcome) -> AttemptState {
    match outcome {
        Outcome::Success => AttemptState::Succeeded,
        Outcome::Failed => AttemptState::Failed,
        Outcome::Cancelled | Outcome::Skipped => AttemptState::Cancelled,
        Outcome::Expired => AttemptState::Interrupted,
    }
}

impl Model {
    pub fn append(&mut self, call: &AppendFrames) -> Answer<AppendFramesReply> {
        let (id, now) = (call.execution_id, self.now);
        self.live(id, &call.fence)?;
        if call.frames.is_empty() {
            return Err(invalid("frames", "must hold a frame"));
        }
        let execution = &self.executions[&id];
        let running = execution.running().expect("its lease lives");
        let (index, started_at) = (running.index, running.started_at);
        let stream = execution.streams.of.get(&index).cloned().unwrap_or_default();
        if call.first_sequence.is_some_and(|first| first > stream.next) {
            let detail = [("field", Some("first_sequence".to_owned())), ("expected", Some(stream.next.to_string()))];
            return Err(refused("frames_missing", &detail));
        }
        let repeated = stream.request.filter(|(request, _)| call.request_id == Some(*request));
        let first = repeated.map_or(call.first_sequence.unwrap_or(stream.next), |(_, first)| first);
        let count = call.frames.len() as i64;
        let known = count.min(stream.next - first);
        let name = |number: i64| format!("{started_at}-{number}");
        let ids = (first..first + count).map(name).collect();
        if known == count {
            return Ok(AppendFramesReply::Appended { ids, next_sequence: stream.next, replayed: true });
        }
        if call.summary.as_ref().is_some_and(|summary| summary.version != stream.version) {
            return Err(refused("summary_changed", &[("version", Some(stream.version.to_string()))]));
        }
        let next_sequence = self.edit(id, |execution| {
            let max = execution.said.max_frames as usize;
            let stream = execution.streams.of.entry(index).or_default();
            for new in &call.frames[known as usize..] {
                stream.frames.push(Frame {
                    id: name(stream.next),
                    sequence: stream.next,
                    r#type: new.r#type.clone(),
                    at: now,
                    payload: new.payload.clone(),
                    payload_encoding: new.payload_encoding.clone(),
                    correlation_id: new.correlation_id.clone(),
                    mode: new.mode,
                });
                stream.next += 1;
            }
            stream.trim(max);
            stream.request = call.request_id.map(|request| (request, first)).or(stream.request);
            if let Some(summary) = &call.summary {
                (stream.version, stream.document) = (stream.version + 1, Some(summary.document.clone()));
            }
            stream.next
        });
        Ok(AppendFramesReply::Appended { ids, next_sequence, replayed: false })
    }

    pub fn read_stream(&self, call: &ReadStream) -> Answer<ReadStreamReply> {
        let execution = self.get(call.execution_id)?;
        let latest_attempt = execution.latest_attempt();
        let terminal = execution.ended().is_some();
        let found = call.attempt_index.or(latest_attempt).and_then(|index| execution.attempt(index));
        let Some(attempt) = found else {
            if let Some(index) = call.attempt_index.filter(|index| *index > latest_attempt.unwrap_or(-1) + 1) {
                return Err(no_attempt(index));
            }
            let ended = execution.ended();
            return Ok(ReadStreamReply::Page {
                attempt_index: None,
                closed_at: ended.map(|ended| ended.at),
                closed_reason: ended.map(|ended| end_without_attempt(ended.outcome)),
                frames: Vec::new(),
                latest_attempt,
                more: false,
                terminal,
            });
        };
        let place = |id: &String| Place::read(id, attempt.started_at);
        let stream = execution.streams.of.get(&attempt.index);
        let wanted = |frame: &&Frame| {
            let from = match (call.after.as_ref().map(place), call.from.as_ref().map(place)) {
                (Some(Place::Frame(number)), _) => frame.sequence > number,
                (None, Some(Place::Frame(number))) => frame.sequence >= number,
                (Some(Place::Time(ms)), _) | (None, Some(Place::Time(ms))) => frame.at >= ms,
                (None, None) => true,
            };
            let to = match call.to.as_ref().map(place) {
                Some(Place::Frame(number)) => frame.sequence <= number,
                Some(Place::Time(ms)) => frame.at < ms,
                None => true,
            };
            from && to
        };
        let all: Vec<Frame> = stream.iter().flat_map(|stream| &stream.frames).filter(wanted).cloned().collect();
        let limit = PAGE.min(call.limit as usize);
        Ok(ReadStreamReply::Page {
            attempt_index: Some(attempt.index),
            closed_at: attempt.ended_at,
            closed_reason: attempt.ended_at.map(|_| attempt.state),
            latest_attempt,
            more: all.len() > limit,
            frames: all.into_iter().take(limit).collect(),
            terminal,
        })
    }

    pub fn read_summary(&self, call: &ReadSummary) -> Answer<ReadSummaryReply> {
        let execution = self.get(call.execution_id)?;
        let found = call.attempt_index.or(execution.latest_attempt()).and_then(|index| execution.attempt(index));
        let Some(attempt) = found else {
            return match call.attempt_index {
                Some(index) => Err(no_attempt(index)),
                None => Ok(ReadSummaryReply::Summary { attempt_index: None, document: None, version: 0 }),
            };
        };
        let stream = execution.streams.of.get(&attempt.index);
        Ok(ReadSummaryReply::Summary {
            attempt_index: Some(attempt.index),
            document: stream.and_then(|stream| stream.document.clone()),
            version: stream.map_or(0, |stream| stream.version),
        })
    }

    pub fn follow(&mut self, call: &FollowStream) -> Answer<FollowStreamReply> {
        if !self.get(call.execution_id)?.streams.followed {
            self.edit(call.execution_id, |execution| execution.streams.followed = true);
        }
        Ok(FollowStreamReply::Following)
    }
}

/// The position of a reader: at a frame of the attempt, or before frames from a certain time on.
enum Place {
    Frame(i64),
    Time(i64),
}

impl Place {
    fn read(id: &str, started_at: i64) -> Self {
        let (ms, number) = id.split_once('-').expect("an id is two numbers");
        let (ms, number) = (ms.parse::<i64>().expect("a number"), number.parse::<u64>().expect("a number"));
        match i64::try_from(number).ok().filter(|number| *number < 1 << 53) {
            Some(number) if ms == started_at => Self::Frame(number),
            Some(_) => Self::Time(ms),
            // A time without a number is after its millisecond.
            None => Self::Time(ms + 1),
        }
    }
}

fn no_attempt(index: i64) -> super::Refusal {
    refused("attempt_not_found", &[("attempt_index", Some(index.to_string()))])
}
