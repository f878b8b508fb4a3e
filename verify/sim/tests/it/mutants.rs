//! Tests of the simulator itself: known defects in the library's text must be found within a few seeds.

use ff_script::Library;
use ff_sim::{Options, STEPS, run, tight};
use ff_testkit::tier::{is_sampled, sample};

/// Number of seeds in which a defect must be found; each run takes well under a second.
const SEEDS_MAX: u64 = 120;

/// The library with each `(from, to)` applied. Every `from` must occur exactly once, so that a mutant cannot silently
/// become the original.
fn mutant(changes: &[(&str, &str)]) -> String {
    let mut text = tight(&Library::test().text);
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "the library holds this text more or less than once: {from}");
        text = text.replacen(from, to, 1);
    }
    text
}

fn is_caught(name: &str, changes: &[(&str, &str)]) {
    is_caught_on(name, None, 1, changes);
}

/// The same, starting at a seed that is known to find a defect that is harder to find.
fn is_caught_from(first: u64, name: &str, changes: &[(&str, &str)]) {
    is_caught_on(name, None, first, changes);
}

/// The same, with quotas and budgets in every seed.
fn is_caught_at_limits(name: &str, changes: &[(&str, &str)]) {
    is_caught_at_limits_from(1, name, changes);
}

/// The same, starting at a given seed.
fn is_caught_at_limits_from(first: u64, name: &str, changes: &[(&str, &str)]) {
    is_caught_on(name, Some(true), first, changes);
}

fn is_caught_on(name: &str, limits: Option<bool>, first: u64, changes: &[(&str, &str)]) {
    // The presence of the text to change is checked every day.
    let library = mutant(changes);
    if !is_sampled(name, 6) {
        println!("{name}: not in sample {}", sample());
        return;
    }
    for seed in first..first + SEEDS_MAX {
        let mut options = Options::new(seed, STEPS);
        options.library.clone_from(&library);
        options.limits = limits;
        if let Some(violation) = run(&options).violation {
            println!("{name}: seed {seed}: {violation}");
            return;
        }
    }
    panic!("{name} was not caught in {SEEDS_MAX} seeds");
}

#[test]
fn an_epoch_that_is_not_raised_is_caught() {
    is_caught(
        "epoch not raised",
        &[("rec.epoch = tx.now_us > epoch and tx.now_us or epoch", "rec.epoch = rec.epoch or tx.now_us")],
    );
}

#[test]
fn a_lease_that_expires_early_is_caught() {
    is_caught(
        "early lease expiry",
        &[
            ("other = rec.lease_until\n", "other = rec.lease_until - 400\n"),
            (
                "if rec.lease_until <= now then return interrupt.lost",
                "if rec.lease_until - 400 <= now then return interrupt.lost",
            ),
        ],
    );
}

#[test]
fn a_completion_without_a_fence_is_caught() {
    is_caught_from(
        22,
        "unfenced complete",
        &[(
            "local refusal = fence.check(rec, c.fence, tx.now, \"complete\")",
            "local refusal if rec == nil or rec.phase ~= \"active\" then refusal = fence.check(rec, c.fence, tx.now, \"complete\") end",
        )],
    );
}

#[test]
fn a_cancel_without_a_fence_is_caught() {
    is_caught(
        "unfenced cancel",
        &[(
            "local refusal = fence.check(rec, a.fence, tx.now, \"cancel\")",
            "local refusal if rec == nil or rec.phase ~= \"active\" then refusal = fence.check(rec, a.fence, tx.now, \"cancel\") end",
        )],
    );
}

#[test]
fn a_renewal_after_the_end_is_caught() {
    is_caught(
        "renewal after expiry",
        &[(
            "if now >= rec.lease_until then return reply.err(\"lease_expired\"",
            "if false then return reply.err(\"lease_expired\"",
        )],
    );
}

#[test]
fn a_timer_lost_on_renewal_is_caught() {
    is_caught(
        "timer lost on renew",
        &[(
            "rec.renewals = (rec.renewals or 0) + 1\n  execution.save(tx, rec)",
            "rec.renewals = (rec.renewals or 0) + 1\n  execution.save(tx, rec)\n  tx:zrem(\"ff:idx:\" .. tx.tag .. \":timers\", rec.id)",
        )],
    );
}

#[test]
fn poison_that_never_ends_is_caught() {
    is_caught(
        "poison never ends",
        &[("if lost >= (rec.max_reclaims or limits.reclaims_default) then", "if false then")],
    );
}

