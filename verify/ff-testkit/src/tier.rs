//! How many of the possible cases a run tries: a changing sample, all, or all many times.

use std::time::SystemTime;

/// How many cases a run tries; set with `FF_TIER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// For every change: a sample that depends on the day, or on `FF_SAMPLE`.
    Quick,
    /// For larger changes: everything that the quick tier samples.
    Wide,
    /// On demand: everything many times.
    Long,
}

/// The tier of this run.
pub fn tier() -> Tier {
    match std::env::var("FF_TIER").as_deref() {
        Err(_) | Ok("" | "quick") => Tier::Quick,
        Ok("wide") => Tier::Wide,
        Ok("long") => Tier::Long,
        Ok(other) => panic!("FF_TIER is {other}; it must be quick, wide or long"),
    }
}

/// The number of rounds for the tier.
pub fn rounds<T>(quick: T, wide: T, long: T) -> T {
    match tier() {
        Tier::Quick => quick,
        Tier::Wide => wide,
        Tier::Long => long,
    }
}

/// The number that selects the sample: `FF_SAMPLE`, else the day. The same number selects the same sample.
pub fn sample() -> u64 {
    if let Ok(text) = std::env::var("FF_SAMPLE") {
        return text.parse().unwrap_or_else(|_| panic!("FF_SAMPLE={text} is not a number"));
    }
    let days = |elapsed: std::time::Duration| elapsed.as_secs() / 86_400;
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, days)
}

/// True if the item with this name is tried. In the quick tier one in `share` items is; otherwise every item. In
/// `share` consecutive samples every item is tried once.
pub fn is_sampled(name: &str, share: u64) -> bool {
    tier() > Tier::Quick || (spread(name) + sample()).is_multiple_of(share)
}

/// A number for a name, unrelated to the numbers of similar names.
fn spread(name: &str) -> u64 {
    // FNV-1a: the same in all versions and on all machines, unlike the standard library's hasher.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_sampled_on_different_days() {
        let shares: Vec<u64> = (0..100).map(|n| spread(&format!("item {n}")) % 10).collect();
        for day in 0..10 {
            let tried = shares.iter().filter(|share| (**share + day).is_multiple_of(10)).count();
            assert!((3..=20).contains(&tried), "{tried} of 100 on day {day}");
        }
    }
}
