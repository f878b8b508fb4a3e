//! Budgets and quotas from a worker's side: reports, reservations, throttles, weights, and what a breach does to a task.

use std::time::Duration;

use ff_core::state::{AttemptState, BlockingReason, Outcome, PublicState};
use ff_core::types::{AttemptIndex, BudgetId, QuotaPolicyId, TimestampMs};
use ff_sdk::snapshot::BudgetSnapshot;
use ff_sdk::task::{
    BreachAction, OnHard, OnSoft, ReportUsageResult, Reservation, ReserveResult, ResumeCause, WaitChildrenOutcome,
};
use ff_sdk::testing::{Call, CrashPoint, TestEngine};
use ff_sdk::{
    BudgetChange, BudgetSpec, CancelReason, ChildSpec, ClaimedTask, MemberSpec, NewExecution, QuotaChange, QuotaSpec,
    SdkError,
};

use crate::flows::flow;
use crate::world::{World, claim, until};

pub async fn budget(world: &World, hard: u64, on_hard: OnHard) -> BudgetId {
    let spec = BudgetSpec::new("default").hard("tokens", hard).measure("usd").on_hard(on_hard);
    world.admin.create_budget(spec).await.unwrap().budget_id
}

async fn standing(world: &World, id: &BudgetId) -> (i64, i64) {
    let tokens = world.admin.describe_budget(id).await.unwrap().dimensions["tokens"];
    (tokens.used, tokens.held)
}

pub async fn raise(world: &World, id: &BudgetId, hard: u64) -> BudgetSnapshot {
    world.admin.change_budget(id, BudgetChange::default().hard("tokens", Some(hard))).await.unwrap()
}

fn held(answer: ReserveResult) -> Reservation {
    match answer {
        ReserveResult::Ok(reservation) => reservation,
        breach => panic!("nothing is held: {breach:?}"),
    }
}

