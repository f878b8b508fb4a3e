//! The model run finds defects: each known one, put back into the library, is found within a few cases.

use std::time::Instant;

use ff_model::run::{Plan, run, setting};
use ff_script::Library;
use ff_testkit::tier::is_sampled;

/// The maximum number of cases that a mutant may survive.
const CASES_MAX: u64 = 200;

/// A defect as an edit of the library's text.
struct Mutant {
    name: &'static str,
    from: &'static str,
    to: &'static str,
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the index entry is lost when a delay is already past",
        from: r#"  execution.save(tx, rec)
  if delay_until then
"#,
        to: r#"  execution.save(tx, rec)
  if delay_until and delay_until <= tx.now then tx:zrem(require("index.home").key(tx, rec, rec.path, rec.was_place), rec.id) end
  if delay_until then
"#,
    },
    Mutant {
        name: "a delay already past still delays",
        from: "if rec.delay and rec.delay <= tx.now then rec.delay = nil end",
        to: "",
    },
    Mutant {
        name: "a worker cancels without its fence being looked at",
        from: r#"local refusal = fence.check(rec, a.fence, tx.now, "cancel")
    if refusal == "replay" then return reply.ok("replayed") end
    if refusal then return refusal end"#,
        to: r#"local refusal = fence.check(rec, a.fence, tx.now, "cancel")
    if refusal == "replay" then return reply.ok("replayed") end
    if refusal and (rec == nil or rec.phase ~= "active") then return refusal end"#,
    },
    Mutant {
        name: "the attempt id is not part of the fence",
        from: " or rec.attempt_id ~= f.attempt_id then\n    return stale",
        to: " then\n    return stale",
    },
    Mutant {
        name: "a lease ends a millisecond early",
        from: "if now >= rec.lease_until then",
        to: "if now + 1 >= rec.lease_until then",
    },
    Mutant {
        name: "a lease is accepted in its last moment",
        from: "if now >= rec.lease_until then",
        to: "if now > rec.lease_until then",
    },
    Mutant {
        name: "a deadline passes early",
        from: r#"if rec.deadline and rec.deadline <= now then return expire(tx, rec, "deadline") end"#,
        to: r#"if rec.deadline and rec.deadline <= now + 2000 then return expire(tx, rec, "deadline") end"#,
    },
    Mutant {
        name: "an input loses its zero bytes",
        from: "tx:set(keys.input(tx, rec.id), s.input)",
        to: "tx:set(keys.input(tx, rec.id), (string.gsub(s.input, '%z', '')))",
    },
    Mutant {
        name: "a large result is cut",
        from: "tx:set(keys.result(tx, rec.id), result)",
        to: "tx:set(keys.result(tx, rec.id), string.sub(result, 1, 4096))",
    },
    Mutant {
        name: "a completion is written before it is checked",
        from: r#"local refusal = fence.check(rec, c.fence, tx.now, "complete")"#,
        to: r#"redis.call("SET", require("lib.keys").result(tx, c.execution_id), "1")
  local refusal = fence.check(rec, c.fence, tx.now, "complete")"#,
    },
    Mutant {
        name: "the epoch does not rise with a later claim",
        from: "rec.epoch = tx.now_us > epoch and tx.now_us or epoch",
        to: "rec.epoch = rec.epoch or tx.now_us",
    },
    Mutant {
        name: "poison never ends",
        from: "if lost >= (rec.max_reclaims or limits.reclaims_default) then",
        to: "if false then",
    },
    Mutant { name: "a reclaim is not counted", from: "rec.reclaims = lost + 1", to: "rec.reclaims = lost" },
    Mutant {
        name: "the timer entry of the lease is kept after the end",
        from: "  if at == wake then return end\n",
        to: "  if at == wake or rec.phase == \"terminal\" then return end\n",
    },
    Mutant { name: "a worker's lease entry is kept", from: "    leases.remove(tx, rec)\n", to: "" },
    Mutant {
        name: "one attempt more than the policy allows",
        from: "if failures >= policy.max_attempts then",
        to: "if failures > policy.max_attempts then",
    },
    Mutant {
        name: "a failure that is not retryable is retried",
        from: "if f.retryable == false or not allowed",
        to: "if not allowed",
    },
    Mutant {
        name: "priority counts against an execution",
        from: "- rec.prio * copy.priority_weight\nend",
        to: "+ rec.prio * copy.priority_weight\nend",
    },
    Mutant { name: "a grant never runs out", from: "other = rec.grant_until\n", to: "other = nil\n" },
    Mutant {
        name: "a repeated issue answers grants that ran out",
        from: " and grant.open(rec, rec.grant, tx.now) then\n        open[",
        to: " then\n        open[",
    },
    Mutant { name: "every worker covers everything", from: "if not capabilities[token] then return false end", to: "" },
    Mutant {
        name: "a repeated claim takes more",
        from: "if again then return reply.ok(\"replayed\"",
        to: "if false then return reply.ok(\"replayed\"",
    },
    Mutant {
        name: "work past its time hides what stands behind it",
        from: "q.at, q.more = 1, #q.page == 2 * size",
        to: "q.at, q.more = 1, false",
    },
    Mutant {
        name: "a paused lane starts work",
        from: r#"return copy.state == "active" or copy.state == "draining""#,
        to: r#"return copy.state ~= "disabled""#,
    },
    Mutant {
        name: "a change lets go of a held execution",
        from: r#"local held = rec.reason ~= nil and rec.reason ~= "waiting_for_capable_worker""#,
        to: "local held = false",
    },
    Mutant {
        name: "an idempotency key takes any body",
        from: "if record.body_digest ~= s.body_digest then",
        to: "if false then",
    },
    Mutant {
        name: "a replay keeps the old failure",
        from: "rec.result, rec.result_far, rec.result_in, rec.failure, rec.progress = nil, nil, nil, nil, nil",
        to: "rec.result, rec.result_far, rec.result_in, rec.progress = nil, nil, nil, nil",
    },
    Mutant {
        name: "fairness follows a weight that has changed",
        from: "if virtual and rec.fair > virtual then lane.remember(tx, copy, \"virtual\", string.format(\"%.0f\", rec.fair)) end",
        to: "local start = rec.score + rec.prio * copy.priority_weight\n  if virtual and start > virtual then lane.remember(tx, copy, \"virtual\", string.format(\"%.0f\", start)) end",
    },
    Mutant {
        name: "a token is good for any execution",
        from: r#"if w == nil or w.exec ~= a.execution_id then return reply.err("waitpoint_not_open") end"#,
        to: r#"if w == nil then return reply.err("waitpoint_not_open") end"#,
    },
    Mutant {
        name: "the digest of a token is not looked at",
        from: r#"if token[1] == digest then return token, tokens end"#,
        to: r#"return token, tokens"#,
    },
    Mutant {
        name: "a use of a token is not consumed",
        from: r#"  if token[3] then token[3] = token[3] - 1 end
"#,
        to: r#"
"#,
    },
    Mutant {
        name: "approvers are whoever the caller says",
        from: r#"local approver = token[2] or nil"#,
        to: r#"local approver = a.source_identity or token[2] or nil"#,
    },
    Mutant {
        name: "the epoch does not rise on a resume",
        from: r#"  rec.epoch = tx.now_us > epoch and tx.now_us or epoch"#,
        to: r#"  if not continues then rec.epoch = tx.now_us > epoch and tx.now_us or epoch end"#,
    },
    Mutant {
        name: "an early signal counts twice",
        from: r#"      early[#early + 1] = { ref = s[1], name = s[2], who = s[3], waitpoint_id = entry[1], key = entry[2] }"#,
        to: r#"      for _ = 1, 2 do early[#early + 1] = { ref = s[1], name = s[2], who = s[3], waitpoint_id = entry[1], key = entry[2] } end"#,
    },
    Mutant {
        name: "a frame is taken after the end of its attempt",
        from: r#"    if refusal then return refusal end
    if #a.frames == 0"#,
        to: r#"    if refusal and not (rec and rec.attempt and rec.attempt_id == a.fence.attempt_id) then return refusal end
    if #a.frames == 0"#,
    },
    Mutant {
        name: "waitpoints stay open after a resume",
        from: r#"  waitpoint.close(tx, rec, "resumed", function(entry) return waitpoint.takes_part(entry, w.recorded) end)
"#,
        to: r#"
"#,
    },
    Mutant {
        name: "a signal is taken at a closed waitpoint",
        from: r#"if w.state == "closed" or (w.expires and w.expires <= now) then return false end"#,
        to: r#"if w.expires and w.expires <= now then return false end
  if w.state == "closed" then return rec.phase == "active" end"#,
    },
    Mutant {
        name: "a token is good after its waitpoint's time",
        from: r#"w.state == "closed" or (w.expires and w.expires <= now)"#,
        to: r#"w.state == "closed""#,
    },
    Mutant {
        name: "the old token lives on",
        from: r#"    found[1] = a.digest
"#,
        to: r#"    tokens[#tokens + 1] = { found[1], found[2], found[3], found[4] }
    found[1] = a.digest
"#,
    },
    Mutant {
        name: "a duplicate consumes a use",
        from: r#"  if alike then return reply.ok("duplicate", { signal_id = alike[1] }) end"#,
        to: r#""#,
    },
    Mutant {
        name: "a suspension ends before its time",
        from: "other = rec.wait_until\n",
        to: "other = rec.wait_until and rec.wait_until - 1\n",
    },
    Mutant {
        name: "a wait goes on without its continuation",
        from: r#"  rec.continued = bytes and (encoding or "*") or nil
"#,
        to: r#"  rec.continued = nil
"#,
    },
    Mutant {
        name: "any child of all conditions is enough",
        from: r#"      done[i] = not missing[i]
"#,
        to: r#"      done[i] = any[i] == true
"#,
    },
    Mutant {
        name: "durable frames leave before live ones",
        from: r#"local drop_live = math.min(over, alive)"#,
        to: r#"local drop_live = math.max(0, over - kept)"#,
    },
    Mutant {
        name: "a plain completion ends a millisecond early",
        from: "attempt_id ~= f.attempt_id or now >= lease_until\n",
        to: "attempt_id ~= f.attempt_id or now > lease_until\n",
    },
    Mutant {
        name: "a plain completion takes any epoch",
        from: "or epoch ~= f.lease_epoch or lease_id",
        to: "or lease_id",
    },
    Mutant {
        name: "a plain start keeps its timer to itself",
        from: "  tx:zadd(keys.timers(tx), wake, id)\n  tx:zadd(keys.queue(tx, path, queue, kind), active_from + created_at, id)\n  tx:hput(keys.leases(tx, worker), lease_id, id)\n  tx:note(told)\n  return record, wake\n",
        to: "  tx:zadd(keys.queue(tx, path, queue, kind), active_from + created_at, id)\n  tx:hput(keys.leases(tx, worker), lease_id, id)\n  tx:note(told)\n  return record, wake\n",
    },
    Mutant {
        name: "a plain submission is not in the list of its kind",
        from: "  tx:zadd(keys.kind(tx, kind), now, id)\n",
        to: "",
    },
    Mutant { name: "something ended is left behind", from: "  lists.remove(tx, rec)\n", to: "" },
];

