//! Random values of every generated type: small, but with edge cases such as empty, binary and largest values.

use std::collections::BTreeMap;

use ff_core::types::{
    AttemptId, AttemptIndex, BudgetId, EdgeId, ExecutionId, FlowId, LaneId, LeaseEpoch, LeaseId, Namespace,
    QuotaPolicyId, SignalId, SuspensionId, TimestampMs, WaitpointId, WorkerId, WorkerInstanceId,
};
use uuid::Uuid;

use crate::wire::{Bytes, DecodeError};

/// One generated type: how to create an encoded sample, and how to read it and write it again.
pub struct Specimen {
    pub name: &'static str,
    /// An encoded random value.
    pub encode: fn(&mut Rng) -> Vec<u8>,
    /// Decodes and encodes again. Equal bytes mean that nothing was lost.
    pub recode: fn(&[u8]) -> Result<Vec<u8>, DecodeError>,
}

impl Specimen {
    /// The specimen of a type.
    pub const fn of<T: Sample + crate::wire::Wire>(name: &'static str) -> Self {
        fn encode<T: Sample + crate::wire::Wire>(rng: &mut Rng) -> Vec<u8> {
            let mut out = Vec::new();
            T::sample(rng).write(&mut out);
            out
        }
        fn recode<T: crate::wire::Wire>(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
            let mut out = Vec::new();
            let mut input = crate::wire::Reader::new(bytes);
            let value = T::read(&mut input)?;
            input.finish()?;
            value.write(&mut out);
            Ok(out)
        }
        Self { name, encode: encode::<T>, recode: recode::<T> }
    }
}

/// A small seeded generator, so that a failing sample can be reproduced.
pub struct Rng(u64);

impl Rng {
    /// The generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next random number (splitmix64).
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }
}

/// A type with random values.
pub trait Sample: Sized {
    fn sample(rng: &mut Rng) -> Self;
}

/// The largest integer that a Lua number holds exactly.
const INTEGER_MAX: i64 = (1 << 53) - 1;

impl Sample for i64 {
    fn sample(rng: &mut Rng) -> Self {
        match rng.below(8) {
            0 => 0,
            1 => INTEGER_MAX,
            2 => -INTEGER_MAX,
            3 => -(rng.below(200) as i64),
            _ => (rng.draw() & INTEGER_MAX as u64) as i64 >> rng.below(53),
        }
    }
}

impl Sample for bool {
    fn sample(rng: &mut Rng) -> Self {
        rng.below(2) == 1
    }
}

impl Sample for Bytes {
    fn sample(rng: &mut Rng) -> Self {
        let len = [0, 1, 5, 31, 32, 255, 256, 300][rng.below(8) as usize];
        Bytes((0..len).map(|_| rng.draw() as u8).collect())
    }
}

impl Sample for String {
    fn sample(rng: &mut Rng) -> Self {
        let len = [0, 1, 5, 16, 31, 32, 80][rng.below(7) as usize];
        let letters = ['a', 'Z', '0', ' ', '.', ':', '\n', '\0', 'ä', '漢', '🦀'];
        (0..len).map(|_| letters[rng.below(letters.len() as u64) as usize]).collect()
    }
}

impl Sample for Uuid {
    fn sample(rng: &mut Rng) -> Self {
        Uuid::from_u64_pair(rng.draw(), rng.draw())
    }
}

macro_rules! uuid_samples {
    ($($name:ident),+) => { $(
        impl Sample for $name {
            fn sample(rng: &mut Rng) -> Self {
                $name::from_uuid(Uuid::sample(rng))
            }
        }
    )+ };
}
uuid_samples!(
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

macro_rules! name_samples {
    ($($name:ident),+) => { $(
        impl Sample for $name {
            fn sample(rng: &mut Rng) -> Self {
                $name::new(format!("n-{}", rng.below(1_000)))
            }
        }
    )+ };
}
name_samples!(LaneId, Namespace, WorkerId, WorkerInstanceId);

impl Sample for TimestampMs {
    fn sample(rng: &mut Rng) -> Self {
        TimestampMs(i64::sample(rng).abs())
    }
}

impl Sample for AttemptIndex {
    fn sample(rng: &mut Rng) -> Self {
        AttemptIndex::new(rng.draw() as u32)
    }
}

impl Sample for LeaseEpoch {
    fn sample(rng: &mut Rng) -> Self {
        LeaseEpoch::new(i64::sample(rng).unsigned_abs())
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(rng: &mut Rng) -> Self {
        bool::sample(rng).then(|| T::sample(rng))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(rng: &mut Rng) -> Self {
        (0..rng.below(4)).map(|_| T::sample(rng)).collect()
    }
}

impl<K: Sample + Ord, V: Sample> Sample for BTreeMap<K, V> {
    fn sample(rng: &mut Rng) -> Self {
        (0..rng.below(4)).map(|_| (K::sample(rng), V::sample(rng))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::SPECIMENS;

    #[test]
    fn every_generated_type_reads_back_as_written() {
        assert!(SPECIMENS.len() > 10, "only {} types", SPECIMENS.len());
        for specimen in SPECIMENS {
            for seed in 0..64 {
                let bytes = (specimen.encode)(&mut Rng::new(seed));
                let again = (specimen.recode)(&bytes).unwrap_or_else(|e| panic!("{} seed {seed}: {e}", specimen.name));
                assert_eq!(bytes, again, "{} seed {seed}", specimen.name);
            }
        }
    }
}
