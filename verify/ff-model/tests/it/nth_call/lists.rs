//! Operations in one list: each has the same effect as alone, and a failing one does not affect the others.

use std::time::Instant;

use ff_model::store::Store;
use ff_script::dump::Dump;
use ff_script::generated::{Submission, SubmitExecution};
use ff_script::{HostError, Invocation};
use ff_testkit::tier::is_sampled;

use super::rows::{NOW, Row, at, id, rows};
use super::{difference, on_all_rows, staged};
use crate::differential::{joined, renumbered};

/// In the quick tier, one pair in this number is tried.
const PAIRS_SHARE: u64 = 150;
/// In the quick tier, one failure in this number is tried.
const FAILURES_SHARE: u64 = 40;

/// The result of an operation: its reply, or that it raised.
type Made = Result<Vec<u8>, HostError>;

/// The content of the store, however its events were appended.
fn content(store: &Store) -> Dump {
    joined(renumbered(store.dump()))
}

/// The values of each reply, with sorted maps.
fn ordered(made: Vec<Made>) -> Vec<Result<Vec<Vec<u8>>, HostError>> {
    let values = |bytes: Vec<u8>| {
        let (mut rest, mut values) = (bytes.as_slice(), Vec::new());
        while !rest.is_empty() {
            let before = rest;
            rmpv::decode::read_value(&mut rest).expect("an answer is msgpack");
            values.push(ff_script::dump::ordered_bytes(&before[..before.len() - rest.len()]));
        }
        values
    };
    made.into_iter().map(|one| one.map(values)).collect()
}

/// The operations with equal terms: those of a list visit other partitions only if all of them do.
fn alike(mut operations: Vec<Invocation>) -> Vec<Invocation> {
    let visits = operations.iter().find_map(|one| one.terms.visits);
    operations.iter_mut().for_each(|one| one.terms.visits = visits);
    operations
}

/// The results of the operations on the stage, one call at a time.
fn apart(operations: &[Invocation]) -> (Vec<Made>, Dump) {
    let store = staged();
    let made = operations.iter().map(|operation| store.send(operation.clone())).collect();
    (made, content(&store))
}

fn submission(n: u64) -> Invocation {
    let mut submission = Submission::new(
        id(n),
        "default".to_owned(),
        "main".to_owned(),
        "plain".to_owned(),
        "00000000000000000000000000000000".to_owned(),
    );
    submission.input = Some(b"1".to_vec().into());
    at(ff_model::store::ROUTE, &SubmitExecution { submission }, NOW)
}

/// False for operations that do not see the operations before them in a list. Reads run first. The events of a list are
/// appended at its end, so an operation that counts events finds them only next time.
fn keeps_its_place(row: &Row) -> bool {
    !row.invocation.read_only && row.invocation.function != "ff_tally_events"
}

#[test]
fn two_functions_in_one_list_do_what_they_do_one_after_the_other() {
    let (all, since) = (rows(), Instant::now());
    let tried = on_all_rows(|first| {
        let mut tried = 0;
        for second in all.iter().filter(|second| keeps_its_place(second) && keeps_its_place(first)) {
            if !is_sampled(&format!("{}, {}", first.name, second.name), PAIRS_SHARE) {
                continue;
            }
            let mut pair = alike(vec![first.invocation.clone(), second.invocation.clone()]);
            // Only operations of one partition keep their order.
            pair.sort_by_key(|one| one.route);
            let store = staged();
            let made = store.send_all(pair.clone());
            let content = content(&store);
            let (expected, otherwise) = apart(&pair);
            assert_eq!(ordered(made), ordered(expected), "{}, then {}", first.name, second.name);
            assert!(
                content == otherwise,
                "{}, then {}, in one list:{}",
                first.name,
                second.name,
                difference(&otherwise, &content)
            );
            tried += 1;
        }
        tried
    });
    println!("pairs in one list: {tried}, {:.1} s", since.elapsed().as_secs_f64());
    assert!(tried > 20, "only {tried} pairs were tried");
}

#[test]
fn a_command_that_fails_in_a_list_fails_one_operation_and_the_others_stand() {
    let since = Instant::now();
    let failures = on_all_rows(|row| {
        if !keeps_its_place(row) || row.invocation.route != ff_model::store::ROUTE {
            return 0;
        }
        let list = alike(vec![submission(900), row.invocation.clone(), submission(901)]);
        let commands = {
            let store = staged();
            let before = store.commands();
            store.send_all(list.to_vec());
            store.commands() - before
        };
        let mut failures = 0;
        for n in (1..=commands).filter(|n| is_sampled(&format!("{} in a list, {n}", row.name), FAILURES_SHARE)) {
            let store = staged();
            store.host().faults().fail_command(n);
            let made = store.send_all(list.to_vec());
            store.host().faults().clear();
            let failed: Vec<usize> = (0..list.len()).filter(|place| made[*place].is_err()).collect();
            assert!(failed.len() <= 1, "{} at command {n}: {made:?}", row.name);
            let standing: Vec<Invocation> =
                (0..list.len()).filter(|place| !failed.contains(place)).map(|place| list[place].clone()).collect();
            let (_, expected) = apart(&standing);
            let content = content(&store);
            assert!(
                content == expected,
                "{}: {failed:?} failed at command {n}:{}",
                row.name,
                difference(&expected, &content)
            );
            failures += 1;
        }
        failures
    });
    println!("failing commands in lists: {failures}, {:.1} s", since.elapsed().as_secs_f64());
    assert!(failures > 20, "only {failures} were tried");
}
