//! Appending frames under a lease.

use ff_api::streams::AppendedFrames;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::{AppendFrameOutcome, NewFrame};
use crate::error::worth_repeating;
use crate::task::TaskCore;
use crate::{ClaimedTask, SdkError};

/// The most frames and bytes one call carries.
const FRAMES_MAX: usize = 64;
const BYTES_MAX: usize = 2 * 1024 * 1024;

/// Where a task's stream goes on. One append at a time holds it, so frames stand in the order they were given.
///
/// **Invariant:** frames are never taken for others that had the same number. A number is used again only for the very frames it was
/// used for; after an append whose answer never came, other frames go without one.
pub(crate) struct Writer(Mutex<Position>);

#[derive(Default)]
struct Position {
    /// The number of the next frame, once it is known.
    next: Option<u64>,
    /// Frames that are not known to be written whole: given again, they go on where they stopped.
    unfinished: Option<Batch>,
}

struct Batch {
    frames: Vec<NewFrame>,
    /// Of those that were answered.
    outcomes: Vec<AppendFrameOutcome>,
    /// A call for the next of them that may or may not have happened.
    call: Option<Call>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    first: Option<u64>,
    request_id: Uuid,
}

impl Writer {
    /// A stream that goes on at this number.
    pub(crate) fn new(next: Option<u64>) -> Self {
        Self(Mutex::new(Position { next, unfinished: None }))
    }
}

impl Position {
    /// Takes frames up: anew, or where the same ones stopped.
    fn take_up(&mut self, frames: &[NewFrame]) {
        match self.unfinished.take() {
            Some(same) if same.frames == frames => self.unfinished = Some(same),
            other => {
                if other.is_some_and(|other| other.call.is_some()) {
                    self.next = None;
                }
                self.unfinished = Some(Batch { frames: frames.to_vec(), outcomes: Vec::new(), call: None });
            }
        }
    }

    /// The next frames to send and the call they go with, noted before it is made: a caller may drop it at any point.
    fn next_call(&mut self) -> Option<(&[NewFrame], Call)> {
        let batch = self.unfinished.as_mut()?;
        let rest = &batch.frames[batch.outcomes.len()..];
        let fitting = &rest[..fitting(rest)];
        let fresh = Call { first: self.next, request_id: Uuid::now_v7() };
        (!fitting.is_empty()).then(|| (fitting, *batch.call.get_or_insert(fresh)))
    }

    fn answered(&mut self, appended: AppendedFrames) {
        self.next = Some(appended.next_sequence);
        if let Some(batch) = &mut self.unfinished {
            batch.call = None;
            batch.outcomes.extend(appended.ids.into_iter().map(|id| {
                // An id ends with the number of its frame.
                let number = id.rsplit_once('-').and_then(|(_, number)| number.parse::<u64>().ok());
                AppendFrameOutcome { frame_count: number.map_or(appended.next_sequence, |number| number + 1), id }
            }));
        }
    }

    fn refused(&mut self) {
        if let Some(batch) = &mut self.unfinished {
            batch.call = None;
        }
    }
}

impl TaskCore {
    pub(crate) async fn append_frames(&self, frames: &[NewFrame]) -> Result<Vec<AppendFrameOutcome>, SdkError> {
        let mut position = self.writer.0.lock().await;
        position.take_up(frames);
        let (mut lost, reach) = (false, self.backend.reach());
        while let Some((frames, call)) = position.next_call() {
            let count = frames.len();
            let answer = self.repeat(|| reach.append_frames(self.lease.at, frames, call.first, call.request_id)).await;
            match answer {
                Ok(appended) if appended.ids.len() == count => position.answered(appended),
                Ok(_) => return Err(crate::waits::unexpected("another number of frames than it was given")),
                // The store has fewer frames than it confirmed: it lost some, and goes on from what it has.
                Err(error) if !lost && error.engine().is_some_and(|engine| engine.code() == "frames_missing") => {
                    tracing::warn!(execution = %self.lease.at.execution_id, %error, "frames were lost by the store");
                    position.refused();
                    (position.next, lost) = (None, true);
                }
                Err(error) => {
                    if !worth_repeating(&error) {
                        position.refused();
                    }
                    return Err(error);
                }
            }
        }
        Ok(position.unfinished.take().map(|batch| batch.outcomes).unwrap_or_default())
    }

    pub(crate) async fn append_frame(
        &self,
        frame_type: &str,
        payload: &[u8],
        metadata: Option<&str>,
    ) -> Result<AppendFrameOutcome, SdkError> {
        let correlation_id = metadata.filter(|text| !text.is_empty()).map(str::to_owned);
        self.append_one(NewFrame { correlation_id, ..NewFrame::new(frame_type, payload) }).await
    }