#[test]
fn an_early_deadline_is_caught() {
    is_caught(
        "early deadline",
        &[
            ("local at = rec.deadline\n", "local at = rec.deadline and rec.deadline - 200\n"),
            (
                "if rec.deadline and rec.deadline <= now then return expire",
                "if rec.deadline and rec.deadline - 200 <= now then return expire",
            ),
        ],
    );
}

#[test]
fn lossy_input_is_caught() {
    is_caught(
        "lossy payload",
        &[(
            "tx:set(keys.input(tx, rec.id), s.input)",
            "tx:set(keys.input(tx, rec.id), (string.gsub(s.input, \"%z\", \"\")))",
        )],
    );
}

#[test]
fn a_lossy_result_is_caught() {
    is_caught("lossy result", &[("rec.result = result\n", "rec.result = (string.gsub(result, \"\\255\", \"?\"))\n")]);
}

#[test]
fn a_past_delay_that_stays_is_caught() {
    is_caught("past delay stays", &[("if rec.delay and rec.delay <= tx.now then rec.delay = nil end", "")]);
}

#[test]
fn an_event_that_is_missing_is_caught() {
    is_caught(
        "event lost",
        &[(
            "event.of_execution(tx, rec, \"execution.retried\"",
            "local _ = (function() end)(tx, rec, \"execution.retried\"",
        )],
    );
}

#[test]
fn an_event_that_is_doubled_is_caught() {
    is_caught(
        "event doubled",
        &[(
            "event.of_execution(tx, rec, \"execution.released\", \"actor\", a.actor)",
            "event.of_execution(tx, rec, \"execution.released\", {}) event.of_execution(tx, rec, \"execution.released\", {})",
        )],
    );
}

#[test]
fn a_forgotten_idempotency_key_is_caught() {
    is_caught("key forgotten", &[("if has_key(s) then remember_key(tx, s, place) end", "")]);
}

#[test]
fn a_priority_that_does_not_count_is_caught() {
    is_caught("priority ignored", &[("- rec.prio * copy.priority_weight\nend", "\nend")]);
}

#[test]
fn a_claim_that_takes_the_last_first_is_caught() {
    is_caught(
        "wrong order",
        &[("  q.at, q.taken = q.at + 2, q.taken + 1\n", "  q.at, q.taken = #q.page + 1, q.taken + 1\n")],
    );
}

#[test]
fn a_retry_too_many_is_caught() {
    is_caught(
        "retry too many",
        &[(
            "if failures >= policy.max_attempts then return false end",
            "if failures > policy.max_attempts then return false end",
        )],
    );
}

#[test]
fn a_delay_out_of_bounds_is_caught() {
    is_caught_from(
        61,
        "delay out of bounds",
        &[("if delay > retry.backoff.max_ms then delay = retry.backoff.max_ms end", "")],
    );
}

#[test]
fn a_write_before_validation_is_caught() {
    is_caught(
        "write before validate",
        &[(
            "if rec.phase ~= \"terminal\" then return reply.err(\"execution_not_terminal\", { lifecycle_phase = rec.phase }) end\n    local replays",
            "rec.replays = (rec.replays or 0) + 1 execution.save(tx, rec) tx:commit()\n    if rec.phase ~= \"terminal\" then return reply.err(\"execution_not_terminal\", { lifecycle_phase = rec.phase }) end\n    local replays",
        )],
    );
}

#[test]
fn a_payload_left_behind_is_caught() {
    is_caught("payload left behind", &[("if rec.input then tx:del(keys.input(tx, rec.id)) end", "")]);
}

#[test]
fn a_hold_that_does_not_hold_is_caught() {
    is_caught(
        "hold does not hold",
        &[("held_by_operator = \"blocked:operator\",", "held_by_operator = \"queue:any\",")],
    );
}

#[test]
fn a_lease_set_that_is_not_cleared_is_caught() {
    is_caught("lease entry stays", &[("    leases.remove(tx, rec)\n", "")]);
}

#[test]
fn a_repeated_claim_that_takes_more_is_caught() {
    is_caught("claim not replayed", &[("if again then return reply.ok(\"replayed\", { tasks = again }) end", "")]);
}

#[test]
fn a_grant_that_reserves_nothing_is_caught() {
    is_caught_from(21, "grant for anyone", &[("or rec.grant_worker ~= holder.instance or", "or")]);
}

