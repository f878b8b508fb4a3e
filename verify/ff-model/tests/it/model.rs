//! Random calls on the embedded host: every reply, every description and every invariant matches the model.
//!
//! `FF_SEED` and `FF_CASES` select the cases, `FF_STEPS` their length.

use std::time::Instant;

use ff_model::run::{Plan, Report, print, run, seed, setting};
use ff_script::Library;
use ff_testkit::tier::{Tier, rounds, tier};

#[test]
fn every_reply_is_the_models() {
    let plan = Plan {
        seed: seed(),
        cases: setting("FF_CASES").unwrap_or(rounds(32, 256, 10_000)),
        steps: setting("FF_STEPS").map_or(rounds(200, 200, 500), |steps| steps as usize),
        shrink: 1_000,
    };
    let since = Instant::now();
    match run(&Library::test().text, plan) {
        Ok(report) => {
            print("model", &report, since);
            assert!(report.accepted * 2 > report.calls, "too few calls were accepted: {report:?}");
            // Rare events need not occur in the few cases of the quick tier.
            if tier() > Tier::Quick {
                reached(&report, plan);
            }
        }
        Err(failure) => panic!(
            "seed {} (case {} of {plan:?})\n{}\nreplay: FF_SEED={} FF_CASES=1 FF_STEPS={} cargo nextest run -p ff-model model:: --no-capture",
            failure.seed, failure.case, failure.story, failure.seed, plan.steps
        ),
    }
}

/// Checks that everything important about waits and streams occurred often enough, per ten thousand calls.
fn reached(report: &Report, plan: Plan) {
    let signals = |answer| report.count("ff_deliver_signal", answer);
    let suspends = |answer| report.count("ff_suspend_execution", answer);
    for (what, count, least) in [
        ("suspensions", suspends("suspended"), 200),
        ("suspends that needed no wait", suspends("already_satisfied"), 3),
        ("resumes by signals", signals("triggered_resume"), 100),
        ("signals taken", signals("accepted"), 100),
        ("duplicates", signals("duplicate"), 6),
        ("refused tokens", signals("waitpoint_not_open"), 100),
        ("reissued tokens", report.count("ff_reissue_token", "reissued"), 30),
        ("resumes by operators", report.count("ff_resume_execution", "resumed"), 10),
        ("frames", report.frames, 150),
    ] {
        println!("{count:>7} {what}");
        assert!(
            count * 10_000 >= least * plan.cases * plan.steps as u64,
            "too few {what}: {count} in {} calls",
            report.calls
        );
    }
}