    pub(crate) async fn append_one(&self, frame: NewFrame) -> Result<AppendFrameOutcome, SdkError> {
        let outcome = self.append_frames(std::slice::from_ref(&frame)).await?.pop();
        outcome.ok_or_else(|| crate::waits::unexpected("no id for a frame"))
    }
}

/// How many of these fit into one call.
fn fitting(frames: &[NewFrame]) -> usize {
    let mut bytes = 0;
    let fits = |frame: &&NewFrame| {
        bytes += frame.payload.len();
        bytes <= BYTES_MAX
    };
    // One that is too large by itself is the engine's to refuse.
    frames.iter().take(FRAMES_MAX).take_while(fits).count().max(1).min(frames.len())
}

impl ClaimedTask {
    /// Appends a durable frame to this attempt's stream; `metadata` is a short word on what it belongs to, at most 256 bytes.
    ///
    /// Repeated after a lost answer it is the same frame: the task numbers what it appends.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use ff_sdk::task::StreamCursor;
    /// # let engine = ff_sdk::testing::TestEngine::start().await?;
    /// # let id = engine.submit("write", b"{}").await?;
    /// # let worker = engine.worker("w-1").await?;
    /// # let task = worker.claim_next().await?.expect("one execution waits");
    /// task.append_frame("token", b"hello", None).await?;
    /// let seen = task.read_stream(StreamCursor::Start, StreamCursor::End, 100).await?;
    /// assert_eq!(seen.frames[0].payload, b"hello");
    /// # task.complete(None).await?;
    /// # Ok::<(), ff_sdk::SdkError>(())
    /// # }).unwrap();
    /// ```
    pub async fn append_frame(
        &self,
        frame_type: &str,
        payload: &[u8],
        metadata: Option<&str>,
    ) -> Result<AppendFrameOutcome, SdkError> {
        self.core().append_frame(frame_type, payload, metadata).await
    }

    /// Appends many frames of any mode, in order, in as few calls as they fit into; one outcome for each.
    ///
    /// When one of the calls fails, the frames of earlier ones are written; the same frames given again go on where it stopped.
    pub async fn append_frames(&self, frames: &[NewFrame]) -> Result<Vec<AppendFrameOutcome>, SdkError> {
        self.core().append_frames(frames).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(sizes: &[usize]) -> Vec<NewFrame> {
        sizes.iter().map(|size| NewFrame::new("f", vec![0; *size])).collect()
    }

    #[test]
    fn frames_are_cut_into_calls_by_number_and_by_size() {
        let table: &[(&[usize], usize)] =
            &[(&[], 0), (&[1; 65], 64), (&[BYTES_MAX, 1], 1), (&[BYTES_MAX + 1, 1], 1), (&[BYTES_MAX / 2; 5], 2)];
        for (sizes, expected) in table {
            assert_eq!(fitting(&frames(sizes)), *expected, "{sizes:?}");
        }
    }

    fn call(position: &mut Position) -> Call {
        position.next_call().expect("there is more").1
    }

    #[test]
    fn a_number_is_used_again_for_the_same_frames_only() {
        let mut position = Position { next: Some(7), unfinished: None };
        position.take_up(&frames(&[1]));
        let first = call(&mut position);
        assert_eq!(first.first, Some(7));
        position.take_up(&frames(&[1]));
        assert_eq!(call(&mut position), first, "the answer never came: the same frame is asked for again");
        position.take_up(&frames(&[2]));
        let other = call(&mut position);
        assert_eq!(other.first, None, "whether 7 is taken is not known");
        assert_ne!(other.request_id, first.request_id);
    }

    fn appended(ids: Vec<String>, next_sequence: u64) -> AppendedFrames {
        let execution_id = ff_core::types::ExecutionId::mint();
        AppendedFrames { execution_id, ids, next_sequence, replayed: false }
    }

    #[test]
    fn frames_given_again_go_on_where_they_stopped() {
        let mut position = Position { next: Some(0), unfinished: None };
        position.take_up(&frames(&[1; 65]));
        call(&mut position);
        let ids = (0..64).map(|n| format!("9-{n}")).collect();
        position.answered(appended(ids, 64));
        let second = call(&mut position);
        position.take_up(&frames(&[1; 65]));
        let (rest, again) = position.next_call().expect("one is left");
        assert_eq!((rest.len(), again), (1, second));
        position.answered(appended(vec!["9-64".to_owned()], 65));
        assert!(position.next_call().is_none());
        assert_eq!(position.unfinished.expect("it is whole").outcomes[64].frame_count, 65);
    }
}