#[test]
fn ready_work_that_is_not_announced_is_caught() {
    is_caught("silent ready", &[("if eligible then announce(tx, rec, name, fresh) end", "")]);
}

#[test]
fn a_dispatcher_that_is_never_called_back_is_caught() {
    is_caught("quiet for ever", &[("quiet and \"1\" or nil)", "\"1\")")]);
}

#[test]
fn a_wake_up_that_is_not_announced_is_caught() {
    is_caught("silent timer", &[("if not told and (wake == nil or at < wake) then announce(tx, at) end", "")]);
}

#[test]
fn a_lease_whose_end_is_not_announced_is_caught() {
    is_caught(
        "silent lease end",
        &[("if told and told > tx.now and told <= at then return end", "if told then return end")],
    );
}

#[test]
fn a_token_of_another_execution_is_caught() {
    is_caught_from(
        44,
        "token not bound to its execution",
        &[(
            "if w == nil or w.exec ~= a.execution_id then return reply.err(\"waitpoint_not_open\") end",
            "if w == nil then return reply.err(\"waitpoint_not_open\") end",
        )],
    );
}

#[test]
fn a_forged_token_is_caught() {
    is_caught("digest ignored", &[("if token[1] == digest then return token, tokens end", "return token, tokens")]);
}

#[test]
fn a_token_used_too_often_is_caught() {
    is_caught("uses not consumed", &[("if token[3] then token[3] = token[3] - 1 end", "")]);
}

#[test]
fn an_approver_by_name_is_caught() {
    is_caught(
        "approver taken from the caller",
        &[("local approver = token[2] or nil", "local approver = a.source_identity or token[2] or nil")],
    );
}

#[test]
fn an_epoch_that_is_not_raised_on_a_resume_is_caught() {
    is_caught(
        "epoch not raised on resume",
        &[(
            "  rec.epoch = tx.now_us > epoch and tx.now_us or epoch",
            "  if not continues then rec.epoch = tx.now_us > epoch and tx.now_us or epoch end",
        )],
    );
}

#[test]
fn an_early_signal_that_counts_twice_is_caught() {
    let from = "early[#early + 1] = { ref = s[1], name = s[2], who = s[3], waitpoint_id = entry[1], key = entry[2] }";
    is_caught_from(91, "early signal counted twice", &[(from, &format!("for _ = 1, 2 do {from} end"))]);
}

#[test]
fn an_early_signal_that_is_lost_is_caught() {
    is_caught_from(22, "early signal lost", &[("    buffer(w, s.ref, s)\n", "")]);
}

#[test]
fn a_frame_after_the_end_is_caught() {
    is_caught(
        "frame after close",
        &[(
            "if refusal then return refusal end\n    if #a.frames == 0",
            "if refusal and not (rec and rec.attempt_id == a.fence.attempt_id) then return refusal end\n    if #a.frames == 0",
        )],
    );
}

#[test]
fn a_frame_that_is_written_twice_is_caught() {
    is_caught_from(
        52,
        "repeated frames appended again",
        &[("return first, math.min(#a.frames, f.next - first)", "return f.next, 0")],
    );
}

#[test]
fn a_waitpoint_left_open_is_caught() {
    is_caught(
        "waitpoint open after resume",
        &[(
            "  waitpoint.close(tx, rec, \"resumed\", function(entry) return waitpoint.takes_part(entry, w.recorded) end)\n",
            "",
        )],
    );
}

#[test]
fn a_signal_after_the_time_of_its_waitpoint_is_caught() {
    is_caught_from(
        70,
        "signal after expiry",
        &[("w.state == \"closed\" or (w.expires and w.expires <= now)", "w.state == \"closed\"")],
    );
}

#[test]
fn an_old_token_that_lives_on_is_caught() {
    is_caught_from(
        68,
        "old token lives on",
        &[(
            "    found[1] = a.digest\n",
            "    w.tokens[#w.tokens + 1] = { found[1], found[2], found[3], found[4] }\n    found[1] = a.digest\n",
        )],
    );
}

#[test]
fn a_wait_that_ends_early_is_caught() {
    is_caught(
        "suspension timeout early",
        &[
            ("other = rec.wait_until\n", "other = rec.wait_until and rec.wait_until - 300\n"),
            (
                "if rec.wait_until and rec.wait_until <= now then",
                "if rec.wait_until and rec.wait_until - 300 <= now then",
            ),
        ],
    );
}

