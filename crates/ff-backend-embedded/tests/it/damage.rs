//! A damaged data file causes an error or returns the stored data: never other data, never a crash.

use std::path::Path;

use crate::support::{Fixture, commands, open, options};
use ff_backend_embedded::Embedded;
use ff_script::HostError;

/// A small seeded generator, so that a failing seed can be run again.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed ^ (mixed >> 33)) % n
    }
}

/// Fills a store with every type, including long and large values, and removes enough to leave free pages.
async fn fill(fixture: &Fixture) {
    let big = "b".repeat(9_000);
    for i in 0..60 {
        let (n, key) = (i.to_string(), format!("ff:{i}"));
        let name = |suffix: &str| format!("{key}{suffix}");
        let long = format!("{}{i}", "m".repeat(500));
        fixture
            .run(&[
                &["HSET", &name("h"), "a", &n, "b", "two", "c", &key],
                &["ZADD", "ff:z", &n, &key, "-1", &long],
                &["XADD", "ff:x", "*", "n", &n],
                &["SET", &name("s"), if i % 5 == 0 { &big } else { "small" }],
                &["HSET", "ff:large", &name("f"), &n, &name("g"), &n, &name("h"), &n, &name("i"), &n, &name("j"), &n],
            ])
            .await;
    }
    for i in 0..30 {
        let key = format!("ff:{i}");
        fixture.run(&[&["DEL", &format!("{key}h"), &format!("{key}s")], &["ZREM", "ff:z", &key]]).await;
    }
}

async fn look(
    directory: &Path,
) -> Result<std::collections::BTreeMap<String, ff_backend_embedded::DumpValue>, HostError> {
    let (options, _) = options(directory);
    let fixture = Fixture { host: Embedded::open(options)?, clock: Default::default() };
    let dump = fixture.host.dump().await?;
    // A damaged store that opens must also accept a write.
    fixture
        .call(
            "t_commit",
            commands(&[&["HSET", "ff:new", "f", "v"], &["ZADD", "ff:z", "1", "new"], &["DEL", "ff:large"]]),
        )
        .await?;
    fixture.host.verify().await?;
    Ok(dump)
}

/// The number of the last commit, in both headers. This is the only place where a changed bit yields an older state of
/// the store.
const COMMIT_NUMBER: [std::ops::Range<u64>; 2] = [144..152, 4096 + 144..4096 + 152];

#[tokio::test]
async fn flipped_and_truncated_files_answer_an_error_or_the_truth() {
    let rounds: u64 = ff_testkit::tier::rounds(40, 200, 10_000);
    let first_seed: u64 = std::env::var("FF_DAMAGE_SEED")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| 1_000 * ff_testkit::tier::sample());
    let original = tempfile::tempdir().unwrap();
    let truth = {
        let fixture = open(original.path());
        fill(&fixture).await;
        fixture.host.verify().await.unwrap();
        fixture.host.dump().await.unwrap()
    };
    let pristine = std::fs::read(original.path().join("data.mdb")).unwrap();
    assert_eq!(look(original.path()).await.unwrap(), truth);
    let (mut refused, mut unharmed) = (0, 0);
    for seed in first_seed..first_seed + rounds {
        let mut random = Seeded(seed);
        let mut bytes = pristine.clone();
        let what = if random.below(4) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
            format!("truncated to {}", bytes.len())
        } else {
            let mut flipped = Vec::new();
            for _ in 0..=random.below(3) {
                // Headers and tree pages are a small part of the file, so half of the flips aim at the first pages.
                let within = if random.below(2) == 0 { 16_384 } else { bytes.len() as u64 };
                let at = random.below(within);
                if !COMMIT_NUMBER.iter().any(|range| range.contains(&at)) {
                    let bit = random.below(8);
                    bytes[at as usize] ^= 1 << bit;
                    flipped.push((at, bit));
                }
            }
            format!("flipped {flipped:?}")
        };
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("data.mdb"), &bytes).unwrap();
        std::fs::write(directory.path().join("format"), b"flowfabric 1").unwrap();
        match look(directory.path()).await {
            Ok(dump) => {
                assert!(dump == truth, "seed {seed}, {what}: other data");
                unharmed += 1;
            }
            Err(HostError::Corrupt { .. } | HostError::Unavailable { .. } | HostError::Full { .. }) => refused += 1,
            Err(other) => panic!("seed {seed}, {what}: {other}"),
        }
    }
    println!("{refused} refused, {unharmed} unharmed");
    assert!(refused > 0);
}

#[tokio::test]
async fn a_store_that_lost_its_file_is_not_taken_for_a_new_one() {
    for replacement in [None, Some(&b""[..]), Some(&b"not a store"[..]), Some(&[0; 8192][..])] {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path()).run(&[&["SET", "s", "v"]]).await;
        let file = directory.path().join("data.mdb");
        std::fs::remove_file(&file).unwrap();
        if let Some(bytes) = replacement {
            std::fs::write(&file, bytes).unwrap();
        }
        let result = Embedded::open(options(directory.path()).0);
        assert!(matches!(result.err(), Some(HostError::Corrupt { .. })), "{replacement:?}");
    }
}

/// Above the limit only the header is checked, and a full check is available on request.
#[tokio::test]
async fn a_large_store_is_checked_on_demand() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path()).run(&[&["SET", "ff:large", &"b".repeat(9_000)]]).await;
    let file = directory.path().join("data.mdb");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(20).position(|w| w == "b".repeat(20).as_bytes()).expect("a large value");
    bytes[at + 3_000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert!(Embedded::open(options(directory.path()).0).is_err());
    let (mut options, clock) = options(directory.path());
    options.verify_up_to = 0;
    let fixture = Fixture { host: Embedded::open(options).unwrap(), clock };
    assert!(matches!(fixture.host.verify().await, Err(HostError::Corrupt { .. })));
    assert!(matches!(fixture.host.dump().await, Err(HostError::Corrupt { .. })));
}

#[tokio::test]
async fn verifying_a_busy_store_finds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = std::sync::Arc::new(open(directory.path()));
    let writer = {
        let fixture = std::sync::Arc::clone(&fixture);
        tokio::spawn(async move {
            fill(&fixture).await;
        })
    };
    while !writer.is_finished() {
        fixture.host.verify().await.unwrap();
    }
    writer.await.unwrap();
}
