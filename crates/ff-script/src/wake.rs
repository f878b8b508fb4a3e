//! What a partition announces on its channel.

use ff_core::types::{BudgetId, ExecutionId};
use rmpv::ValueRef;
use uuid::Uuid;

use crate::wire::{DecodeError, Wire, parse};

/// One thing a partition announced.
#[derive(Clone, Debug, PartialEq)]
pub enum Wake {
    /// A queue of a lane has work again, or a better head.
    Ready {
        /// The lane as `<namespace>/<lane>`.
        lane: String,
        /// The requirement set's queue.
        queue: String,
        /// The score of its head; lower goes first.
        score: f64,
    },
    /// The partition's next timer is due earlier than before.
    Timer {
        /// When.
        at_ms: i64,
    },
    /// Events were appended.
    Events,
    /// An execution someone waits for has ended.
    Done {
        /// The execution.
        execution_id: ExecutionId,
    },
    /// Frames were written, or an attempt of a followed execution ended or started.
    Frames {
        /// The execution.
        execution_id: ExecutionId,
    },
    /// Workers, servers or lanes changed, or effects are owed to other partitions.
    Fleet,
    /// Whoever holds this worker instance id is asked to say that it lives.
    Challenge {
        /// The instance id.
        instance: String,
        /// What the answer repeats.
        nonce: Uuid,
    },
    /// The holder of this worker instance id answered.
    Answered {
        /// The instance id.
        instance: String,
        /// What the challenge asked with.
        nonce: Uuid,
    },
    /// A full holder set has room again.
    Slot {
        /// The holder set.
        set: String,
        /// How many fit now.
        free: i64,
    },
    /// Deadlines of holders have passed: the partitions of their executions are to be asked.
    Overdue {
        /// The holder set.
        set: String,
    },
    /// A budget that refused something has room again, or waits for its next reset.
    Budget {
        /// The budget.
        budget_id: BudgetId,
    },
    /// A webhook is owed to a receiver outside.
    Webhook,
    /// An access token was revoked: what is remembered of tokens is to be forgotten.
    Access,
    /// Another process has taken this worker instance id over.
    Replaced {
        /// The instance id.
        instance: String,
    },
    /// An operator gave a worker this grant.
    Offered {
        /// The worker's instance id.
        instance: String,
        /// The execution.
        execution_id: ExecutionId,
        /// The grant.
        grant_id: Uuid,
    },
}

impl Wake {
    /// The entries of one message. Kinds unknown here are left out: a newer library may say more.
    pub fn read_all(payload: &[u8]) -> Result<Vec<Wake>, DecodeError> {
        let value = parse(payload)?;
        let ValueRef::Array(entries) = &value else {
            return Err(DecodeError::unexpected("a list", &value));
        };
        let mut wakes = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            if let Some(wake) = read_one(entry).map_err(|error| error.within(format!("[{index}]")))? {
                wakes.push(wake);
            }
        }
        Ok(wakes)
    }
}

fn read_one(entry: &ValueRef<'_>) -> Result<Option<Wake>, DecodeError> {
    let ValueRef::Array(items) = entry else {
        return Err(DecodeError::unexpected("a list", entry));
    };
    let item = |at: usize| items.get(at).ok_or_else(|| DecodeError::new(format!("item {at} is missing")));
    Ok(Some(match String::read(item(0)?)?.as_str() {
        "ready" => {
            Wake::Ready { lane: String::read(item(1)?)?, queue: String::read(item(2)?)?, score: number(item(3)?)? }
        }
        "timer" => Wake::Timer { at_ms: i64::read(item(1)?)? },
        "events" => Wake::Events,
        "done" => Wake::Done { execution_id: ExecutionId::read(item(1)?)? },
        "frames" => Wake::Frames { execution_id: ExecutionId::read(item(1)?)? },
        "fleet" => Wake::Fleet,
        "webhook" => Wake::Webhook,
        "access" => Wake::Access,
        "challenge" => Wake::Challenge { instance: String::read(item(1)?)?, nonce: Uuid::read(item(2)?)? },
        "answered" => Wake::Answered { instance: String::read(item(1)?)?, nonce: Uuid::read(item(2)?)? },
        "replaced" => Wake::Replaced { instance: String::read(item(1)?)? },
        "offered" => Wake::Offered {
            instance: String::read(item(1)?)?,
            execution_id: ExecutionId::read(item(2)?)?,
            grant_id: Uuid::read(item(3)?)?,
        },
        "slot" => Wake::Slot { set: String::read(item(1)?)?, free: i64::read(item(2)?)? },
        "budget" => Wake::Budget { budget_id: BudgetId::read(item(1)?)? },
        "overdue" => Wake::Overdue { set: String::read(item(1)?)? },
        _ => return Ok(None),
    }))
}

fn number(value: &ValueRef<'_>) -> Result<f64, DecodeError> {
    match value {
        ValueRef::Integer(integer) => integer.as_f64().ok_or_else(|| DecodeError::unexpected("a number", value)),
        ValueRef::F64(number) => Ok(*number),
        other => Err(DecodeError::unexpected("a number", other)),
    }
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
