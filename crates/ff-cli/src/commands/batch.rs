//! `ff submit --batch`: many executions from a file of NDJSON.

use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use anyhow::Context;
use ff_api::executions::Submitted;

use crate::client::{Api, item};
use crate::output::{Output, print, say};
use crate::problem::{Refused, WrongUsage, explained};
use crate::progress::Progress;

/// How many executions, and how many bytes, one request carries at most.
const ITEMS: usize = 1_000;
const BYTES: usize = 8 * 1024 * 1024;

/// Submits every line of a file, or of stdin for `-`, in order. Each line is answered on its own: a refusal is said with the number of
/// its line, and the others go on.
pub async fn submit(api: &Api, file: &str, output: Output) -> anyhow::Result<ExitCode> {
    let (lines, total) = open(file)?;
    let mut progress = Progress::new("submitting", total);
    let mut sums = Sums::default();
    let (mut batch, mut numbers, mut number) = (String::new(), Vec::new(), 0_usize);
    for line in lines {
        let line = line.with_context(|| format!("cannot read {file}"))?;
        number += 1;
        if line.trim().is_empty() {
            continue;
        }
        if numbers.len() == ITEMS || batch.len() + line.len() > BYTES {
            send(api, &mut batch, &mut numbers, output, &mut sums).await?;
            progress.advance(sums.last);
        }
        batch.push_str(line.trim());
        batch.push('\n');
        numbers.push(number);
    }
    send(api, &mut batch, &mut numbers, output, &mut sums).await?;
    drop(progress);
    if output == Output::Table {
        let again = if sums.duplicates > 0 { format!(", {} submitted before", sums.duplicates) } else { String::new() };
        let refused = if sums.refused > 0 { format!(", {} refused", sums.refused) } else { String::new() };
        say(&format!("{} submitted{again}{refused}", sums.submitted))?;
    }
    Ok(if sums.refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[derive(Default)]
struct Sums {
    submitted: u64,
    duplicates: u64,
    refused: u64,
    /// How many lines the last request carried.
    last: u64,
}

type Lines = Box<dyn Iterator<Item = std::io::Result<String>>>;

/// The lines, and how many there are where that is known.
fn open(file: &str) -> anyhow::Result<(Lines, Option<u64>)> {
    if file == "-" {
        return Ok((Box::new(std::io::stdin().lines()), None));
    }
    let reader = || {
        let file = std::fs::File::open(file).with_context(|| WrongUsage(format!("cannot read {file}")))?;
        Ok::<_, anyhow::Error>(BufReader::new(file))
    };
    let total = reader()?.split(b'\n').count() as u64;
    Ok((Box::new(reader()?.lines()), Some(total)))
}

async fn send(
    api: &Api,
    batch: &mut String,
    numbers: &mut Vec<usize>,
    output: Output,
    sums: &mut Sums,
) -> anyhow::Result<()> {
    sums.last = numbers.len() as u64;
    if numbers.is_empty() {
        return Ok(());
    }
    let answer = api.submit_lines(std::mem::take(batch)).await?;
    if output == Output::Json {
        print(std::str::from_utf8(&answer)?)?;
    }
    let answers = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for (line, number) in answers.zip(numbers.drain(..)) {
        let submitted: Submitted = match item(line) {
            Ok(submitted) => submitted,
            Err(error) if error.downcast_ref::<Refused>().is_some() => {
                sums.refused += 1;
                eprintln!("ff: line {number}: {}", explained(&error));
                continue;
            }
            Err(error) => return Err(error),
        };
        sums.submitted += 1;
        sums.duplicates += u64::from(submitted.duplicate);
        if output == Output::Ids {
            say(&submitted.execution_id.to_string())?;
        }
    }
    Ok(())
}
