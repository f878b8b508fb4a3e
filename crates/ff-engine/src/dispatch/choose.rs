//! Which lane and partition a worker should ask next: a pure function of what is known.

/// A lane as one worker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneView {
    /// The lane's share among the worker's lanes.
    pub weight: i64,
    /// What the lane has saved up; see [`choose`].
    pub credit: i64,
    /// The best head known among its partitions: score (lower goes first) and partition.
    pub best: Option<(i64, u16)>,
}

/// Picks a lane by smooth weighted round robin over the lanes that have work, and updates every lane's credit.
///
/// Each lane with work earns its weight; the richest is chosen and pays what all earned together. Over any run in which the
/// same lanes have work, each is chosen in proportion to its weight, and a lane without work saves nothing.
pub fn choose(lanes: &mut [LaneView]) -> Option<usize> {
    let total: i64 = lanes.iter().filter(|lane| lane.best.is_some()).map(|lane| lane.weight).sum();
    let mut chosen: Option<usize> = None;
    for index in 0..lanes.len() {
        if lanes[index].best.is_none() {
            lanes[index].credit = 0;
            continue;
        }
        lanes[index].credit += lanes[index].weight;
        if chosen.is_none_or(|best| lanes[index].credit > lanes[best].credit) {
            chosen = Some(index);
        }
    }
    if let Some(index) = chosen {
        lanes[index].credit -= total;
    }
    chosen
}

/// The best of a lane's partitions: the lowest score, then the lowest number.
#[must_use]
pub fn best_head(heads: impl Iterator<Item = (i64, u16)>) -> Option<(i64, u16)> {
    heads.min()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lane(weight: i64, best: Option<(i64, u16)>) -> LaneView {
        LaneView { weight, credit: 0, best }
    }

    #[test]
    fn nothing_is_chosen_when_no_lane_has_work() {
        assert_eq!(choose(&mut [lane(1, None), lane(5, None)]), None);
        assert_eq!(choose(&mut []), None);
    }

    proptest! {
        #[test]
        fn lanes_with_work_are_chosen_in_proportion_to_their_weights(weights in prop::collection::vec(1_i64..=20, 1..=8)) {
            let mut lanes: Vec<LaneView> = weights.iter().map(|w| lane(*w, Some((0, 0)))).collect();
            let total: i64 = weights.iter().sum();
            let mut chosen = vec![0_i64; lanes.len()];
            for _ in 0..total * 3 {
                let index = choose(&mut lanes).expect("every lane has work");
                chosen[index] += 1;
            }
            for (count, weight) in chosen.iter().zip(&weights) {
                prop_assert_eq!(*count, weight * 3);
            }
        }

        #[test]
        fn only_a_lane_with_work_is_chosen_and_none_starves(
            work in prop::collection::vec(prop::option::of((0_i64..100, 0_u16..16)), 1..=8),
            weights in prop::collection::vec(1_i64..=9, 8),
        ) {
            let mut lanes: Vec<LaneView> = work.iter().zip(&weights).map(|(best, w)| lane(*w, *best)).collect();
            let with_work: Vec<usize> = (0..lanes.len()).filter(|i| lanes[*i].best.is_some()).collect();
            let total: i64 = with_work.iter().map(|i| weights[*i]).sum();
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..total {
                match choose(&mut lanes) {
                    Some(index) => {
                        prop_assert!(lanes[index].best.is_some());
                        seen.insert(index);
                    }
                    None => prop_assert!(with_work.is_empty()),
                }
            }
            prop_assert_eq!(seen.into_iter().collect::<Vec<_>>(), with_work);
        }

        #[test]
        fn the_best_head_is_the_lowest_score(heads in prop::collection::vec((any::<i64>(), any::<u16>()), 0..20)) {
            prop_assert_eq!(best_head(heads.iter().copied()), heads.iter().copied().min());
        }
    }
}
