//! How much of what there is to try a run tries: a moving sample, everything, or everything many times.

use std::time::SystemTime;

/// How much a run tries; `FF_TIER` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Every change: a sample that moves with the day, or with `FF_SAMPLE`.
    Quick,
    /// Once per part: everything the quick tier samples.
    Wide,
    /// By command: many times everything.
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

/// As many rounds as the tier runs.
pub fn rounds<T>(quick: T, wide: T, long: T) -> T {
    match tier() {
        Tier::Quick => quick,
        Tier::Wide => wide,
        Tier::Long => long,
    }
}

/// What decides the sample: `FF_SAMPLE`, else the day. The same number tries the same again.
pub fn sample() -> u64 {
    if let Ok(text) = std::env::var("FF_SAMPLE") {
        return text.parse().unwrap_or_else(|_| panic!("FF_SAMPLE={text} is not a number"));
    }
    let days = |elapsed: std::time::Duration| elapsed.as_secs() / 86_400;
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, days)
}

/// True when the item of this name is tried: always but in the quick tier, where one in `share` is. Over `share` samples in a row
/// every item is tried once.
pub fn is_sampled(name: &str, share: u64) -> bool {
    tier() > Tier::Quick || (spread(name) + sample()).is_multiple_of(share)
}

/// A number for a name that has nothing to do with its neighbours'.
fn spread(name: &str) -> u64 {
    // FNV-1a: stable over versions and machines, which the standard library's hasher does not promise.
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
