//! Directed graphs: an order in which every edge leads forward, or the cycle that prevents one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The nodes of a cycle. Each has an edge to the next, and the last one to the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<usize>);

/// Orders the nodes `0..count` so that every edge `(from, to)` leads to a later node. Of several possible next nodes,
/// the lowest number comes first.
///
/// ```
/// use ff_core::graph::{order, Cycle};
/// assert_eq!(order(3, &[(2, 0), (0, 1)]), Ok(vec![2, 0, 1]));
/// assert_eq!(order(3, &[(0, 1), (1, 0)]), Err(Cycle(vec![0, 1])));
/// ```
pub fn order(count: usize, edges: &[(usize, usize)]) -> Result<Vec<usize>, Cycle> {
    let mut after = vec![Vec::new(); count];
    let mut waits = vec![0_usize; count];
    for &(from, to) in edges {
        after[from].push(to);
        waits[to] += 1;
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..count).filter(|&node| waits[node] == 0).map(Reverse).collect();
    let mut out = Vec::with_capacity(count);
    while let Some(Reverse(node)) = ready.pop() {
        out.push(node);
        for &next in &after[node] {
            waits[next] -= 1;
            if waits[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    if out.len() == count { Ok(out) } else { Err(find_cycle(&after, &waits)) }
}

/// Every waiting node has a waiting upstream, so a walk upstream must return to a node it has visited.
fn find_cycle(after: &[Vec<usize>], waits: &[usize]) -> Cycle {
    let mut before = vec![None; waits.len()];
    for (node, targets) in after.iter().enumerate() {
        if waits[node] > 0 {
            for &target in targets {
                before[target].get_or_insert(node);
            }
        }
    }
    let mut at = waits.iter().position(|&n| n > 0).expect("a node waits: not all were ordered");
    let mut met = vec![false; waits.len()];
    while !met[at] {
        met[at] = true;
        at = before[at].expect("a waiting node has a waiting upstream");
    }
    let first = at;
    let mut cycle = vec![first];
    at = before[first].expect("a waiting node has a waiting upstream");
    while at != first {
        cycle.push(at);
        at = before[at].expect("a waiting node has a waiting upstream");
    }
    cycle.reverse();
    let lowest = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(place, _)| place);
    cycle.rotate_left(lowest);
    Cycle(cycle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_node_that_leads_to_itself_is_a_cycle() {
        assert_eq!(order(2, &[(1, 1)]), Err(Cycle(vec![1])));
    }

    #[test]
    fn nodes_behind_a_cycle_are_not_part_of_it() {
        assert_eq!(order(5, &[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]), Err(Cycle(vec![1, 2, 3])));
    }

    proptest! {
        #[test]
        fn every_edge_leads_forward_or_a_real_cycle_is_named(
            (count, edges) in (1_usize..30).prop_flat_map(|n| (Just(n), proptest::collection::vec((0..n, 0..n), 0..60)))
        ) {
            match order(count, &edges) {
                Ok(list) => {
                    let mut place = vec![usize::MAX; count];
                    for (at, node) in list.iter().enumerate() {
                        place[*node] = at;
                    }
                    prop_assert_eq!(list.len(), count);
                    for (from, to) in edges {
                        prop_assert!(place[from] < place[to]);
                    }
                }
                Err(Cycle(nodes)) => {
                    for (at, node) in nodes.iter().enumerate() {
                        let next = nodes[(at + 1) % nodes.len()];
                        prop_assert!(edges.contains(&(*node, next)));
                    }
                }
            }
        }
    }
}
