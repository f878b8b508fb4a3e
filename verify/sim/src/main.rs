//! Replays one seed and prints what happened: `cargo run -p ff-sim -- --seed 17 [--steps 250] [--limits] [--quiet]`.

use std::process::ExitCode;

use ff_sim::{Options, run};

fn main() -> ExitCode {
    let (mut seed, mut steps, mut quiet, mut limits) = (0, ff_sim::STEPS, false, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse::<u64>().ok());
        match arg.as_str() {
            "--seed" => match number() {
                Some(n) => seed = n,
                None => return usage(),
            },
            "--steps" => match number().and_then(|n| u32::try_from(n).ok()) {
                Some(n) => steps = n,
                None => return usage(),
            },
            "--quiet" => quiet = true,
            "--limits" => limits = Some(true),
            _ => return usage(),
        }
    }
    let mut options = Options::new(seed, steps);
    (options.trace, options.limits) = (!quiet, limits);
    let report = run(&options);
    for line in &report.trace {
        println!("{line}");
    }
    println!("\n{}", report.totals);
    match report.violation {
        None => {
            println!("seed {seed}: every invariant held");
            ExitCode::SUCCESS
        }
        Some(violation) => {
            println!("seed {seed}: {violation}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: ff-sim [--seed N] [--steps M] [--limits] [--quiet]");
    ExitCode::from(2)
}
