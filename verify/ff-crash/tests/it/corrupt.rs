//! Truncated and bit-flipped data files cause an error or correct data: never a hang, a crash or other data.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ff_crash::load::{LEASE_MS, input_of, result_of};
use ff_crash::{open, rounds};
use ff_engine::{Claimant, NewExecution, fence_of};
use ff_testkit::Tasks;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

const DATA: &str = "data.mdb";

/// A small store with work in several states.
async fn small_store(directory: &Path) -> Result<()> {
    let host = open::embedded(directory)?;
    let tool = open::tool(host.clone()).await?;
    let operations = tool.operations();
    let mut batch = Vec::new();
    for _ in 0..120 {
        let mut new = NewExecution::new("default", "one", "small");
        new.fields.input = Some(input_of(new.fields.execution_id).into());
        batch.push(new);
    }
    for answer in operations.submit_many(batch).await? {
        answer?;
    }
    let who = Claimant {
        namespace: "default".to_owned(),
        lane: "one".to_owned(),
        worker_id: "crash".to_owned(),
        instance: "w".to_owned(),
        kinds: None,
        capabilities: Vec::new(),
        lease_ttl_ms: 3_600 * LEASE_MS,
    };
    for route in operations.client().execution_routes() {
        for (n, task) in operations.claim(route, &who, 4, Uuid::now_v7()).await?.tasks.iter().enumerate() {
            if n > 0 {
                let result = result_of(task.execution_id, task.lease_epoch);
                operations.client().complete(task.execution_id, fence_of(task), Some(result)).await?;
            }
        }
    }
    tool.stop().await;
    host.close().await;
    Ok(())
}

/// Damages the bytes in a way that depends on the seed, and returns a description.
fn damage(bytes: &mut Vec<u8>, random: &mut impl Rng) -> String {
    let len = bytes.len();
    match random.random_range(0..5) {
        0 => {
            let to = random.random_range(0..len);
            bytes.truncate(to);
            format!("truncated to {to} of {len}")
        }
        1 => {
            let page = random.random_range(0..len / 4096);
            bytes[page * 4096..(page + 1) * 4096].fill(0);
            format!("page {page} zeroed")
        }
        2 => {
            let page = random.random_range(0..len / 4096);
            let other = random.random_range(0..len / 4096);
            let copy = bytes[other * 4096..(other + 1) * 4096].to_vec();
            bytes[page * 4096..(page + 1) * 4096].copy_from_slice(&copy);
            format!("page {page} replaced by {other}")
        }
        _ => {
            let count = random.random_range(1..20);
            let places: Vec<usize> = (0..count).map(|_| random.random_range(0..len)).collect();
            for place in &places {
                bytes[*place] ^= 1 << random.random_range(0..8);
            }
            format!("bits flipped at {places:?}")
        }
    }
}

/// The output of the probe. Fails if the probe hung or died.
fn probe(directory: &Path) -> Result<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ff-crash-child"))
        .arg("probe")
        .arg(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let started = Instant::now();
    while child.try_wait()?.is_none() {
        if started.elapsed() > Duration::from_secs(20) {
            child.kill()?;
            child.wait()?;
            bail!("it hung");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "it ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_answers_an_error_or_the_truth() -> Result<()> {
    let place = tempfile::tempdir()?;
    let original = place.path().join("original");
    small_store(&original).await?;
    ensure!(probe(&original)?.starts_with("sound 120"), "the probe finds nothing wrong with the original");
    let copy = |directory: &Path| -> Result<Vec<u8>> {
        std::fs::create_dir_all(directory)?;
        for entry in std::fs::read_dir(&original)? {
            let entry = entry?;
            std::fs::copy(entry.path(), directory.join(entry.file_name()))?;
        }
        std::fs::read(directory.join(DATA)).context("the store has a data file")
    };
    let seed: u64 = match std::env::var("FF_SEED") {
        Ok(seed) => seed.parse()?,
        Err(_) => rand::random(),
    };
    let (mut sound, mut refused, mut found) = (0, 0, 0);
    let rounds = rounds(30, 200, 10_000);
    for case in 0..rounds {
        let mut random = rand::rngs::StdRng::seed_from_u64(seed.wrapping_add(case as u64));
        let directory = place.path().join("damaged");
        let mut bytes = copy(&directory)?;
        let how = damage(&mut bytes, &mut random);
        std::fs::write(directory.join(DATA), &bytes)?;
        let said = probe(&directory)
            .with_context(|| format!("{how}; again with FF_SEED={}", seed.wrapping_add(case as u64)))?;
        match said.split(' ').next() {
            Some("sound") => sound += 1,
            Some("findings") => found += 1,
            Some("error:") if said.contains("than it was given") => {
                bail!("{how}: {said}; again with FF_SEED={}", seed.wrapping_add(case as u64))
            }
            Some("error:") => refused += 1,
            _ => bail!("{how}: the probe said {said:?}"),
        }
        std::fs::remove_dir_all(&directory)?;
    }
    eprintln!("{sound} sound, {found} with findings, {refused} refused");
    // Damage may hit unused pages, so some is certain to be noticed only after many cases.
    ensure!(refused > 0 || rounds < 100, "none of {rounds} damages was noticed");
    Ok(())
}
