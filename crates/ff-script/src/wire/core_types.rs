//! Ids, counters and words of `ff-core` on the wire.

use ff_core::types::{
    AttemptId, AttemptIndex, BudgetId, EdgeId, ExecutionId, FlowId, LaneId, LeaseEpoch, LeaseId, Namespace,
    QuotaPolicyId, SignalId, SuspensionId, TimestampMs, WaitpointId, WorkerId, WorkerInstanceId,
};
use uuid::Uuid;

use super::{DecodeError, Reader, Wire};

macro_rules! uuid_ids {
    ($($name:ident),+) => { $(
        impl Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                self.as_uuid().write(out);
            }
            fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Uuid::read(input).map($name::from_uuid)
            }
        }
    )+ };
}

uuid_ids!(
    ExecutionId,
    AttemptId,
    LeaseId,
    FlowId,
    EdgeId,
    BudgetId,
    QuotaPolicyId,
    WaitpointId,
    SuspensionId,
    SignalId
);

macro_rules! text_ids {
    ($($name:ident),+) => { $(
        impl Wire for $name {
            fn write(&self, out: &mut Vec<u8>) {
                super::write_bytes(out, self.as_str().as_bytes());
            }
            fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
                $name::try_new(String::read(input)?).map_err(|error| DecodeError::new(error.to_string()))
            }
        }
    )+ };
}

text_ids!(LaneId, Namespace, WorkerId, WorkerInstanceId);

impl Wire for TimestampMs {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        i64::read(input).map(TimestampMs)
    }
}

impl Wire for AttemptIndex {
    fn write(&self, out: &mut Vec<u8>) {
        i64::from(self.get()).write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let index = i64::read(input)?;
        u32::try_from(index)
            .map(AttemptIndex::new)
            .map_err(|_| DecodeError::new(format!("{index} is not an attempt index")))
    }
}

impl Wire for LeaseEpoch {
    fn write(&self, out: &mut Vec<u8>) {
        i64::try_from(self.get()).expect("an epoch is below 2^53").write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let epoch = i64::read(input)?;
        u64::try_from(epoch).map(LeaseEpoch::new).map_err(|_| DecodeError::new(format!("{epoch} is not an epoch")))
    }
}
