//! Follows streams from its cursor, through lost replies, retries and resumes, and reports gaps.

use std::collections::BTreeMap;

use ff_core::types::ExecutionId;
use ff_script::generated::*;

use super::{Actor, Scene};
use crate::request::{Outcome, Reply, Request};

/// The reader's position in one execution.
#[derive(Clone, Default)]
struct Place {
    attempt: i64,
    after: Option<String>,
    /// The next expected sequence.
    next: i64,
}

#[derive(Default)]
pub(crate) struct Reader {
    places: BTreeMap<ExecutionId, Place>,
}

impl Actor for Reader {
    fn name(&self) -> String {
        "reader".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        if scene.board.streams.is_empty() {
            return 200;
        }
        let lately = scene.board.streams.len().saturating_sub(5);
        let id = *scene.rng.pick(&scene.board.streams[lately..]);
        let place = self.places.entry(id).or_default();
        let mut call = ReadStream::new(id, scene.rng.between(1, 4));
        call.attempt_index = Some(place.attempt);
        call.after.clone_from(&place.after);
        scene.tell(id, call);
        scene.rng.between(150, 600)
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        let (Request::ReadStream(call), Outcome::Reply(Reply::ReadStream(page))) = (request, outcome) else { return };
        let ReadStreamReply::Page { frames, more, latest_attempt, closed_at, attempt_index, .. } = page;
        let place = self.places.entry(call.execution_id).or_default();
        // The reply to an earlier request arrived after that of a later one.
        if call.after != place.after || call.attempt_index != Some(place.attempt) || attempt_index.is_none() {
            return;
        }
        for frame in frames {
            if frame.sequence != place.next {
                scene.board.complaints.push(format!(
                    "the reader of {} attempt {} got frame {} instead of {}",
                    call.execution_id, place.attempt, frame.sequence, place.next
                ));
            }
            place.next = frame.sequence + 1;
            place.after = Some(frame.id.clone());
        }
        if closed_at.is_some() && !more && latest_attempt.is_some_and(|latest| latest > place.attempt) {
            *place = Place { attempt: place.attempt + 1, ..Place::default() };
        }
    }
}
