//! A call that fails at any of its store commands leaves nothing behind, and succeeds when it is repeated.
//!
//! On the embedded host, the host itself fails, and then dies, at the n-th command. A server does not undo the writes
//! of a failed call, so there the library alone must prevent them. Its text is edited so that the n-th read, or the
//! first write of a commit, raises.

mod flows;
mod lists;
mod rows;
mod schedules;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Instant;

use ff_conformance::{Kind, Store as Server};
use ff_model::store::Store;
use ff_script::dump::{Dump, DumpValue};
use ff_script::generated::{DescribeExecution, DescribeExecutionReply, FUNCTIONS, ListExecutions, ListExecutionsReply};
use ff_script::wire::{write_bytes, write_map_len};
use ff_script::{HostError, Invocation, Library};
use ff_testkit::tier::is_sampled;
use rows::{NOW, Row, rows, stage};
use tempfile::TempDir;

/// More commands than any call of the rows needs.
const COMMANDS_MAX: u64 = 2_000;

/// Rows whose effect exists already, or that only read.
const QUIET: [&str; 12] = [
    "store a step again",
    "suspend again",
    "signal again",
    "append frames again",
    "append frames",
    "check executions",
    "check keys",
    "trim events",
    "count holders that run",
    "challenge a worker",
    "offer a grant",
    "claim in the lane of flows",
];

fn accepted(row: &Row, reply: &[u8]) {
    let value = rmpv::decode::read_value(&mut &reply[..]).expect("a reply is msgpack");
    assert!(value["err"].is_nil(), "{} was refused: {value}", row.name);
}

/// A store with the stage. Its calls are made once, and every other store starts as a copy of the first.
fn staged() -> Store {
    static STAGE: LazyLock<TempDir> = LazyLock::new(|| {
        let (directory, store) = (tempfile::tempdir().expect("a directory"), Store::open(&Library::test().text));
        set_stage(&store);
        store.backup(directory.path());
        directory
    });
    Store::of_backup(&Library::test().text, STAGE.path())
}

fn set_stage(store: &Store) {
    for invocation in stage() {
        let (function, reply) = (invocation.function, store.send(invocation).expect("the stage is set"));
        let value = rmpv::decode::read_value(&mut reply.as_slice()).expect("a reply is msgpack");
        assert!(value["err"].is_nil(), "{function} of the stage was refused: {value}");
    }
}

fn sound(store: &Store, row: &Row) {
    let findings = store.fsck(NOW);
    assert!(findings.is_empty(), "{}: {findings:?}", row.name);
}

/// A description of the keys that differ.
fn difference(before: &Dump, after: &Dump) -> String {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differ = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    differ.map(|key| format!("\n  {key}\n    before {:?}\n    after  {:?}", before.get(key), after.get(key))).collect()
}

#[track_caller]
fn same(row: &Row, n: u64, before: &Dump, after: &Dump) {
    assert!(before == after, "{} changed something when command {n} failed:{}", row.name, difference(before, after));
}

#[test]
fn every_function_has_a_row() {
    let covered: BTreeSet<&str> = rows().iter().map(|row| row.invocation.function).collect();
    let missing: Vec<_> = FUNCTIONS.iter().filter(|name| !covered.contains(*name)).collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
}

#[test]
fn a_list_says_of_each_execution_what_the_library_says_of_it() {
    let store = staged();
    let ListExecutionsReply::Page { items, more, .. } =
        store.call(&ListExecutions::new(1_000), NOW).expect("executions can be listed");
    assert!(!more && items.len() > 20, "{} executions", items.len());
    let mut states = BTreeSet::new();
    for summary in items {
        let described = store.call(&DescribeExecution { execution_id: summary.execution_id }, NOW);
        let DescribeExecutionReply::Found { execution } = described.expect("it is there");
        // The library derives the state in descriptions. A list returns stored bytes, and Rust derives it.
        let listed =
            (summary.state, summary.lifecycle_phase, summary.blocking_reason, summary.outcome, summary.priority);
        let known =
            (execution.state, execution.phase, execution.blocking_reason, execution.outcome, execution.priority);
        assert_eq!(listed, known, "{}", summary.execution_id);
        states.insert(summary.state.as_str());
    }
    assert!(states.len() >= 6, "only {states:?}");
}