#[test]
fn a_member_that_runs_before_its_edges_count_is_caught() {
    is_caught(
        "child claimable before its edges",
        &[(
            "return rec.hidden ~= nil or (rec.deps ~= nil and dependencies.load(rec).decided == nil)",
            "return rec.hidden ~= nil",
        )],
    );
}

#[test]
fn a_skip_that_stops_at_the_first_member_is_caught() {
    is_caught(
        "skip not recursive",
        &[(
            "if rec.flow_id then owed.add(tx, rec, \"resolve\", 1) end",
            "if rec.spec.flow_id and rec.outcome ~= \"skipped\" then owed.add(tx, rec, \"resolve\", 1) end",
        )],
    );
}

#[test]
fn a_cancel_that_forgets_all_but_the_first_members_is_caught() {
    is_caught(
        "cancel walk ends after a page",
        &[("if #page < limit then", "if #page < limit or what == \"cancel\" then")],
    );
}

#[test]
fn counts_that_keep_a_retired_member_are_caught() {
    is_caught("counts not updated on retire", &[("  count(f, rec.was_state, -1)\n", "")]);
}

#[test]
fn verdicts_that_outlive_their_member_are_caught() {
    is_caught(
        "verdict not taken back on retire",
        &[("  flow.count_verdict(f, rec.verdict, -1)\n  f.stored", "  f.stored")],
    );
}

#[test]
fn data_of_the_wrong_upstream_is_caught() {
    is_caught_from(
        24,
        "passed data from the wrong upstream",
        &[(
            "local up = execution.load(tx, item.from)\n    if up and up.phase == \"terminal\" then\n      local value",
            "local up = execution.load(tx, dependencies.passed(tx, rec)[1].from)\n    if up and up.phase == \"terminal\" then\n      local value",
        )],
    );
}

#[test]
fn a_claim_that_ignores_a_stopped_flow_is_caught() {
    // A cancel may leave its whole walk to the timers. Then claims come before it more often.
    is_caught(
        "claim in a stopped flow",
        &[("return f and f.stop ~= nil", "return false"), ("local more = walk.step(tx, f, 2)", "local more = true")],
    );
}

#[test]
fn a_debt_that_is_dropped_is_caught() {
    is_caught("debt dropped", &[("if rest then keep(tx, rec, item.kind, rest) end", "")]);
}

#[test]
fn a_parent_that_goes_on_too_early_is_caught() {
    is_caught(
        "parent resumed before the last child",
        &[
            (
                "local over = k.open == 0 and parent.awaiting ~= nil",
                "local over = k.open <= 1 and parent.awaiting ~= nil",
            ),
            (
                "if children.load(rec).open > 0 then return execution.block",
                "if children.load(rec).open > 1 then return execution.block",
            ),
        ],
    );
}

#[test]
fn an_unsealed_flow_that_goes_early_is_caught() {
    is_caught("unsealed flow removed early", &[("unsealed_ms_max = 600000", "unsealed_ms_max = 3000")]);
}

#[test]
fn a_member_that_loses_a_race_and_goes_on_is_caught() {
    is_caught("impossible member not skipped", &[("if d.total - d.dead < needed then return \"skip\" end", "")]);
}

#[test]
fn a_release_that_forgets_what_was_held_is_caught() {
    is_caught_at_limits(
        "release forgets the hold",
        &[("    holds.give_back(tx, path, hold.amounts, alike[text])\n    drop_reservations", "    drop_reservations")],
    );
}

#[test]
fn a_limit_above_that_is_not_checked_is_caught() {
    is_caught_at_limits(
        "parent not checked",
        &[(
            "for _, b in ipairs(path) do\n    for _, d in ipairs(b.dimensions) do\n      local n = amounts[d.name]\n      if n and d.hard",
            "for _, b in ipairs({ path[1] }) do\n    for _, d in ipairs(b.dimensions) do\n      local n = amounts[d.name]\n      if n and d.hard",
        )],
    );
}

#[test]
fn a_window_with_one_start_too_many_is_caught() {
    is_caught_at_limits_from(
        9,
        "limit + 1 in a window",
        &[("use.passes = k.starts < rate.limit", "use.passes = k.starts <= rate.limit")],
    );
}

#[test]
fn a_smooth_rate_that_is_too_dense_is_caught() {
    is_caught_at_limits(
        "smooth rate too dense",
        &[(
            "if d.rate.mode == \"smooth\" then k.tat = tx.now + math.ceil(d.rate.window_ms / d.rate.limit) end",
            "if d.rate.mode == \"smooth\" then k.tat = tx.now + math.ceil(d.rate.window_ms / d.rate.limit / 2) end",
        )],
    );
}