fn field(error: SdkError) -> String {
    match error {
        SdkError::Config { field: Some(field), .. } => field,
        SdkError::Engine(error) => match *error {
            ff_sdk::EngineError::Validation {
                kind: ff_core::error::ValidationKind::InvalidArgument { field }, ..
            } => field,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn code(error: &SdkError) -> &'static str {
    error.engine().map_or("none", |error| error.code())
}

/// Meets the limit of 10 with the 11th token: 4 are counted before.
async fn breach(task: &ClaimedTask, id: &BudgetId) -> ReportUsageResult {
    assert_eq!(task.report_usage(id, &[("tokens", 4)], None).await.unwrap(), ReportUsageResult::Ok);
    task.report_usage(id, &[("tokens", 7)], None).await.unwrap()
}

fn breached(id: &BudgetId, action: BreachAction) -> ReportUsageResult {
    let (budget_id, dimension) = (*id, "tokens".to_owned());
    ReportUsageResult::HardBreach { budget_id, dimension, used: 4, limit: 10, action, lease_ended: true }
}

for_each_transport! {
    async fn a_report_is_counted_once_by_its_key_and_told_about_the_soft_limit(world: &World) {
        let worker = world.worker("w-1").await;
        let spec = BudgetSpec::new("default").hard("tokens", 100).soft("tokens", 50).measure("usd");
        let id = world.admin.create_budget(spec).await.unwrap().budget_id;
        let execution = world.admin.submit(world.new_execution("ask").budget(&id)).await.unwrap();
        let task = claim(&worker).await;
        assert_eq!(task.report_usage(&id, &[("tokens", 20), ("usd", 3)], Some("a")).await.unwrap(), ReportUsageResult::Ok);
        assert_eq!(task.report_usage(&id, &[("tokens", 20)], Some("a")).await.unwrap(), ReportUsageResult::AlreadyApplied);
        let soft = ReportUsageResult::SoftBreach { budget_id: id, dimension: "tokens".to_owned(), used: 50, limit: 50 };
        assert_eq!(task.report_usage(&id, &[("tokens", 30)], None).await.unwrap(), soft);
        assert_eq!(standing(world, &id).await, (50, 0));

        let table: [(&[(&str, u64)], &str); 5] = [
            (&[("tokens", 1), ("tokens", 2)], "dimensions.tokens"),
            (&[("tokens", 0)], "dimensions.tokens"),
            (&[("tokens", 1 << 53)], "dimensions.tokens"),
            (&[("tokens", 1), ("apples", 2)], "dimensions.apples"),
            (&[], "dimensions"),
        ];
        for (dimensions, wanted) in table {
            assert_eq!(field(task.report_usage(&id, dimensions, None).await.unwrap_err()), wanted);
            assert_eq!(field(task.reserve(&id, dimensions, None).await.unwrap_err()), wanted);
        }
        let unknown = task.report_usage(&BudgetId::mint(), &[("tokens", 1)], None).await.unwrap_err();
        assert_eq!(code(&unknown), "budget_not_found");
        assert_eq!(standing(world, &id).await, (50, 0), "what is refused changes nothing");
        let usage = world.admin.usage(&execution).await.unwrap();
        assert_eq!((usage.used("tokens"), usage.used("usd"), usage.pending), (50, 3, 0));
        task.complete(None).await.unwrap();
    }

    async fn what_is_settled_returns_the_difference_and_holds_die_with_the_lease(world: &World) {
        let worker = world.worker("w-1").await;
        let id = budget(world, 100, OnHard::Suspend).await;
        let execution = world.admin.submit(world.new_execution("ask").estimate(&id, &[("tokens", 10)])).await.unwrap();
        let task = claim(&worker).await;
        assert_eq!(standing(world, &id).await, (0, 10));
        let first = held(task.reserve(&id, &[("tokens", 60)], Some("call")).await.unwrap());
        assert_eq!(held(task.reserve(&id, &[("tokens", 60)], Some("call")).await.unwrap()), first);
        let second = held(task.reserve(&id, &[("tokens", 20)], None).await.unwrap());
        let full = ReserveResult::HardBreach { budget_id: id, dimension: "tokens".to_owned(), used: 0, limit: 100 };
        assert_eq!(task.reserve(&id, &[("tokens", 11)], None).await.unwrap(), full);
        assert_eq!(standing(world, &id).await, (0, 90));
        assert_eq!(task.settle(&first, &[("tokens", 45)]).await.unwrap(), ReportUsageResult::Ok);
        assert_eq!(task.settle(&first, &[("tokens", 45)]).await.unwrap(), ReportUsageResult::AlreadyApplied);
        assert_eq!(standing(world, &id).await, (45, 30));
        task.release(&second).await.unwrap();
        task.release(&second).await.unwrap();
        assert_eq!(standing(world, &id).await, (45, 10));
        assert_eq!(world.admin.usage(&execution).await.unwrap().used("tokens"), 45);

        held(task.reserve(&id, &[("tokens", 40)], None).await.unwrap());
        task.yield_back().await.unwrap();
        let task = claim(&worker).await;
        until("the hold of the first lease is given back", || async { standing(world, &id).await == (45, 10) }).await;
        held(task.reserve(&id, &[("tokens", 40)], None).await.unwrap());
        task.complete(None).await.unwrap();
        until("nothing is held for an execution that ended", || async { standing(world, &id).await == (45, 0) }).await;
    }

    async fn a_parked_task_goes_on_with_the_same_attempt_when_the_limit_is_raised(world: &World) {
        let worker = world.worker("w-1").await;
        let id = budget(world, 10, OnHard::Suspend).await;
        let execution = world.admin.submit(world.new_execution("ask").budget(&id)).await.unwrap();
        let task = claim(&worker).await;
        let (attempt, epoch) = (*task.attempt_id(), task.lease_epoch());
        let kept = held(task.reserve(&id, &[("tokens", 1)], None).await.unwrap());
        assert_eq!(breach(&task, &id).await, breached(&id, BreachAction::Suspend));

        assert_eq!(task.cancellation().reason(), Some(CancelReason::HardBreach));
        assert!(!task.is_lease_healthy());
        for error in [
            task.report_usage(&id, &[("tokens", 1)], None).await.unwrap_err(),
            task.update_progress(50, "half").await.unwrap_err(),
            task.renew_lease().await.unwrap_err(),
            task.append_frame("token", b"x", None).await.unwrap_err(),
            task.settle(&kept, &[("tokens", 1)]).await.unwrap_err(),
            task.throttle_for(&QuotaPolicyId::mint(), "k", Duration::from_secs(1)).await.unwrap_err(),
            task.complete(None).await.unwrap_err(),
        ] {
            assert_eq!(code(&error), "hard_breach");
            assert!(error.to_string().contains("tokens") && error.to_string().contains(&id.to_string()), "{error}");
        }
        let parked = world.describe(&execution).await;
        assert_eq!((parked.state, parked.blocking_reason), (PublicState::RateLimited, Some(BlockingReason::WaitingForBudget)));
        assert!(worker.claim_next().await.unwrap().is_none());

        raise(world, &id, 100).await;
        let task = claim(&worker).await;
        assert_eq!((task.execution_id(), task.attempt_id()), (&execution, &attempt));
        assert_eq!(task.attempt_index(), AttemptIndex::new(0));
        assert!(task.lease_epoch() > epoch);
        assert_eq!(task.resume().map(|resume| resume.cause), Some(ResumeCause::Budget));
        assert!(task.resume_signals().await.unwrap().is_empty());
        assert_eq!(task.report_usage(&id, &[("tokens", 7)], None).await.unwrap(), ReportUsageResult::Ok);
        task.complete(None).await.unwrap();
        let usage = world.admin.usage(&execution).await.unwrap();
        assert_eq!((usage.used("tokens"), usage.ledger[0].refused), (11, 7));
    }

    async fn a_parked_task_is_not_started_before_what_was_refused_fits(world: &World) {
        let worker = world.worker("w-1").await;
        let id = budget(world, 10, OnHard::Suspend).await;
        let execution = world.admin.submit(world.new_execution("ask").estimate(&id, &[("tokens", 6)])).await.unwrap();
        let task = claim(&worker).await;
        assert_eq!(breach(&task, &id).await, breached(&id, BreachAction::Suspend));
        drop(task);
        until("its hold is given back", || async { standing(world, &id).await == (4, 0) }).await;
        // Six tokens are free, and its estimate would fit: but it asked for seven.
        assert!(worker.claim_many(1, Duration::from_millis(500)).await.unwrap().is_empty());
        until("it waits for the budget", || async {
            worker.claim_next().await.unwrap().is_none()
                && world.describe(&execution).await.blocking_reason == Some(BlockingReason::WaitingForBudget)
        })
        .await;
        raise(world, &id, 11).await;
        let task = claim(&worker).await;
        assert_eq!((task.execution_id(), standing(world, &id).await), (&execution, (4, 7)), "held for the same report");
        assert_eq!(task.report_usage(&id, &[("tokens", 7)], None).await.unwrap(), ReportUsageResult::Ok);
        task.complete(None).await.unwrap();
    }

    async fn each_action_of_a_budget_does_what_it_says(world: &World) {
        let worker = world.worker("w-1").await;
        for (on_hard, action, outcome) in [
            (OnHard::Block, BreachAction::Block, None),
            (OnHard::Cancel, BreachAction::Cancel, Some(Outcome::Cancelled)),
            (OnHard::Fail, BreachAction::Fail, Some(Outcome::Failed)),
        ] {
            let id = budget(world, 10, on_hard).await;
            let execution = world.admin.submit(world.new_execution("ask").budget(&id)).await.unwrap();
            let task = claim(&worker).await;
            let first = *task.attempt_id();
            assert_eq!(breach(&task, &id).await, breached(&id, action));
            drop(task);
            let Some(outcome) = outcome else {
                let waiting = world.describe(&execution).await;
                assert_eq!(waiting.blocking_reason, Some(BlockingReason::WaitingForBudget));
                assert_eq!(waiting.attempts[0].state, AttemptState::Interrupted);
                raise(world, &id, 100).await;
                let task = claim(&worker).await;
                assert!(task.attempt_id() != &first && task.resume().is_none(), "another attempt starts");
                task.complete(None).await.unwrap();
                continue;
            };
            let ended = world.result(&execution).await;
            assert_eq!(ended.outcome, outcome);
            assert_eq!(ended.failure.map(|failure| failure.category).as_deref(), Some("budget"), "{on_hard:?}");
        }
    }

    async fn answers_that_are_lost_count_once_and_a_breach_is_heard_all_the_same(world: &World) {
        let (worker, faults) = world.faulty_worker("w-1").await;
        let id = budget(world, 10, OnHard::Suspend).await;
        world.admin.submit(world.new_execution("ask").budget(&id)).await.unwrap();
        let task = claim(&worker).await;
        faults.lose_answer(Call::Usage);
        assert_eq!(task.report_usage(&id, &[("tokens", 1)], None).await.unwrap(), ReportUsageResult::Ok);
        faults.lose_answer(Call::Usage);
        assert_eq!(task.report_usage(&id, &[("tokens", 1)], Some("k")).await.unwrap(), ReportUsageResult::AlreadyApplied);
        faults.lose_answer(Call::Reserve);
        let reservation = held(task.reserve(&id, &[("tokens", 5)], None).await.unwrap());
        assert_eq!(standing(world, &id).await, (2, 5));
        faults.lose_answer(Call::Settle);
        assert_eq!(task.settle(&reservation, &[("tokens", 2)]).await.unwrap(), ReportUsageResult::Ok);
        let reservation = held(task.reserve(&id, &[("tokens", 5)], None).await.unwrap());
        faults.lose_answer(Call::Release);
        task.release(&reservation).await.unwrap();
        assert_eq!(standing(world, &id).await, (4, 0));
        faults.lose_answer(Call::Usage);
        let answer = task.report_usage(&id, &[("tokens", 7)], None).await.unwrap();
        assert_eq!(answer, breached(&id, BreachAction::Suspend));
        assert_eq!(task.cancellation().reason(), Some(CancelReason::HardBreach));
        assert_eq!(code(&task.complete(None).await.unwrap_err()), "hard_breach");
    }

    async fn one_worker_throttles_a_key_and_another_waits(world: &World) {
        let (first, second) = (world.worker("w-1").await, world.worker("w-2").await);
        let quota = world.admin.create_quota(QuotaSpec::new("default").concurrency(5)).await.unwrap().quota_id;
        let ask = || world.new_execution("ask").quota(&quota, "acme");
        world.admin.submit(ask()).await.unwrap();
        let task = claim(&first).await;
        let until_then = task.throttle_for(&quota, "acme", Duration::from_secs(600)).await.unwrap();
        assert!(until_then.is_some());
        let sooner = task.throttle_for(&quota, "acme", Duration::from_secs(1)).await.unwrap();
        assert_eq!(sooner, until_then, "it is never shortened");
        let held_back = world.admin.submit(ask()).await.unwrap();
        world.admin.submit(world.new_execution("ask").quota(&quota, "other")).await.unwrap();
        let other = claim(&second).await;
        assert_ne!(other.execution_id(), &held_back, "another key goes on");
        other.complete(None).await.unwrap();
        assert!(second.claim_next().await.unwrap().is_none());
        until("it is told why it waits", || async {
            world.describe(&held_back).await.blocking_reason == Some(BlockingReason::WaitingForQuota)
        })
        .await;
        let shown = world.admin.describe_quota(&quota, Some("acme")).await.unwrap();
        assert_eq!(shown.key("acme").unwrap().throttled_until.map(TimestampMs), until_then);
        assert_eq!(task.throttle(&quota, "acme", TimestampMs(0)).await.unwrap(), None);
        let task = { task.complete(None).await.unwrap(); claim(&second).await };
        assert_eq!(task.execution_id(), &held_back);
        let unknown = task.throttle_for(&QuotaPolicyId::mint(), "k", Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(code(&unknown), "quota_not_found");
        task.complete(None).await.unwrap();
    }

    async fn what_a_task_really_weighed_counts_for_those_who_follow(world: &World) {
        let worker = world.worker("w-1").await;
        let quota = world.admin.create_quota(QuotaSpec::new("default").weighted(100, 3_600_000)).await.unwrap().quota_id;
        let ask = || world.new_execution("ask").weighing(&quota, "acme", 60);
        let weighed = async || {
            world.admin.describe_quota(&quota, Some("acme")).await.unwrap().key("acme").unwrap().parts[0].used
        };
        world.admin.submit(ask()).await.unwrap();
        let task = claim(&worker).await;
        assert_eq!(weighed().await, 60);
        assert!(task.settle_weight(&quota, "acme", 30).await.unwrap());
        assert!(!task.settle_weight(&quota, "elsewhere", 30).await.unwrap());
        assert_eq!(weighed().await, 30);
        task.complete(None).await.unwrap();
        world.admin.submit(ask()).await.unwrap();
        let task = claim(&worker).await;
        assert!(task.settle_weight(&quota, "acme", 400).await.unwrap(), "it may be more than the limit");
        assert_eq!(weighed().await, 430);
        task.complete(None).await.unwrap();
        world.admin.submit(ask()).await.unwrap();
        assert!(worker.claim_next().await.unwrap().is_none());
        let change = QuotaChange { weighted: Some(None), concurrency: Some(Some(1)), ..QuotaChange::default() };
        assert_eq!(world.admin.change_quota(&quota, change).await.unwrap().concurrency, Some(1));
        claim(&worker).await.complete(None).await.unwrap();
    }

    async fn members_and_children_carry_their_budgets_and_quotas(world: &World) {
        let worker = world.worker("w-1").await;
        let id = budget(world, 100, OnHard::Suspend).await;
        let quota = world.admin.create_quota(QuotaSpec::new("default").concurrency(1)).await.unwrap().quota_id;
        let spec = flow("limited")
            .member(MemberSpec::new("a", "ask").estimate(&id, &[("tokens", 30)]).quota(&quota, "acme"))
            .member(MemberSpec::new("b", "ask").quota(&quota, "acme").after("a"));
        world.admin.submit_flow(spec).await.unwrap();
        let task = claim(&worker).await;
        assert_eq!((task.key(), standing(world, &id).await), (Some("a"), (0, 30)));
        assert_eq!(world.admin.describe_quota(&quota, Some("acme")).await.unwrap().key("acme").unwrap().held, 1);
        let child = ChildSpec::new("ask").key("c").estimate(&id, &[("tokens", 20)]);
        task.spawn(vec![child]).await.unwrap();
        assert!(matches!(task.wait_children().await.unwrap(), WaitChildrenOutcome::Waiting { open: 1 }));
        let child = claim(&worker).await;
        assert_eq!(child.key(), Some("c"));
        until("the parent holds nothing while it waits", || async { standing(world, &id).await == (0, 20) }).await;
        child.complete(None).await.unwrap();
        let task = claim(&worker).await;
        assert_eq!(task.key(), Some("a"));
        task.complete(None).await.unwrap();
        let task = claim(&worker).await;
        assert_eq!(task.key(), Some("b"));
        task.complete(None).await.unwrap();
    }

    async fn new_work_waits_for_approval_at_the_soft_limit_and_starts_after_a_reset(world: &World) {
        let worker = world.worker("w-1").await;
        let spec = BudgetSpec::new("default").hard("tokens", 100).soft("tokens", 10).on_soft(OnSoft::RequireApproval);
        let id = world.admin.create_budget(spec).await.unwrap().budget_id;
        let ask = || world.new_execution("ask").budget(&id);
        world.admin.submit(ask()).await.unwrap();
        let task = claim(&worker).await;
        task.report_usage(&id, &[("tokens", 10)], None).await.unwrap();
        task.complete(None).await.unwrap();
        world.admin.submit(ask()).await.unwrap();
        assert!(worker.claim_next().await.unwrap().is_none());
        assert!(world.admin.approve_budget(&id).await.unwrap().approved);
        claim(&worker).await.complete(None).await.unwrap();
        let reset = world.admin.reset_budget(&id).await.unwrap();
        assert_eq!((reset.approved, reset.dimensions["tokens"].used), (false, 0));
        world.admin.submit(ask()).await.unwrap();
        claim(&worker).await.complete(None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_and_periods_pass_with_the_clock_of_a_test() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let admin = engine.admin();
    let quota = admin.create_quota(QuotaSpec::new("default").rate(1, 60_000)).await?.quota_id;
    let day = admin.create_budget(BudgetSpec::new("default").hard("tokens", 10).each_day("UTC")).await?;
    let hour = admin.create_budget(BudgetSpec::new("default").hard("tokens", 10).every_ms(3_600_000)).await?;
    // The engine starts on 2023-11-14 at 22:13:20.
    assert_eq!(day.next_reset_at, Some(1_700_006_400_000));
    let ask = |budget: &BudgetId| NewExecution::new("default", "default", "ask").quota(&quota, "acme").budget(budget);
    let worker = engine.worker("w-1").await?;
    engine.submit_new(ask(&hour.budget_id)).await?;
    let task = worker.claim_next().await?.expect("the first one starts");
    task.throttle_for(&quota, "acme", Duration::from_secs(90)).await?;
    assert_eq!(task.report_usage(&hour.budget_id, &[("tokens", 10)], None).await?, ReportUsageResult::Ok);
    task.complete(None).await?;

    engine.submit_new(ask(&day.budget_id)).await?;
    assert!(worker.claim_next().await?.is_none());
    engine.advance(Duration::from_secs(60)).await?;
    assert!(worker.claim_next().await?.is_none(), "the provider asked for longer");
    engine.advance(Duration::from_secs(30)).await?;
    let task = worker.claim_next().await?.expect("its window has passed");
    task.report_usage(&day.budget_id, &[("tokens", 9)], None).await?;
    let answer = task.report_usage(&day.budget_id, &[("tokens", 2)], None).await?;
    assert!(matches!(answer, ReportUsageResult::HardBreach { lease_ended: true, .. }), "{answer:?}");
    drop(task);
    engine.submit_new(NewExecution::new("default", "default", "ask").budget(&hour.budget_id)).await?;
    assert!(worker.claim_next().await?.is_none(), "nothing is left of the hour");
    engine.advance(Duration::from_secs(3_600)).await?;
    worker.claim_next().await?.expect("a new hour").complete(None).await?;
    assert!(worker.claim_next().await?.is_none(), "the day is not over");
    engine.advance(Duration::from_secs(3_600)).await?;
    let task = worker.claim_next().await?.expect("a new day");
    assert_eq!(task.resume().map(|resume| resume.cause), Some(ResumeCause::Budget));
    assert_eq!(task.report_usage(&day.budget_id, &[("tokens", 2)], None).await?, ReportUsageResult::Ok);
    task.complete(None).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_worker_held_is_back_when_its_lease_is_over() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let admin = engine.admin();
    let id = admin.create_budget(BudgetSpec::new("default").hard("tokens", 10)).await?.budget_id;
    let quota = admin.create_quota(QuotaSpec::new("default").concurrency(1)).await?.quota_id;
    let execution = NewExecution::new("default", "default", "ask").quota(&quota, "k").estimate(&id, &[("tokens", 2)]);
    let execution = engine.submit_new(execution).await?;
    let first = engine.worker("w-1").await?;
    let task = first.claim_next().await?.expect("one waits");
    engine.crash(&first, CrashPoint::AfterCall(Call::Reserve));
    task.reserve(&id, &[("tokens", 8)], None).await.unwrap_err();
    drop(task);
    assert_eq!(admin.describe_budget(&id).await?.dimensions["tokens"].held, 10);
    engine.advance(Duration::from_secs(60)).await?;
    let second = engine.worker("w-2").await?;
    let task = second.claim_next().await?.expect("it starts again");
    assert_eq!((task.execution_id(), admin.describe_budget(&id).await?.dimensions["tokens"].held), (&execution, 2));
    task.complete(None).await?;
    engine.assert_exactly_one_effect(&execution).await
}
