//! Which lanes are told apart: a bounded number, so that a page does not grow with what users name their lanes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use ff_engine::inventory::LaneKey;

/// Lanes that have labels of their own.
const LANES_MAX: usize = 200;
/// What all others are called.
const OTHER: &str = "other";

/// The lanes told apart so far. One that has been is from then on, since counters must not fall.
#[derive(Debug, Default)]
pub struct LaneNames(Mutex<BTreeSet<LaneKey>>);

impl LaneNames {
    /// The same numbers by the lanes that are told apart; the rest is put together.
    pub fn fold<V: Clone + Default>(
        &self,
        lanes: &BTreeMap<LaneKey, V>,
        add: impl Fn(&mut V, &V),
    ) -> BTreeMap<LaneKey, V> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut folded: BTreeMap<LaneKey, V> = BTreeMap::new();
        for (lane, value) in lanes {
            let apart = known.contains(lane) || (known.len() < LANES_MAX && known.insert(lane.clone()));
            let lane = if apart { lane.clone() } else { (OTHER.to_owned(), OTHER.to_owned()) };
            add(folded.entry(lane).or_default(), value);
        }
        folded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_beyond_the_limit_are_one_and_stay_so() {
        let names = LaneNames::default();
        let lanes = |range: std::ops::Range<usize>| -> BTreeMap<LaneKey, u64> {
            range.map(|n| (("ns".to_owned(), format!("lane-{n:04}")), 1)).collect()
        };
        let sum = |sum: &mut u64, value: &u64| *sum += value;
        assert_eq!(names.fold(&lanes(0..150), sum).len(), 150);
        let folded = names.fold(&lanes(0..300), sum);
        assert_eq!(folded.len(), LANES_MAX + 1);
        assert_eq!(folded[&("other".to_owned(), "other".to_owned())], 100);
        // Lanes that went leave no room: a name does not change its meaning.
        assert_eq!(names.fold(&lanes(250..300), sum), BTreeMap::from([(("other".to_owned(), "other".to_owned()), 50)]));
    }
}