#[test]
fn an_unused_admission_that_is_not_given_back_is_caught() {
    is_caught_at_limits("unused admission kept", &[("if items[i].unused then undo_start(tx, k, member) end", "")]);
}

#[test]
fn a_report_that_counts_twice_is_caught() {
    is_caught_at_limits(
        "dedup ignored",
        &[(
            "if known then return reply.ok(\"already_applied\", { same =",
            "if false then return reply.ok(\"already_applied\", { same =",
        )],
    );
}

#[test]
fn a_reset_that_keeps_what_is_held_as_used_is_caught() {
    is_caught_at_limits(
        "reset keeps held as used",
        &[(
            "b.used[d.name], b.base[d.name] = 0, 0\n    -- What",
            "b.used[d.name], b.base[d.name] = b.held[d.name], b.held[d.name]\n    -- What",
        )],
    );
}

#[test]
fn a_report_of_a_zombie_is_caught() {
    is_caught_at_limits(
        "zombie's report accepted",
        &[(
            "    if refusal then return refusal end\n    if next(a.dimensions) == nil",
            "    if refusal and rec == nil then return refusal end\n    if next(a.dimensions) == nil",
        )],
    );
}

#[test]
fn one_holder_above_the_cap_is_caught() {
    is_caught_at_limits("cap + 1", &[("passes = k.held < cap", "passes = k.held <= cap")]);
}

#[test]
fn a_waiter_that_is_never_called_is_caught() {
    is_caught_at_limits("call forgotten", &[("    owe_call(tx, k, one.id, one.holder)\n", "")]);
}

#[test]
fn room_that_nobody_hears_of_is_caught() {
    is_caught_at_limits_from(
        15,
        "room not counted",
        &[("b.refused, b.rooms = false, b.rooms + 1", "b.refused = false")],
    );
}

#[test]
fn a_weight_that_is_not_trued_up_is_caught() {
    is_caught_at_limits_from(41, "true-up lost", &[("  k.reweighed = { member, weight }\n", "")]);
}

#[test]
fn a_lease_that_ends_and_keeps_its_place_is_caught() {
    is_caught_at_limits(
        "hold outlives its lease",
        &[(
            "      else\n        owe(tx, rec, h.holder, set, not ran)\n",
            "      elseif not ran then\n        owe(tx, rec, h.holder, set, not ran)\n",
        )],
    );
}

#[test]
fn children_that_do_not_share_budgets_are_caught() {
    is_caught_at_limits("budgets not inherited", &[("ipairs({ own or {}, shared or {} })", "ipairs({ own or {} })")]);
}

#[test]
fn a_refused_report_in_the_ledger_of_the_accepted_is_caught() {
    is_caught_at_limits_from(
        13,
        "refused entered as accepted",
        &[("then usage.enter(tx, rec, p, accepted) end", "then usage.enter(tx, rec, p, true) end")],
    );
}

#[test]
fn a_reservation_that_runs_out_below_only_is_caught() {
    is_caught_at_limits_from(
        7,
        "expiry forgets the parents",
        &[(
            "  holds.give_back(tx, path, hold.amounts)\n  budget.save_all(tx, path)",
            "  holds.give_back(tx, { path[1] }, hold.amounts)\n  budget.save_all(tx, path)",
        )],
    );
}

#[test]
fn a_slot_kept_aside_that_never_returns_is_caught() {
    is_caught_at_limits_from(
        19,
        "kept slot lost",
        &[("for _, entry in ipairs(h.kept) do owe(tx, rec, entry[1], entry[2], false) end", "")],
    );
}

#[test]
fn an_end_that_owes_no_webhook_is_caught() {
    is_caught(
        "webhook forgotten",
        &[("  if rec.webhook then rec.hook =", "  if rec.webhook and rec.outcome ~= \"expired\" then rec.hook =")],
    );
}

#[test]
fn a_webhook_given_to_two_couriers_is_caught() {
    is_caught("webhook not held", &[("local again = now + limits.webhook_hold_ms", "local again = now + 1")]);
}

#[test]
fn a_webhook_that_leaves_its_line_is_caught() {
    is_caught(
        "webhook out of line",
        &[(
            "    if entry.member ~= id then head = math.min(head or entry.score, entry.score) end",
            "    if false then head = math.min(head or entry.score, entry.score) end",
        )],
    );
}
