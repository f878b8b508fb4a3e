//! Streams of attempts: written in batches, read by range, followed without polling.
//!
//! Whoever follows a stream waits for one announcement per execution; readers at the same place share one read, so a
//! thousand of them cost the store what one does.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use ff_core::error::{EngineError, ValidationKind};
use ff_core::error_code::ErrorCode;
use ff_core::merge_patch;
use ff_core::types::ExecutionId;
use ff_script::generated::{
    AppendFrames, AppendFramesReply, AttemptState, Fence, Frame, FrameMode, NewFrame, NewSummary, ReadStream,
    ReadStreamReply, ReadSummary, ReadSummaryReply,
};
use ff_script::{Bytes, Error};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::following::{Following, Spot};
use crate::operations::{Operations, refused_with};
use crate::turns::Turns;

/// The most frames one append call carries; more are sent in several.
const APPEND_MAX: usize = 64;
/// The most bytes one read answers, frames cut at the border excepted.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The largest document that summary frames may add up to.
const SUMMARY_BYTES_MAX: usize = 1024 * 1024;
/// How often a summary is folded again when another writer was faster.
const FOLDS_MAX: usize = 64;
/// The longest pause between two folds.
const FOLD_WAIT_MS_MAX: usize = 20;

/// What an append did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The id of each frame, in order.
    pub ids: Vec<String>,
    /// The number the next frame of the attempt gets.
    pub next_sequence: u64,
    /// Every frame had been written before.
    pub replayed: bool,
}

/// Frames of one attempt, and what is known about its stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamPage {
    /// The frames, in order.
    pub frames: Vec<Frame>,
    /// There is more after the last of them.
    pub more: bool,
    /// The attempt they belong to; none when nothing has started yet.
    pub attempt_index: Option<u32>,
    /// The latest attempt of the execution.
    pub latest_attempt: Option<u32>,
    /// The execution has ended.
    pub terminal: bool,
    /// When the stream was closed, and how its attempt ended.
    pub closed: Option<(i64, AttemptState)>,
}

impl StreamPage {
    /// What its frames carry.
    pub(crate) fn bytes(&self) -> usize {
        self.frames.iter().map(|frame| frame.payload.as_ref().map_or(0, |payload| payload.0.len())).sum()
    }
}

/// Which frames of an attempt are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FrameRange {
    /// Only those after this id.
    pub after: Option<String>,
    /// Only those from this id on; not together with `after`.
    pub from: Option<String>,
    /// Only those up to this id.
    pub to: Option<String>,
}

/// A place in the merged stream of an execution: an attempt and the last frame seen of it. URL-safe text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedCursor {
    /// The attempt.
    pub attempt: u32,
    /// The last frame seen of it.
    pub after: Option<String>,
}

impl fmt::Display for MergedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.attempt, self.after.as_deref().unwrap_or("start"))
    }
}

impl FromStr for MergedCursor {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let invalid = || EngineError::Validation {
            kind: ValidationKind::InvalidArgument { field: "after".to_owned() },
            detail: "is not a cursor of this stream".to_owned(),
        };
        if text == "start" {
            return Ok(Self::default());
        }
        let (attempt, after) = text.split_once('.').ok_or_else(invalid)?;
        let attempt = attempt.parse().map_err(|_| invalid())?;
        let is_id = |id: &str| id.split_once('-').is_some_and(|(ms, n)| is_number(ms) && is_number(n));
        match after {
            "start" => Ok(Self { attempt, after: None }),
            id if is_id(id) => Ok(Self { attempt, after: Some(id.to_owned()) }),
            _ => Err(invalid()),
        }
    }
}

fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// One thing a reader of the merged stream sees.
#[derive(Clone, Debug, PartialEq)]
pub enum Merged {
    /// A frame of an attempt.
    Frame {
        /// The attempt.
        attempt: u32,
        /// The frame.
        frame: Frame,
    },
    /// A later attempt took over; nothing more comes from this one.
    Superseded {
        /// The attempt that ended.
        attempt: u32,
        /// When, and how.
        closed: Option<(i64, AttemptState)>,
    },
    /// The execution has ended with this attempt.
    Closed {
        /// The attempt; none when nothing ever started.
        attempt: Option<u32>,
        /// When, and how.
        closed: Option<(i64, AttemptState)>,
    },
}

/// Reads, writes and follows the streams of one store.
pub struct Streams {
    operations: Operations,
    following: Arc<Following>,
    turns: Turns,
}

impl Streams {
    pub(crate) fn start(operations: Operations, tasks: &mut JoinSet<()>, stop: CancellationToken) -> Arc<Self> {
        let following = Following::start(operations.clone(), tasks, stop);
        Arc::new(Self { operations, following, turns: Turns::default() })
    }

