//! The lines between two layers: from rows on the left to rows on the right.

use std::collections::{BTreeMap, BTreeSet};

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// The arrow behind the last track.
const HEAD: usize = 3;

/// Rows on the left that lead to the same rows on the right: they share a track, a column with one vertical line.
#[derive(Debug)]
struct Group {
    from: BTreeSet<usize>,
    to: BTreeSet<usize>,
}

impl Group {
    /// It goes straight on and needs no track.
    fn is_straight(&self) -> bool {
        self.from.len() == 1 && self.from == self.to
    }
}

#[derive(Clone, Copy, Default)]
struct Cell {
    lines: u8,
    /// What crosses here is connected.
    joined: bool,
}

/// The space between two layers.
pub struct Gutter {
    tracks: usize,
    cells: Vec<Vec<Cell>>,
    /// Rows an arrow arrives at.
    arrivals: BTreeSet<usize>,
}

impl Gutter {
    /// The lines for these pairs of rows; nothing when they cannot be drawn without saying more than there is.
    pub fn new(pairs: &[(usize, usize)], height: usize) -> Option<Self> {
        let groups = groups(pairs);
        let order = order(&groups)?;
        let tracks = order.len();
        let mut cells = vec![vec![Cell::default(); tracks]; height];
        for group in groups.iter().filter(|group| group.is_straight()) {
            let row = *group.from.first()?;
            cells[row].iter_mut().for_each(|cell| cell.lines |= LEFT | RIGHT);
        }
        for (track, &group) in order.iter().enumerate() {
            let group = &groups[group];
            let rows: BTreeSet<usize> = group.from.union(&group.to).copied().collect();
            let (first, last) = (*rows.first()?, *rows.last()?);
            for (row, line) in cells.iter_mut().enumerate().take(last + 1).skip(first) {
                let cell = &mut line[track];
                cell.lines |= if row > first { UP } else { 0 } | if row < last { DOWN } else { 0 };
                cell.joined |= rows.contains(&row);
            }
            for &row in &group.from {
                cells[row][track].lines |= LEFT;
                cells[row][..track].iter_mut().for_each(|cell| cell.lines |= LEFT | RIGHT);
            }
            for &row in &group.to {
                cells[row][track].lines |= RIGHT;
                cells[row][track + 1..].iter_mut().for_each(|cell| cell.lines |= LEFT | RIGHT);
            }
        }
        Some(Self { tracks, cells, arrivals: pairs.iter().map(|(_, to)| *to).collect() })
    }

    /// How many columns it takes.
    pub fn width(&self) -> usize {
        self.tracks + HEAD
    }

    /// One row of it; `head` says that a node stands behind it, and not an edge on its way.
    pub fn line(&self, row: usize, head: bool) -> String {
        let mut line: String = self.cells[row].iter().map(glyph).collect();
        line.push_str(match (self.arrivals.contains(&row), head) {
            (true, true) => "─▶ ",
            (true, false) => "───",
            (false, _) => "   ",
        });
        line
    }
}

fn glyph(cell: &Cell) -> char {
    let vertical = cell.lines & (UP | DOWN);
    // Lines that cross without meeting: the upright one is in front.
    if vertical != 0 && !cell.joined {
        return '│';
    }
    let (up, down) = (cell.lines & UP != 0, cell.lines & DOWN != 0);
    let (left, right) = (cell.lines & LEFT != 0, cell.lines & RIGHT != 0);
    match (up, down, left, right) {
        (false, false, false, false) => ' ',
        (false, false, ..) => '─',
        (true, true, false, false) => '│',
        (true, true, true, false) => '┤',
        (true, true, false, true) => '├',
        (true, true, true, true) => '┼',
        (false, true, true, true) => '┬',
        (false, true, true, false) => '┐',
        (false, true, false, _) => '┌',
        (true, false, true, true) => '┴',
        (true, false, true, false) => '┘',
        (true, false, false, _) => '└',
    }
}

fn groups(pairs: &[(usize, usize)]) -> Vec<Group> {
    let mut by_source: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for &(from, to) in pairs {
        by_source.entry(from).or_default().insert(to);
    }
    let mut by_targets: BTreeMap<BTreeSet<usize>, BTreeSet<usize>> = BTreeMap::new();
    for (from, to) in by_source {
        by_targets.entry(to).or_default().insert(from);
    }
    by_targets.into_iter().map(|(to, from)| Group { from, to }).collect()
}

/// The groups that need a track, in the order of their tracks; nothing when there is no honest order.
///
/// A line that arrives at a row begins behind the line that leaves the node on the left in that row. Of two groups that lead to
/// the same row, the one that leads to others as well comes first: what joins its line later does not seem to go where it goes.
fn order(groups: &[Group]) -> Option<Vec<usize>> {
    let upright: Vec<usize> = (0..groups.len()).filter(|&at| !groups[at].is_straight()).collect();
    let mut after: BTreeMap<usize, BTreeSet<usize>> = upright.iter().map(|&at| (at, BTreeSet::new())).collect();
    for &one in &upright {
        for &other in upright.iter().filter(|&&other| other != one) {
            let (a, b) = (&groups[one], &groups[other]);
            if !a.to.is_disjoint(&b.from) {
                after.entry(one).or_default().insert(other);
            }
            if !a.to.is_disjoint(&b.to) && b.to.len() > 1 {
                if a.to.len() > 1 {
                    return None;
                }
                after.entry(one).or_default().insert(other);
            }
        }
    }
    let mut order = Vec::with_capacity(upright.len());
    while !after.is_empty() {
        let next = *after.iter().find(|(_, waits_for)| waits_for.is_empty())?.0;
        after.remove(&next);
        after.values_mut().for_each(|waits_for| {
            waits_for.remove(&next);
        });
        order.push(next);
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(pairs: &[(usize, usize)], height: usize) -> Option<Vec<String>> {
        let gutter = Gutter::new(pairs, height)?;
        Some((0..height).map(|row| gutter.line(row, true).trim_end().to_owned()).collect())
    }

    #[test]
    fn lines_that_cross_are_not_joined() {
        // The first goes down two rows past the second, which goes straight on.
        let lines = drawn(&[(0, 2), (1, 1)], 3).expect("it can be drawn");
        assert_eq!(lines, ["┐", "│─▶", "└─▶"]);
    }

    #[test]
    fn who_swaps_rows_does_not_meet() {
        assert!(drawn(&[(0, 1), (1, 0)], 2).is_none());
    }

    #[test]
    fn a_line_that_joins_later_goes_nowhere_else() {
        let lines = drawn(&[(0, 0), (0, 1), (2, 1)], 3).expect("it can be drawn");
        assert_eq!(lines, ["┬──▶", "└┬─▶", "─┘"]);
    }
}
