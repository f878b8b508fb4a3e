//! Budgets over a running engine: what waits goes on when there is room, periods end by themselves, scopes reach submissions.

use std::collections::BTreeMap;

use ff_api::budgets::{ChangeBudgetBody, LimitPatchBody};
use ff_api::usage::Reserved;
use ff_core::contracts::ReportUsageResult;
use ff_core::error_code::ErrorCode;
use ff_core::state::PublicState;
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_engine::background::unblock;
use ff_engine::{BudgetFilter, Engine, NewChild, NewFlow, NewMember, Operations, child_id, fence_of};
use ff_script::Route;
use ff_script::generated::{
    self as wire, AdmissionReason, BudgetCandidate, BudgetRef, BudgetReset, BudgetScope, BudgetVerdict, ClearedBudgets,
    ClearedBudgetsReply, CreateBudget, DimensionLimit, Grant, NewBudget, NoteUsage, NoteUsageReply, OnHard, OnSoft,
    ResetType, ResumeCause, ScopeType, SettleUsage, Task, UsageOutcome,
};
use uuid::Uuid;

use crate::kit::*;
use crate::on_both_hosts;
use crate::wiretap::Wiretap;

fn tokens(n: i64) -> BTreeMap<String, i64> {
    [("tokens".to_owned(), n)].into()
}

fn limit(hard: i64) -> Vec<DimensionLimit> {
    vec![DimensionLimit { name: "tokens".to_owned(), hard: Some(hard), soft: None }]
}

fn never() -> BudgetReset {
    BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None }
}