    /// Appends frames to the running attempt. Repeating it with the same first sequence, or the same request, answers the
    /// ids of what was written. Summary frames hold a JSON merge patch, which is folded into the attempt's document.
    ///
    /// More than one call's worth goes in several calls, each whole or not at all, and stands together unless another
    /// process writes to the same attempt: writers in several processes say which sequence they mean.
    pub async fn append(
        &self,
        id: ExecutionId,
        fence: Fence,
        frames: Vec<NewFrame>,
        first_sequence: Option<u64>,
        request_id: Option<Uuid>,
    ) -> Result<Appended, Error> {
        // A batch finds itself by the numbers behind its first frame; a fold is a read and a write.
        let alone = frames.len() > APPEND_MAX || frames.iter().any(|frame| frame.mode == FrameMode::Summary);
        let _turn = self.turns.take(id, alone).await;
        // A host repeats a call whose answer was cut off: each must be known by something.
        let request_id = request_id.or_else(|| first_sequence.is_none().then(Uuid::now_v7));
        let mut chunks = frames.chunks(APPEND_MAX);
        // An append of nothing is a call, too, and refused like any other that makes no sense.
        let chunk = chunks.next().unwrap_or_default();
        let mut sum = self.append_chunk(id, &fence, 0, chunk.to_vec(), first_sequence, request_id).await?;
        for chunk in chunks {
            // What follows goes right behind, so that a repeated batch finds all of itself.
            let first = sum.ids.last().and_then(|id| id.rsplit_once('-')?.1.parse::<u64>().ok()).map(|n| n + 1);
            let part = self.append_chunk(id, &fence, sum.ids.len(), chunk.to_vec(), first, None).await?;
            sum.ids.extend(part.ids);
            sum.next_sequence = part.next_sequence;
            sum.replayed &= part.replayed;
        }
        Ok(sum)
    }

    async fn append_chunk(
        &self,
        id: ExecutionId,
        fence: &Fence,
        offset: usize,
        frames: Vec<NewFrame>,
        first: Option<u64>,
        request_id: Option<Uuid>,
    ) -> Result<Appended, Error> {
        let client = self.operations.client();
        let folds = frames.iter().any(|frame| frame.mode == FrameMode::Summary);
        let mut call = AppendFrames {
            execution_id: id,
            fence: *fence,
            first_sequence: first.map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
            frames,
            request_id,
            summary: None,
        };
        for round in 1.. {
            if folds {
                call.summary = Some(self.folded(id, offset, &call.frames).await?);
            }
            match client.call(client.route_of(&id), &call).await {
                Err(error) if round < FOLDS_MAX && refused_with(&error) == Some(ErrorCode::SummaryChanged) => {
                    // Writers elsewhere are faster: whoever keeps losing leaves them more room each time.
                    let wait = rand::random_range(0..=round.min(FOLD_WAIT_MS_MAX));
                    tokio::time::sleep(Duration::from_millis(wait as u64)).await;
                }
                Err(error) => return Err(error),
                Ok(AppendFramesReply::Appended { ids, next_sequence, replayed }) => {
                    return Ok(Appended { ids, next_sequence: next_sequence.unsigned_abs(), replayed });
                }
            }
        }
        unreachable!("the last round answers")
    }

    /// The attempt's document with these patches folded in, and the version they were folded into. The first of them is
    /// the caller's frame number `offset`.
    async fn folded(&self, id: ExecutionId, offset: usize, frames: &[NewFrame]) -> Result<NewSummary, Error> {
        let ReadSummaryReply::Summary { document, version, .. } = self.read_summary(id, None).await?;
        let mut document = document.map_or_else(|| b"{}".to_vec(), |document| document.0);
        for (at, frame) in frames.iter().enumerate().filter(|(_, frame)| frame.mode == FrameMode::Summary) {
            let patch = frame.payload.as_ref().map_or(&b""[..], |payload| &payload.0);
            let field = || format!("frames[{}].payload", offset + at);
            document = merge_patch::fold(&document, patch).map_err(|error| invalid(&field(), &error.to_string()))?;
            if document.len() > SUMMARY_BYTES_MAX {
                let bytes = document.len();
                let problem = format!("makes the summary {bytes} bytes long, at most {SUMMARY_BYTES_MAX} are kept");
                return Err(invalid(&field(), &problem));
            }
        }
        Ok(NewSummary { document: Bytes(document), version })
    }

    /// The folded document of an attempt with its version, of the latest attempt when none is named.
    pub(crate) async fn read_summary(&self, id: ExecutionId, attempt: Option<u32>) -> Result<ReadSummaryReply, Error> {
        let client = self.operations.client();
        let call = ReadSummary { attempt_index: attempt.map(i64::from), execution_id: id };
        client.call(client.route_of(&id), &call).await
    }