#[test]
fn every_known_defect_is_caught() {
    let library = Library::test().text;
    let wanted = std::env::var("FF_MUTANT").unwrap_or_default();
    let (since, mut caught, mut survivors) = (Instant::now(), 0, Vec::new());
    let tried = |mutant: &&Mutant| mutant.name.contains(&wanted) && (!wanted.is_empty() || is_sampled(mutant.name, 8));
    for mutant in MUTANTS.iter().filter(tried) {
        assert_eq!(
            library.matches(mutant.from).count(),
            1,
            "{}: the library does not hold this text once: {}",
            mutant.name,
            mutant.from
        );
        let plan = Plan {
            // The same cases every time, so that a defect that was found once is found again.
            seed: setting("FF_SEED").unwrap_or(1),
            cases: setting("FF_CASES").unwrap_or(CASES_MAX),
            steps: 200,
            shrink: u32::from(!wanted.is_empty()) * 500,
        };
        match run(&library.replace(mutant.from, mutant.to), plan) {
            Err(failure) => {
                caught += 1;
                println!("caught after {:>2} cases: {}", failure.case + 1, mutant.name);
                if !wanted.is_empty() {
                    println!("{}", failure.story);
                }
            }
            Ok(_) => survivors.push(mutant.name),
        }
    }
    println!("mutants: {} caught, {} survived, {:.1} s", caught, survivors.len(), since.elapsed().as_secs_f64());
    assert!(survivors.is_empty(), "not caught within {CASES_MAX} cases: {survivors:#?}");
}