fn budget(hard: i64) -> NewBudget {
    NewBudget {
        budget_id: BudgetId::mint(),
        namespace: "default".to_owned(),
        parent: None,
        next_reset_at: None,
        scope: BudgetScope { r#type: ScopeType::Custom, id: None },
        dimensions: limit(hard),
        reset: never(),
        on_soft: OnSoft::Notify,
        on_hard: OnHard::Suspend,
    }
}

fn scoped(kind: ScopeType, id: Option<String>) -> NewBudget {
    NewBudget { scope: BudgetScope { r#type: kind, id }, ..budget(1_000) }
}

async fn create(operations: &Operations, new: NewBudget) -> BudgetId {
    operations.create_budget(new, "ops").await.unwrap().0.budget_id
}

async fn raise(operations: &Operations, id: BudgetId, hard: i64) {
    let limit = LimitPatchBody { hard: Some(Some(hard)), soft: None };
    let change = ChangeBudgetBody { dimensions: [("tokens".to_owned(), limit)].into(), ..ChangeBudgetBody::default() };
    operations.change_budget(id, &change, "ops").await.unwrap();
}

/// Submits so much work with mixed priorities and parks all of it at the budget.
async fn park(operations: &Operations, id: BudgetId, count: usize) -> Vec<ExecutionId> {
    let new = (0..count).map(|n| {
        let mut new = work_in(u16::try_from(n % 8).unwrap(), "burn");
        new.fields.priority = Some(i64::try_from(n * 37 % 101).unwrap());
        new
    });
    for answer in operations.submit_many(new.collect()).await.unwrap() {
        answer.unwrap();
    }
    let tasks = claim(operations, &worker("w1", 60_000), u16::try_from(count).unwrap()).await;
    assert_eq!(tasks.len(), count);
    for task in &tasks {
        let answer = operations.report_usage(task.execution_id, &fence_of(task), id, tokens(11), None).await.unwrap();
        assert!(matches!(answer, ReportUsageResult::HardBreach { lease_ended: true, .. }), "{answer:?}");
    }
    tasks.into_iter().map(|task| task.execution_id).collect()
}

async fn all_resumable(operations: &Operations, ids: &[ExecutionId]) {
    for id in ids {
        becomes(operations, *id, PublicState::Resumable).await;
    }
}

async fn budgets_of(operations: &Operations, id: ExecutionId) -> Vec<BudgetId> {
    let named = operations.describe(id).await.unwrap().budgets;
    named.into_iter().map(|named| BudgetId::from_uuid(named.budget_id)).collect()
}

async fn running(operations: &Operations) -> Task {
    let id = submit(operations, work("burn")).await;
    claim_one(operations, &worker("w1", 60_000), id).await
}

/// No room waits to be told of any more.
async fn told(engine: &Engine) {
    let client = engine.operations().client();
    eventually("every mark is acknowledged", async || {
        for route in client.budget_routes() {
            let ClearedBudgetsReply::Cleared { items, .. } = client.call(route, &ClearedBudgets::new(1)).await.unwrap();
            if !items.is_empty() {
                return None;
            }
        }
        Some(())
    })
    .await;
}

/// Submits work of a partition that names the budget; its grant.
async fn granted(operations: &Operations, id: BudgetId, partition: u16, estimate: Option<i64>) -> Grant {
    let mut new = work_in(partition, "burn");
    new.fields.budgets = Some(vec![BudgetRef { budget_id: *id.as_uuid(), estimate: estimate.map(tokens) }]);
    submit(operations, new).await;
    grant_all(operations, Route::Execution(partition)).await.remove(0)
}

/// What a budget says to a grant.
async fn asked(operations: &Operations, id: BudgetId, grant: &Grant) -> BudgetVerdict {
    let estimate = grant.budgets.as_ref().and_then(|named| named[0].estimate.clone());
    let candidate = BudgetCandidate::new(grant.execution_id, grant.grant_id, grant.expires_at);
    let answers = operations.admit_budget(id, vec![BudgetCandidate { estimate, ..candidate }]).await;
    answers.unwrap().remove(0)
}

/// Records a refusal as admission does.
async fn refuse(operations: &Operations, id: BudgetId, grant: &Grant, verdict: &BudgetVerdict) {
    let facts = [
        ("budget_id", id.to_string()),
        ("dimension", "tokens".to_owned()),
        ("refusal", verdict.refusal.unwrap().to_string()),
        ("rooms", verdict.rooms.unwrap().to_string()),
    ];
    block(operations, grant, AdmissionReason::WaitingForBudget, &facts).await;
}

on_both_hosts! {
    async fn who_is_blocked_after_the_first_walk_is_told_by_the_second(kit) {
        let tap = Wiretap::on(kit.host());
        let engine = kit.engine_on(tap.clone()).await;
        let operations = engine.operations();
        let client = operations.client();
        let first = create(operations, budget(10)).await;
        let second = loop {
            let id = create(operations, budget(10)).await;
            if client.route_of_budget(&id) == client.route_of_budget(&first) {
                break id;
            }
        };
        let other = granted(operations, first, 1, Some(11)).await;
        assert!(!asked(operations, first, &other).await.admitted);
        let late = granted(operations, second, 0, Some(11)).await;
        let verdict = asked(operations, second, &late).await;
        assert!(!verdict.admitted);
        raise(operations, first, 100).await;
        eventually("one is walked for", async || (tap.calls("ff_unblock_budget") >= 8).then_some(())).await;
        raise(operations, second, 100).await;
        eventually("and the other", async || (tap.calls("ff_unblock_budget") >= 16).then_some(())).await;
        // Its refusal arrives long after the walk, as long as its grant is open.
        tokio::time::sleep(ms(2_600)).await;
        refuse(operations, second, &late, &verdict).await;
        becomes(operations, late.execution_id, PublicState::Waiting).await;
        engine.stop().await;
    }

    async fn who_waits_for_an_approval_that_was_given_is_found_by_the_sweep(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let soft = vec![DimensionLimit { name: "tokens".to_owned(), hard: None, soft: Some(5) }];
        let new = NewBudget { dimensions: soft, on_soft: OnSoft::RequireApproval, ..budget(10) };
        let id = create(operations, new).await;
        let task = running(operations).await;
        operations.report_usage(task.execution_id, &fence_of(&task), id, tokens(6), None).await.unwrap();
        let late = granted(operations, id, 0, None).await;
        let verdict = asked(operations, id, &late).await;
        assert!(!verdict.admitted);
        operations.approve_budget(id, "ann").await.unwrap();
        told(&engine).await;
        refuse(operations, id, &late, &verdict).await;
        becomes(operations, late.execution_id, PublicState::RateLimited).await;
        assert_eq!(unblock::sweep_once(operations, Route::Execution(0)).await.unwrap(), 1);
        becomes(operations, late.execution_id, PublicState::Waiting).await;
        engine.stop().await;
    }

    async fn who_fits_is_told_behind_any_number_that_does_not(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let client = operations.client();
        let id = create(operations, budget(100)).await;
        let [large, small] = [90, 10].map(|n| async move { granted(operations, id, 1, Some(n)).await });
        let (large, small) = (large.await, small.await);
        assert!(asked(operations, id, &large).await.admitted && asked(operations, id, &small).await.admitted);
        let work = |n: usize| {
            let mut new = work_in(0, "burn");
            let (estimate, priority) = if n == 200 { (5, 0) } else { (50, 5) };
            new.fields.priority = Some(priority);
            new.fields.budgets = Some(vec![BudgetRef { budget_id: *id.as_uuid(), estimate: Some(tokens(estimate)) }]);
            new
        };
        for answer in operations.submit_many((0..=200).map(work).collect()).await.unwrap() {
            answer.unwrap();
        }
        let grants = grant_all(operations, Route::Execution(0)).await;
        assert_eq!(grants.len(), 201);
        for grant in &grants {
            let verdict = asked(operations, id, grant).await;
            assert!(!verdict.admitted);
            refuse(operations, id, grant, &verdict).await;
        }
        let fits = grants.last().unwrap();
        let holder = wire::Holder { execution_id: small.execution_id, expires_at: None, holder_id: small.grant_id };
        let release = wire::ReleaseBudget { budget_id: id, holders: vec![holder] };
        client.call(client.route_of_budget(&id), &release).await.unwrap();
        becomes(operations, fits.execution_id, PublicState::Waiting).await;
        for grant in &grants[..200] {
            let state = operations.describe(grant.execution_id).await.unwrap().state;
            assert_eq!(state, PublicState::RateLimited, "it does not fit");
        }
        engine.stop().await;
    }

    async fn a_budget_that_does_not_answer_holds_no_slot_back(kit) {
        let tap = Wiretap::on(kit.host());
        let engine = kit.engine_on(tap.clone()).await;
        let operations = engine.operations();
        let client = operations.client();
        let (id, route) = (create(operations, budget(1_000)).await, Route::Execution(0));
        let quota_id = QuotaPolicyId::from_uuid(Uuid::now_v7());
        let quota = wire::Quota { concurrency: Some(1), ..wire::Quota::new(quota_id, "default".to_owned(), false) };
        operations.create_quota(quota, "ops").await.unwrap();
        let mut new = work_in(0, "metered");
        new.fields.quotas = Some(vec![wire::QuotaRef::new(*quota_id.as_uuid(), "k".to_owned())]);
        submit(operations, new).await;
        let grant = grant_all(operations, route).await.remove(0);
        let candidate = wire::QuotaCandidate {
            execution_id: grant.execution_id,
            expires_at: grant.expires_at,
            holder_id: grant.grant_id,
            key: "k".to_owned(),
            number: grant.number,
            score: grant.score,
            weight: 1,
        };
        assert!(operations.admit_quota(quota_id, vec![candidate]).await.unwrap()[0].admitted);
        // More reports than are read at once stand in front of what gives the slot back.
        tap.hang("ff_apply_usage");
        for _ in 0..2 {
            let reporter = submit(operations, work_in(0, "burn")).await;
            let task = claim_one(operations, &worker("w1", 60_000), reporter).await;
            for _ in 0..40 {
                client.call(route, &NoteUsage::new(id, tokens(1), reporter, fence_of(&task))).await.unwrap();
            }
        }
        eventually("the reports are owed", async || {
            let wire::ReadOutboxReply::Effects { items } =
                client.call(route, &wire::ReadOutbox::new(1_000)).await.unwrap();
            (items.len() >= 80).then_some(())
        })
        .await;
        client.call(route, &wire::ReleaseGrant::new(grant.execution_id, grant.grant_id)).await.unwrap();
        eventually("the slot is back", async || {
            (operations.quota(quota_id, Some("k")).await.unwrap().1.unwrap().held == 0).then_some(())
        })
        .await;
        engine.stop().await;
    }

    async fn a_raise_resumes_all_that_waits_by_priority(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let id = create(operations, budget(10)).await;
        let parked = park(operations, id, 200).await;
        assert_eq!(operations.budget(id).await.unwrap().budget.dimensions[0].used, 0);
        raise(operations, id, 10_000).await;
        all_resumable(operations, &parked).await;
        for route in operations.client().execution_routes() {
            let claimed = operations.claim(route, &worker("w2", 60_000), 64, Uuid::now_v7()).await.unwrap();
            let order: Vec<i64> = claimed.tasks.iter().map(|task| task.priority).collect();
            assert_eq!(order.len(), 25);
            assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");
            for task in claimed.tasks {
                assert_eq!((task.attempt_index, task.resume.as_ref().unwrap().cause), (0, ResumeCause::Budget));
                let answer = operations.report_usage(task.execution_id, &fence_of(&task), id, tokens(11), None).await;
                assert_eq!(answer.unwrap(), ReportUsageResult::Ok);
                complete(operations, &task, b"").await;
            }
        }
        assert_eq!(operations.budget(id).await.unwrap().budget.dimensions[0].used, 2_200);
        told(&engine).await;
        engine.stop().await;
    }

    async fn room_that_nobody_heard_of_is_found_at_the_start(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let id = create(operations, budget(10)).await;
        let parked = park(operations, id, 9).await;
        let tool = kit.tool(kit.host()).await;
        engine.stop().await;
        operations_of(&tool, id).await;
        let engine = kit.engine().await;
        all_resumable(engine.operations(), &parked).await;
        engine.stop().await;
    }

    async fn who_comes_to_wait_after_the_walk_is_found_by_the_sweep(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let client = operations.client();
        let id = create(operations, budget(10)).await;
        let task = running(operations).await;
        // Refused, then there is room and everyone was told; only then it parks.
        let refused = wire::UsageReport::new("early".to_owned(), tokens(11));
        let refused = wire::ApplyUsage { budget_id: id, report: refused };
        client.call(client.route_of_budget(&id), &refused).await.unwrap();
        raise(operations, id, 100).await;
        told(&engine).await;
        let call = NoteUsage::new(id, tokens(11), task.execution_id, fence_of(&task));
        let route = client.route_of(&task.execution_id);
        let NoteUsageReply::Noted { report } = client.call(route, &call).await.unwrap();
        let breach = wire::UsageBreach {
            action: OnHard::Suspend, budget_id: id, dimension: "tokens".to_owned(), limit: 10, rooms: 0, used: 0,
        };
        let settle = SettleUsage {
            breach: Some(breach),
            ..SettleUsage::new(task.execution_id, UsageOutcome::HardBreach, report.sequence)
        };
        client.call(route, &settle).await.unwrap();
        becomes(operations, task.execution_id, PublicState::RateLimited).await;
        unblock::sweep_once(operations, route).await.unwrap();
        becomes(operations, task.execution_id, PublicState::Resumable).await;
        assert_eq!(unblock::sweep_once(operations, route).await.unwrap(), 0);
        engine.stop().await;
    }

    async fn the_end_of_a_period_resumes_what_waits(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let reset = BudgetReset { r#type: ResetType::Interval, interval_ms: Some(3_000), zone: None };
        let id = create(operations, NewBudget { reset, ..budget(12) }).await;
        let task = running(operations).await;
        let fence = fence_of(&task);
        let report = |n| operations.report_usage(task.execution_id, &fence, id, tokens(n), None);
        assert_eq!(report(11).await.unwrap(), ReportUsageResult::Ok);
        assert!(matches!(report(11).await.unwrap(), ReportUsageResult::HardBreach { lease_ended: true, .. }));
        becomes(operations, task.execution_id, PublicState::Resumable).await;
        let again = claim_one(operations, &worker("w2", 60_000), task.execution_id).await;
        let answer = operations.report_usage(task.execution_id, &fence_of(&again), id, tokens(11), None).await;
        assert_eq!(answer.unwrap(), ReportUsageResult::Ok);
        engine.stop().await;
    }

    async fn a_calendar_is_supplied_with_its_next_end(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let day = |zone: &str| BudgetReset { r#type: ResetType::Day, interval_ms: None, zone: Some(zone.to_owned()) };
        let unknown = NewBudget { reset: day("Mars/Olympus"), ..budget(10) };
        assert_eq!(refusal(operations.create_budget(unknown, "ops").await), ErrorCode::InvalidArgument);
        let id = create(operations, NewBudget { reset: day("Europe/Berlin"), ..budget(10) }).await;
        let made = operations.budget(id).await.unwrap().budget;
        let left = made.next_reset_at.unwrap() - made.created_at;
        assert!((0..=25 * 3_600_000).contains(&left), "{left}");
        // One whose first period ends at once gets the end of its second from the engine.
        let other = BudgetId::mint();
        let soon = NewBudget {
            next_reset_at: Some(made.created_at + 300),
            ..NewBudget::new(
                other,
                "default".to_owned(),
                BudgetScope { r#type: ScopeType::Custom, id: None },
                limit(10),
                day("Europe/Berlin"),
                OnSoft::Notify,
                OnHard::Suspend,
            )
        };
        let call = CreateBudget { actor: "ops".to_owned(), budget: soon };
        operations.client().call(operations.client().route_of_budget(&other), &call).await.unwrap();
        let next = eventually("the next end is supplied", async || {
            let budget = operations.budget(other).await.unwrap().budget;
            budget.next_reset_at.filter(|_| budget.period == 2)
        })
        .await;
        assert_eq!(next, made.next_reset_at.unwrap());
        told(&engine).await;
        engine.stop().await;
    }

    async fn a_report_whose_reporter_died_is_finished(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let id = create(operations, budget(100)).await;
        let task = running(operations).await;
        let call = NoteUsage::new(id, tokens(30), task.execution_id, fence_of(&task));
        operations.client().call(operations.client().route_of(&task.execution_id), &call).await.unwrap();
        assert_eq!(operations.usage(task.execution_id).await.unwrap().pending, 1);
        eventually("the outbox finishes it", async || {
            let usage = operations.usage(task.execution_id).await.unwrap();
            (usage.pending == 0 && usage.ledger[0].accepted == 30).then_some(())
        })
        .await;
        assert_eq!(operations.budget(id).await.unwrap().budget.dimensions[0].used, 30);
        // A report that its budget cannot take does not wait for ever either.
        let unknown: BTreeMap<String, i64> = [("apples".to_owned(), 1)].into();
        let answer = operations.report_usage(task.execution_id, &fence_of(&task), id, unknown, None).await;
        assert_eq!(refusal(answer), ErrorCode::InvalidArgument);
        assert_eq!(operations.usage(task.execution_id).await.unwrap().pending, 0);
        engine.stop().await;
    }

    async fn reservations_are_settled_and_given_back(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let root = create(operations, budget(100)).await;
        let id = create(operations, NewBudget { budget_id: BudgetId::mint_with_seed(root.seed()), parent: Some(root), ..budget(1_000) }).await;
        let (first, second) = (Uuid::now_v7(), Uuid::now_v7());
        let held = operations.reserve(id, first, tokens(80), 60_000).await.unwrap();
        assert!(matches!(held, Reserved::Ok { expires_at: Some(_), .. }));
        let breach = operations.reserve(id, second, tokens(21), 60_000).await.unwrap();
        assert!(matches!(breach, Reserved::HardBreach { budget_id, limit: 100, .. } if budget_id == root));
        assert_eq!(operations.settle_reservation(id, first, tokens(50)).await.unwrap(), ReportUsageResult::Ok);
        assert_eq!(operations.settle_reservation(id, first, tokens(50)).await.unwrap(), ReportUsageResult::AlreadyApplied);
        operations.reserve(id, second, tokens(50), 60_000).await.unwrap();
        operations.release_reservation(id, second).await.unwrap();
        let status = operations.budget(root).await.unwrap();
        assert_eq!((status.budget.dimensions[0].used, status.budget.dimensions[0].held, status.children), (50, 0, 1));
        let page = operations.budgets(&BudgetFilter::default(), None, 10).await.unwrap();
        assert_eq!((page.items.len(), page.next), (2, None));
        assert_eq!(refusal(operations.delete_budget(root, "ops").await), ErrorCode::BudgetInUse);
        told(&engine).await;
        engine.stop().await;
    }

    async fn scopes_reach_what_is_submitted_in_them(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let flow = NewFlow::new("default", "pipeline").with_member(NewMember::new("a", "step"));
        let of_namespace = create(operations, scoped(ScopeType::Namespace, None)).await;
        let of_lane = create(operations, scoped(ScopeType::Lane, Some(LANE.to_owned()))).await;
        let elsewhere = create(operations, scoped(ScopeType::Lane, Some("other".to_owned()))).await;
        let of_flow = create(operations, scoped(ScopeType::Flow, Some(flow.fields.flow_id.to_string()))).await;
        let custom = create(operations, budget(10)).await;

        let mut new = work("burn");
        new.fields.budgets = Some(vec![BudgetRef { budget_id: *custom.as_uuid(), estimate: Some(tokens(5)) }]);
        let id = submit(operations, new.clone()).await;
        let mut expected = vec![custom, of_lane, of_namespace];
        expected[1..].sort();
        let mut named = budgets_of(operations, id).await;
        named[1..].sort();
        assert_eq!(named, expected);
        assert!(!named.contains(&elsewhere));

        let submitted = operations.submit_flow(flow).await.unwrap();
        let member = budgets_of(operations, submitted.members[0].1).await;
        assert!([of_namespace, of_lane, of_flow].iter().all(|id| member.contains(id)), "{member:?}");

        // A budget nobody made is refused, and so is one that is gone.
        new.fields.execution_id = ExecutionId::mint();
        new.fields.budgets = Some(vec![BudgetRef { budget_id: Uuid::now_v7(), estimate: None }]);
        assert_eq!(refusal(operations.submit(new).await), ErrorCode::BudgetNotFound);
        let mut strange = work("burn");
        let apples: BTreeMap<String, i64> = [("apples".to_owned(), 1)].into();
        strange.fields.budgets = Some(vec![BudgetRef { budget_id: *custom.as_uuid(), estimate: Some(apples) }]);
        assert_eq!(refusal(operations.submit(strange).await), ErrorCode::InvalidArgument);
        for id in [of_namespace, of_lane, of_flow, elsewhere] {
            operations.delete_budget(id, "ops").await.unwrap();
        }
        let id = submit(operations, work("burn")).await;
        assert_eq!(budgets_of(operations, id).await, []);
        engine.stop().await;
    }

    async fn a_scope_follows_its_budget_although_nobody_told_it(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let client = operations.client();
        // The creator and the deleter died right after their first call.
        let id = BudgetId::mint();
        let budget = NewBudget::new(id, "default".into(), BudgetScope { r#type: ScopeType::Lane, id: Some(LANE.into()) }, limit(10), never(), OnSoft::Notify, OnHard::Suspend);
        let route = client.route_of_budget(&id);
        client.call(route, &CreateBudget { actor: "ops".into(), budget }).await.unwrap();
        eventually("the scope is told", async || {
            let submitted = submit(operations, work("burn")).await;
            (budgets_of(operations, submitted).await == [id]).then_some(())
        }).await;
        client.call(route, &wire::DeleteBudget { actor: "ops".into(), budget_id: id }).await.unwrap();
        eventually("the scope is told", async || {
            let submitted = submit(operations, work("burn")).await;
            budgets_of(operations, submitted).await.is_empty().then_some(())
        }).await;
        operations.delete_budget(id, "ops").await.unwrap();
        assert_eq!(refusal(operations.delete_budget(BudgetId::mint(), "ops").await), ErrorCode::BudgetNotFound);
        for _ in 0..8 {
            create(operations, scoped(ScopeType::Namespace, None)).await;
        }
        let ninth = BudgetId::mint();
        let refused = operations.create_budget(NewBudget { budget_id: ninth, ..scoped(ScopeType::Namespace, None) }, "ops").await;
        assert_eq!(refusal(refused), ErrorCode::InvalidArgument);
        assert_eq!(refusal(operations.budget(ninth).await), ErrorCode::BudgetNotFound, "nothing was made");
        engine.stop().await;
    }

    async fn a_budget_is_named_once_and_in_its_namespace(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let ours = create(operations, budget(10)).await;
        let theirs = create(operations, NewBudget { namespace: "other".into(), ..budget(10) }).await;
        let named = |ids: &[BudgetId]| Some(ids.iter().map(|id| BudgetRef { budget_id: *id.as_uuid(), estimate: None }).collect::<Vec<_>>());
        let mut twice = work("burn");
        twice.fields.budgets = named(&[ours, ours]);
        assert_eq!(refusal(operations.submit(twice).await), ErrorCode::InvalidArgument);
        let mut foreign = work("burn");
        foreign.fields.budgets = named(&[theirs]);
        assert_eq!(refusal(operations.submit(foreign).await), ErrorCode::BudgetNotFound);
        for (wrong, code) in [(theirs, ErrorCode::BudgetNotFound), (BudgetId::mint(), ErrorCode::BudgetNotFound)] {
            let mut flow = NewFlow::new("default", "pipeline").with_member(NewMember::new("a", "step"));
            flow.fields.budgets = named(&[wrong]);
            assert_eq!(refusal(operations.submit_flow(flow).await), code);
        }
        engine.stop().await;
    }

    async fn flows_within_a_flow_share_its_budgets(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let (shared, own) = (create(operations, budget(100)).await, create(operations, budget(100)).await);
        let named = |id: BudgetId| Some(vec![BudgetRef { budget_id: *id.as_uuid(), estimate: None }]);
        let mut inner = NewFlow::new("default", "inner").with_member(NewMember::new("deep", "step"));
        inner.fields.budgets = named(own);
        let mut outer = NewFlow::new("default", "outer").with_member(NewMember { flow: Some(Box::new(inner)), ..NewMember::new("nest", "inner") });
        outer.fields.budgets = named(shared);
        let of_flow = create(operations, scoped(ScopeType::Flow, Some(outer.fields.flow_id.to_string()))).await;
        operations.submit_flow(outer).await.unwrap();
        let deep = eventually("the inner member is there", async || {
            let page = operations.list(&ff_engine::ExecutionFilter::default(), None, 100).await.unwrap();
            page.items.into_iter().find(|item| item.kind == "step").map(|item| item.execution_id)
        }).await;
        let mut found = budgets_of(operations, deep).await;
        found.sort();
        let mut expected = vec![shared, own, of_flow];
        expected.sort();
        assert_eq!(found, expected);
        engine.stop().await;
    }

    async fn a_hold_of_an_execution_that_is_gone_is_found_and_dropped(kit) {
        let tool = kit.tool(kit.host()).await;
        let operations = tool.operations();
        let id = create(operations, budget(100)).await;
        let ghost = wire::BudgetCandidate {
            estimate: Some(tokens(30)),
            ..wire::BudgetCandidate::new(ExecutionId::mint(), Uuid::now_v7(), 1)
        };
        let call = wire::AdmitBudget { budget_id: id, candidates: vec![ghost] };
        operations.client().call(operations.client().route_of_budget(&id), &call).await.unwrap();
        assert_eq!(operations.budget(id).await.unwrap().budget.dimensions[0].held, 30);
        assert_eq!(strays(operations, false).await, 1);
        assert_eq!(strays(operations, true).await, 1);
        assert_eq!(strays(operations, false).await, 0);
        assert_eq!(operations.budget(id).await.unwrap().budget.dimensions[0].held, 0);
    }

    async fn children_share_the_budgets_of_their_parent(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let task = running(operations).await;
        let of_lane = create(operations, scoped(ScopeType::Lane, Some("kids".to_owned()))).await;
        let request = Uuid::now_v7();
        let child = child_id(task.execution_id, request, 0);
        let new = NewChild::new(child, "default", "kids", "burn");
        operations.spawn(task.execution_id, &fence_of(&task), vec![new], None).await.unwrap();
        assert_eq!(budgets_of(operations, child).await, [of_lane]);
        engine.stop().await;
    }
}

/// Checks the store; answers what was found of holders.
async fn strays(operations: &Operations, repair: bool) -> usize {
    let report = ff_engine::Fsck::run(operations.client(), repair).await.unwrap();
    report.findings.iter().filter(|finding| finding.invariant == 32).count()
}

/// Raises the budget without an engine.
async fn operations_of(tool: &Engine, id: BudgetId) {
    raise(tool.operations(), id, 1_000).await;
}