#[test]
fn every_row_that_may_write_writes() {
    let quiet = Mutex::new(Vec::new());
    on_all_rows(|row| {
        if row.invocation.read_only || QUIET.contains(&row.name) {
            return 0;
        }
        let store = staged();
        let before = store.dump();
        accepted(row, &store.send(row.invocation.clone()).unwrap_or_else(|error| panic!("{}: {error}", row.name)));
        if store.dump() == before {
            quiet.lock().unwrap().push(row.name);
        }
        1
    });
    let quiet = quiet.into_inner().unwrap();
    assert!(quiet.is_empty(), "these change nothing, so they do not reach their commits: {quiet:?}");
}

#[test]
fn a_failing_command_and_a_crash_leave_nothing_behind() {
    let since = Instant::now();
    let failures = on_all_rows(|row| {
        let (mut store, expected) = (staged(), after(row));
        let before = store.dump();
        let positions = positions(row, last(row, expected.commands));
        for n in &positions {
            store.host().faults().fail_command(*n);
            match store.send(row.invocation.clone()) {
                Err(HostError::Unavailable { .. }) => same(row, *n, &before, &store.dump()),
                other => panic!("{} at command {n}: {other:?}", row.name),
            }
            store.host().faults().crash_at_command(*n);
            match store.send(row.invocation.clone()) {
                Err(HostError::Closed) => store.reopen(),
                other => panic!("{} at command {n}: {other:?}", row.name),
            }
            same(row, *n, &before, &store.dump());
        }
        store.host().faults().clear();
        accepted(row, &store.send(row.invocation.clone()).unwrap_or_else(|error| panic!("{}: {error}", row.name)));
        sound(&store, row);
        assert!(
            store.dump() == expected.content,
            "{} ends otherwise after failures:{}",
            row.name,
            difference(&expected.content, &store.dump())
        );
        positions.len() as u64
    });
    println!("failing commands, and crashes at them: {failures}, {:.1} s", since.elapsed().as_secs_f64());
}

#[test]
fn a_crash_after_the_commit_loses_only_the_answer() {
    on_all_rows(|row| {
        if row.invocation.read_only {
            return 0;
        }
        let mut store = staged();
        let expected = after(row).content;
        store.host().faults().crash_after_commit();
        assert_eq!(store.send(row.invocation.clone()), Err(HostError::Closed), "{}", row.name);
        store.reopen();
        assert!(store.dump() == expected, "{} was not kept:{}", row.name, difference(&expected, &store.dump()));
        // A caller that lost its reply repeats the call. Whatever the reply, the store stays sound.
        store.send(row.invocation.clone()).unwrap_or_else(|error| panic!("{} again: {error}", row.name));
        sound(&store, row);
        1
    });
}

/// Tries every row, several in parallel. Returns the sum of their results.
fn on_all_rows(work: impl Fn(&Row) -> u64 + Sync) -> u64 {
    let (rows, next, sum) = (rows(), AtomicUsize::new(0), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    sum.fetch_add(work(row), Ordering::Relaxed);
                }
            });
        }
    });
    sum.into_inner()
}

/// The effect of a call on a stage without faults.
struct Done {
    content: Dump,
    /// The number of commands it uses; it cannot fail at a later one.
    commands: u64,
}

fn after(row: &Row) -> Done {
    let store = staged();
    let before = store.commands();
    accepted(row, &store.send(row.invocation.clone()).unwrap_or_else(|error| panic!("{}: {error}", row.name)));
    let commands = store.commands() - before;
    sound(&store, row);
    Done { content: store.dump(), commands }
}

