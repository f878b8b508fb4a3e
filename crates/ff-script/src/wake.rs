//! The announcements of a partition on its channel.

use ff_core::types::{BudgetId, ExecutionId};
use uuid::Uuid;

use crate::wire::{DecodeError, Reader, Wire};

/// One announcement of a partition.
#[derive(Clone, Debug, PartialEq)]
pub enum Wake {
    /// A queue of a lane has work again, or a better head.
    Ready {
        /// The lane as `<namespace>/<lane>`.
        lane: String,
        /// The requirement set's queue.
        queue: String,
        /// The score of its head; lower scores go first.
        score: f64,
    },
    /// The partition's next timer is due earlier than before.
    Timer { at_ms: i64 },
    /// Events were appended.
    Events,
    /// An execution that a caller waits for has ended.
    Done { execution_id: ExecutionId },
    /// Frames were written, or an attempt of a followed execution ended or started.
    Frames { execution_id: ExecutionId },
    /// Workers, servers or lanes changed, or effects are owed to other partitions.
    Fleet,
    /// The process with this worker instance id is asked to report that it is alive.
    Challenge {
        instance: String,
        /// Repeated in the report.
        nonce: Uuid,
    },
    /// The process with this worker instance id reported that it is alive.
    Answered {
        instance: String,
        /// The nonce of the challenge.
        nonce: Uuid,
    },
    /// A full holder set has a free slot again.
    Slot {
        set: String,
        /// The number of free slots.
        free: i64,
    },
    /// Deadlines of holders have passed, so the partitions of their executions must be asked.
    Overdue { set: String },
    /// A budget that refused something has room again, or waits for its next reset.
    Budget { budget_id: BudgetId },
    /// A webhook is owed to a receiver outside.
    Webhook,
    /// An access token was revoked, so cached tokens must be dropped.
    Access,
    /// Another process has taken over this worker instance id.
    Replaced { instance: String },
    /// An operator assigned this grant to a worker.
    Offered { instance: String, execution_id: ExecutionId, grant_id: Uuid },
}

impl Wake {
    /// The entries of one message. Unknown kinds are skipped, because a newer library may send more.
    pub fn read_all(payload: &[u8]) -> Result<Vec<Wake>, DecodeError> {
        let mut input = Reader::new(payload);
        let entries = input.list()?;
        let mut wakes = Vec::with_capacity(entries.min(1_024));
        for index in 0..entries {
            if let Some(wake) = read_one(&mut input).map_err(|error| error.within(format!("[{index}]")))? {
                wakes.push(wake);
            }
        }
        input.finish()?;
        Ok(wakes)
    }
}

/// The items of one entry. Extra items are skipped.
struct Items<'a, 'b> {
    input: &'b mut Reader<'a>,
    len: usize,
    at: usize,
}

impl Items<'_, '_> {
    fn next<T: Wire>(&mut self) -> Result<T, DecodeError> {
        if self.at == self.len {
            return Err(DecodeError::new(format!("item {} is missing", self.at)));
        }
        self.at += 1;
        T::read(self.input)
    }
}

fn read_one(input: &mut Reader<'_>) -> Result<Option<Wake>, DecodeError> {
    let len = input.list()?;
    let mut items = Items { input, len, at: 0 };
    let kind: String = items.next()?;
    let wake = match kind.as_str() {
        "ready" => {
            let (lane, queue) = (items.next()?, items.next()?);
            items.at += 1;
            Wake::Ready { lane, queue, score: items.input.number()? }
        }
        "timer" => Wake::Timer { at_ms: items.next()? },
        "events" => Wake::Events,
        "done" => Wake::Done { execution_id: items.next()? },
        "frames" => Wake::Frames { execution_id: items.next()? },
        "fleet" => Wake::Fleet,
        "webhook" => Wake::Webhook,
        "access" => Wake::Access,
        "challenge" => Wake::Challenge { instance: items.next()?, nonce: items.next()? },
        "answered" => Wake::Answered { instance: items.next()?, nonce: items.next()? },
        "replaced" => Wake::Replaced { instance: items.next()? },
        "offered" => Wake::Offered { instance: items.next()?, execution_id: items.next()?, grant_id: items.next()? },
        "slot" => Wake::Slot { set: items.next()?, free: items.next()? },
        "budget" => Wake::Budget { budget_id: items.next()? },
        "overdue" => Wake::Overdue { set: items.next()? },
        _ => {
            for _ in items.at..items.len {
                items.input.skip()?;
            }
            return Ok(None);
        }
    };
    for _ in items.at..items.len {
        items.input.skip()?;
    }
    Ok(Some(wake))
}

#[cfg(test)]
mod tests {
    use rmpv::Value;

    use super::*;

    fn packed(entries: Vec<Vec<Value>>) -> Vec<u8> {
        let mut out = Vec::new();
        let list = Value::Array(entries.into_iter().map(Value::Array).collect());
        rmpv::encode::write_value(&mut out, &list).unwrap();
        out
    }

    #[test]
    fn each_kind_is_read_and_unknown_ones_are_left_out() {
        let id = ExecutionId::mint();
        let payload = packed(vec![
            vec!["ready".into(), "default/default".into(), "-".into(), Value::from(-9_000_000_000_000_000_i64)],
            vec!["ready".into(), "a/b".into(), "q".into(), Value::from(1.5)],
            vec!["timer".into(), Value::from(1_700_000_000_000_i64)],
            vec!["events".into()],
            vec!["from_the_future".into(), Value::from(1)],
            vec!["done".into(), id.to_string().into()],
            vec!["fleet".into()],
            vec!["challenge".into(), "w-1".into(), id.to_string().into()],
            vec!["answered".into(), "w-1".into(), id.to_string().into()],
            vec!["replaced".into(), "w-1".into()],
            vec!["offered".into(), "w-1".into(), id.to_string().into(), id.to_string().into()],
            vec!["slot".into(), "lane:a/b".into(), Value::from(2)],
            vec!["overdue".into(), "lane:a/b".into()],
        ]);
        assert_eq!(
            Wake::read_all(&payload).unwrap(),
            vec![
                Wake::Ready { lane: "default/default".into(), queue: "-".into(), score: -9e15 },
                Wake::Ready { lane: "a/b".into(), queue: "q".into(), score: 1.5 },
                Wake::Timer { at_ms: 1_700_000_000_000 },
                Wake::Events,
                Wake::Done { execution_id: id },
                Wake::Fleet,
                Wake::Challenge { instance: "w-1".into(), nonce: *id.as_uuid() },
                Wake::Answered { instance: "w-1".into(), nonce: *id.as_uuid() },
                Wake::Replaced { instance: "w-1".into() },
                Wake::Offered { instance: "w-1".into(), execution_id: id, grant_id: *id.as_uuid() },
                Wake::Slot { set: "lane:a/b".into(), free: 2 },
                Wake::Overdue { set: "lane:a/b".into() },
            ]
        );
    }

    #[test]
    fn a_message_cut_short_is_refused_with_its_place() {
        let error = Wake::read_all(&packed(vec![vec!["fleet".into()], vec!["timer".into()]])).unwrap_err();
        assert_eq!(error.to_string(), "[1]: item 1 is missing");
    }
}