    /// The folded document of an attempt, of the latest one when none is named; nothing when no summary was written.
    pub async fn summary(&self, id: ExecutionId, attempt: Option<u32>) -> Result<Option<Vec<u8>>, Error> {
        let ReadSummaryReply::Summary { document, .. } = self.read_summary(id, attempt).await?;
        Ok(document.map(|document| document.0))
    }

    /// Frames of one attempt, of the latest one when none is named: at most `limit`, and not many more bytes than 4 MiB.
    pub async fn read(
        &self,
        id: ExecutionId,
        attempt: Option<u32>,
        range: FrameRange,
        limit: usize,
    ) -> Result<StreamPage, Error> {
        read(&self.operations, id, attempt, range, limit).await
    }

    /// Frames of one attempt after an id. Waits up to `block` for the first of them; the end of the stream ends the wait.
    pub async fn tail(
        &self,
        id: ExecutionId,
        attempt: u32,
        after: Option<String>,
        limit: usize,
        block: Duration,
    ) -> Result<StreamPage, Error> {
        let ready = |page: &StreamPage| !page.frames.is_empty() || page.closed.is_some() || page.terminal;
        self.page(id, Spot { attempt, after, limit }, block, ready).await
    }

    /// What comes after a cursor in the merged stream of all attempts, and the cursor behind it. Waits up to `block` for
    /// the first of it.
    pub async fn merged(
        &self,
        id: ExecutionId,
        cursor: MergedCursor,
        limit: usize,
        block: Duration,
    ) -> Result<(Vec<Merged>, MergedCursor), Error> {
        let MergedCursor { attempt, after } = cursor.clone();
        let ready = |page: &StreamPage| {
            !page.frames.is_empty() || page.terminal || page.latest_attempt.is_some_and(|latest| latest > attempt)
        };
        let page = self.page(id, Spot { attempt, after, limit }, block, ready).await?;
        let mut seen: Vec<Merged> =
            page.frames.iter().map(|frame| Merged::Frame { attempt, frame: frame.clone() }).collect();
        let mut next = cursor;
        if let Some(last) = page.frames.last() {
            next.after = Some(last.id.clone());
        }
        if page.more {
            return Ok((seen, next));
        }
        if page.latest_attempt.is_some_and(|latest| latest > attempt) {
            seen.push(Merged::Superseded { attempt, closed: page.closed });
            next = MergedCursor { attempt: attempt + 1, after: None };
        } else if page.terminal {
            seen.push(Merged::Closed { attempt: page.attempt_index, closed: page.closed });
        }
        Ok((seen, next))
    }

    /// The page at a spot. Who does not wait gets what is there now, not what someone else saw a moment ago.
    async fn page(
        &self,
        id: ExecutionId,
        spot: Spot,
        block: Duration,
        ready: impl Fn(&StreamPage) -> bool,
    ) -> Result<StreamPage, Error> {
        if block.is_zero() {
            let range = FrameRange { after: spot.after, ..FrameRange::default() };
            return self.read(id, Some(spot.attempt), range, spot.limit).await;
        }
        self.following.wait(id, &spot, block, ready).await.map(Arc::unwrap_or_clone)
    }
}

pub(crate) async fn read(
    operations: &Operations,
    id: ExecutionId,
    attempt: Option<u32>,
    range: FrameRange,
    limit: usize,
) -> Result<StreamPage, Error> {
    let client = operations.client();
    let mut page = StreamPage::default();
    let (mut after, mut bytes) = (range.after, 0);
    loop {
        let left = limit.saturating_sub(page.frames.len());
        let call = ReadStream {
            after: after.clone(),
            attempt_index: attempt.map(i64::from),
            execution_id: id,
            from: if after.is_some() { None } else { range.from.clone() },
            limit: i64::try_from(left).unwrap_or(i64::MAX),
            to: range.to.clone(),
        };
        let ReadStreamReply::Page { frames, more, attempt_index, latest_attempt, terminal, closed_at, closed_reason } =
            client.call(client.route_of(&id), &call).await?;
        bytes += frames.iter().map(|frame| frame.payload.as_ref().map_or(0, |payload| payload.0.len())).sum::<usize>();
        after = frames.last().map(|frame| frame.id.clone()).or(after);
        page.frames.extend(frames);
        page.more = more;
        page.attempt_index = attempt_index.and_then(|index| u32::try_from(index).ok());
        page.latest_attempt = latest_attempt.and_then(|index| u32::try_from(index).ok());
        page.terminal = terminal;
        page.closed = closed_at.zip(closed_reason);
        if !more || page.frames.len() >= limit || bytes > READ_BYTES_MAX {
            // A stream is at its end only for who has seen all of it.
            if more {
                page.closed = None;
            }
            return Ok(page);
        }
    }
}

fn invalid(field: &str, detail: &str) -> Error {
    Error::Engine(EngineError::Validation {
        kind: ValidationKind::InvalidArgument { field: field.to_owned() },
        detail: detail.to_owned(),
    })
}