/// The library with a fault: the argument `_fail` of a call selects which of its reads or first writes raises.
fn faulty() -> Library {
    let mut library = Library::test();
    let swap = |text: &str, from: &str, to: &str| {
        assert_eq!(text.matches(from).count(), 1, "the library does not hold this text once: {from}");
        text.replace(from, to)
    };
    let text = swap(
        &library.text,
        "local redis_call, redis_pcall, commit = redis.call, redis.pcall, redis.commit",
        "local redis_call, redis_pcall, commit = FAULT.call, FAULT.pcall, redis.commit",
    );
    let text = swap(&text, "local function send()\n", "local function send()\n  FAULT.sending = true\n");
    let text = swap(
        &text,
        "  if not trusted then\n",
        "  FAULT.left, FAULT.sending, args._fail = args._fail or 0, nil, nil\n  if not trusted then\n",
    );
    let text = swap(&text, "local time = redis_call(\"TIME\")", "FAULT.left = 0\n  local time = redis_call(\"TIME\")");
    let text = swap(
        &text,
        "  local fine, problem = pcall(append, self)",
        "  FAULT.left = 0\n  local fine, problem = pcall(append, self)",
    );
    let declared = text
        .lines()
        .find(|line| line.starts_with("local LIBRARY = {"))
        .expect("codegen writes the LIBRARY line")
        .to_owned();
    let fault = "local FAULT = { left = 0 }
local function count()
  if FAULT.left > 0 then
    FAULT.left = FAULT.left - 1
    if FAULT.left == 0 then error(\"injected fault\") end
    if FAULT.sending then FAULT.left = 0 end
  end
end
function FAULT.call(...)
  count()
  return redis.call(...)
end
function FAULT.pcall(...)
  count()
  return redis.pcall(...)
end";
    library.text = text.replacen(&declared, &format!("{declared}\n{fault}"), 1);
    library
}

/// The call with the number of the command that should raise.
fn failing(row: &Row, n: u64) -> Invocation {
    // The bytes of the call stay unchanged: decoding and encoding would change the kind of invalid UTF-8.
    let mut fields = row.invocation.args.as_slice();
    let count = rmp::decode::read_map_len(&mut fields).expect("a typed call is a map");
    let mut invocation = row.invocation.clone();
    invocation.args.clear();
    write_map_len(&mut invocation.args, count as usize + 1);
    invocation.args.extend_from_slice(fields);
    write_bytes(&mut invocation.args, b"_fail");
    rmp::encode::write_uint(&mut invocation.args, n).expect("writing to memory cannot fail");
    invocation
}

#[test]
fn a_raise_before_the_first_write_leaves_nothing_on_a_server() {
    if !Kind::Valkey.is_wanted() {
        return;
    }
    let since = Instant::now();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts");
    let rows: Vec<(Row, u64)> =
        rows().into_iter().map(|row| (most(&row), row)).map(|(most, row)| (row, most)).collect();
    let raises = runtime.block_on(async {
        let server = Server::open(Kind::Valkey).await;
        let mut connection = server.server().expect("a server runs").connection().expect("it listens");
        redis::cmd("FUNCTION")
            .arg("LOAD")
            .arg("REPLACE")
            .arg(faulty().text)
            .exec(&mut connection)
            .expect("the faulty library loads");
        let stage = set_server_stage(&server, &mut connection).await;
        let mut raises = 0;
        for (row, most) in rows {
            restore(&server, &mut connection, &stage);
            let before = digest(&mut connection);
            // The number of commands that can raise is known once a higher number has no effect.
            for n in positions(&row, most).into_iter().chain([COMMANDS_MAX]) {
                let outcome = server.host().call(failing(&row, n)).await;
                let after = digest(&mut connection);
                match &outcome {
                    Err(HostError::Raised { detail, .. }) if detail.contains("injected fault") => {}
                    Err(error) => panic!("{} at command {n}: {error}", row.name),
                    // A batch continues with its other items. Any other call succeeded because it makes fewer commands.
                    Ok(_) if row.batch && n < most => {}
                    Ok(reply) => {
                        accepted(&row, reply);
                        break;
                    }
                }
                raises += 1;
                if row.batch {
                    let findings = fsck(&server).await;
                    assert!(
                        findings.is_empty(),
                        "{} left half an item when command {n} raised: {findings:?}",
                        row.name
                    );
                    if before != after {
                        restore(&server, &mut connection, &stage);
                    }
                } else if before != after {
                    let after = without_ids(server.dump().await);
                    restore(&server, &mut connection, &stage);
                    same(&row, n, &without_ids(server.dump().await), &after);
                }
            }
            let findings = fsck(&server).await;
            assert!(findings.is_empty(), "{}: {findings:?}", row.name);
        }
        raises
    });
    println!("raises on a server: {raises}, {:.1} s", since.elapsed().as_secs_f64());
}

/// The commands at which a call of this many is made to fail: its first, its last, and in the quick tier a tenth of the
/// others.
fn positions(row: &Row, most: u64) -> Vec<u64> {
    assert!(most > 0, "{} makes no store command", row.name);
    let tried = |n: &u64| *n == 1 || *n == most || is_sampled(&format!("{} {n}", row.name), 10);
    (1..=most).filter(tried).collect()
}

/// The last command of a call at which the host can fail; `most` includes a few more.
fn last(row: &Row, most: u64) -> u64 {
    let fails = |n: &u64| {
        let store = staged();
        store.host().faults().fail_command(*n);
        store.send(row.invocation.clone()).is_err()
    };
    (1..most).rev().find(fails).unwrap_or_else(|| panic!("{} makes no store command", row.name))
}

/// The number of commands that a call uses on the embedded host; on a server it uses no more.
fn most(row: &Row) -> u64 {
    let store = staged();
    let before = store.commands();
    store.send(row.invocation.clone()).expect("accepted without faults");
    store.commands() - before
}

/// The content of every key of the stage, in the server's own serialisation.
type Stage = Vec<(Vec<u8>, Vec<u8>)>;

async fn set_server_stage(server: &Server, connection: &mut redis::Connection) -> Stage {
    server.wipe().await;
    for invocation in stage() {
        server.host().call(invocation).await.expect("the stage is set");
    }
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(connection).expect("keys are listed");
    let dump = |key: Vec<u8>, connection: &mut redis::Connection| {
        let value = redis::cmd("DUMP").arg(&key).query(connection).expect("a key is dumped");
        (key, value)
    };
    keys.into_iter().map(|key| dump(key, connection)).collect()
}

/// Restores the stage without repeating its calls. Returns the content of the store.
fn restore(server: &Server, connection: &mut redis::Connection, stage: &Stage) {
    redis::cmd("FLUSHALL").exec(connection).expect("FLUSHALL");
    let mut pipe = redis::pipe();
    for (key, value) in stage {
        pipe.cmd("RESTORE").arg(key).arg(0).arg(value).ignore();
    }
    pipe.exec(connection).expect("the stage is restored");
    server.go_to(NOW);
}

/// The content of the server, as one digest.
fn digest(connection: &mut redis::Connection) -> String {
    redis::cmd("DEBUG").arg("DIGEST").query(connection).expect("DEBUG DIGEST")
}

async fn fsck(server: &Server) -> Vec<ff_script::generated::Finding> {
    server.fsck().await
}

/// Stream entries without their ids, which follow the server's clock.
fn without_ids(mut dump: Dump) -> Dump {
    for value in dump.values_mut() {
        if let DumpValue::Stream(entries) = value {
            entries.iter_mut().for_each(|(id, _)| id.clear());
        }
    }
    dump
}
