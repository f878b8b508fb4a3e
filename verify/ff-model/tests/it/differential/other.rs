//! Calls of functions that are not in the model: workers, servers, lanes of the fleet, lists, checks.

use ff_core::types::ExecutionId;
use ff_model::model::Model;
use ff_model::store::ROUTE;
use ff_script::Route;
use ff_script::generated as g;
use ff_script::sample::Rng as Samples;
use ff_script::{Bytes, Invocation};
use rand::Rng;
use rand::rngs::StdRng;
use uuid::Uuid;

use super::limits::BUDGETS;
use super::{LEFT_OUT, call};

/// The next action.
pub enum Made {
    Call(Box<Invocation>),
    /// Acknowledge effects; their ids differ between hosts.
    Acknowledge {
        now: i64,
    },
}

pub(super) fn maybe<T>(rng: &mut StdRng, make: impl FnOnce(&mut StdRng) -> T) -> Option<T> {
    if rng.random() { Some(make(rng)) } else { None }
}

fn instance(rng: &mut StdRng) -> String {
    format!("w-{}", rng.random_range(0..4))
}

pub(super) fn lane(rng: &mut StdRng) -> String {
    ["main", "aging", "fair", "late"][rng.random_range(0..4)].to_owned()
}

pub(super) fn id(rng: &mut StdRng) -> Uuid {
    Uuid::from_u64_pair(0, rng.random_range(0..3))
}

pub(super) fn some_execution(rng: &mut StdRng, model: &Model) -> ExecutionId {
    let number = rng.random_range(0..model.executions.len() + 1);
    model.executions.keys().nth(number).copied().unwrap_or_else(|| ExecutionId::from_uuid(Uuid::from_u64_pair(9, 9)))
}

fn definition(rng: &mut StdRng) -> g::DefineLane {
    g::DefineLane {
        state: maybe(rng, |rng| g::LaneState::ALL[rng.random_range(0..4)]),
        priority_weight: maybe(rng, |rng| rng.random_range(0..=1_000_000_000_000)),
        fairness: maybe(rng, |rng| g::Fairness::ALL[rng.random_range(0..2)]),
        fairness_weights: maybe(rng, |rng| (0..rng.random_range(0..3)).map(|n| (format!("t{n}"), n + 1)).collect()),
        max_depth: maybe(rng, |rng| rng.random_range(0..9)),
        clear_max_depth: maybe(rng, |rng| rng.random()),
        max_active: maybe(rng, |rng| rng.random_range(1..9)),
        clear_max_active: maybe(rng, |rng| rng.random()),
        retry: maybe(rng, |rng| g::Retry {
            max_attempts: maybe(rng, |_| 4),
            retry_on: maybe(rng, |_| vec![]),
            never_on: maybe(rng, |_| vec!["x".to_owned()]),
            ..g::Retry::default()
        }),
        retention_ms: maybe(rng, |rng| rng.random_range(0..10_000)),
        ..g::DefineLane::new("ops".to_owned(), lane(rng), "default".to_owned())
    }
}

/// The partition of holder sets.
pub(super) const SLOTS: Route = Route::Quota(0);

pub(super) fn holders(rng: &mut StdRng, model: &Model) -> Vec<g::Holder> {
    (0..rng.random_range(0..4))
        .map(|_| g::Holder {
            execution_id: some_execution(rng, model),
            expires_at: maybe(rng, |rng| model.now + rng.random_range(-500..3_000)),
            holder_id: id(rng),
        })
        .collect()
}

/// Calls about the slots of a lane, in both partitions.
fn slots(rng: &mut StdRng, model: &Model) -> Invocation {
    let now = model.now;
    let lane = lane(rng);
    let set = format!("lane:default/{lane}");
    match rng.random_range(0..9) {
        0 => {
            let limit = maybe(rng, |rng| rng.random_range(1..4));
            call(SLOTS, &g::SetCapacity { limit, set, version: rng.random_range(0..4) }, now)
        }
        1 | 2 => {
            let candidate = |g::Holder { execution_id, expires_at, holder_id }| g::Candidate {
                execution_id,
                expires_at: expires_at.unwrap_or(now + 100),
                holder_id,
            };
            let holders = holders(rng, model).into_iter().map(candidate).collect();
            call(SLOTS, &g::AdmitHolders { counted: maybe(rng, |rng| rng.random()), holders, set }, now)
        }
        3 => call(SLOTS, &g::ConfirmHolders { holders: holders(rng, model), set }, now),
        4 => call(SLOTS, &g::ReleaseHolders { holders: holders(rng, model), set }, now),
        5 => {
            let (limit, offset) = (rng.random_range(1..4), rng.random_range(0..3));
            call(SLOTS, &g::ListHolders { limit, offset, set }, now)
        }
        6 => call(SLOTS, &g::FireDue { draw: 1, limit: 5 }, now),
        7 => call(ROUTE, &g::CheckHolders { holders: holders(rng, model), set }, now),
        _ => {
            let after = maybe(rng, |rng| g::QueuePosition {
                queue: "any".to_owned(),
                created_at: now - rng.random_range(0..5_000),
                execution_id: some_execution(rng, model),
            });
            let adopt = g::AdoptHolders::new(lane, rng.random_range(1..4), "default".to_owned(), rng.random());
            call(ROUTE, &g::AdoptHolders { after, ..adopt }, now)
        }
    }
}

fn list(rng: &mut StdRng, model: &Model) -> g::ListExecutions {
    let tag = maybe(rng, |rng| ["red", "blue"][rng.random_range(0..2)].to_owned()).filter(|_| rng.random());
    let position = |rng: &mut StdRng| {
        let execution_id = some_execution(rng, model);
        let created_at = model.executions.get(&execution_id).map_or(model.now, |e| e.said.created_at);
        g::Position { created_at, execution_id }
    };
    g::ListExecutions {
        after: maybe(rng, position),
        created_after: maybe(rng, |rng| model.now - rng.random_range(0..20_000)).filter(|_| rng.random()),
        created_before: maybe(rng, |rng| model.now - rng.random_range(0..5_000)).filter(|_| rng.random()),
        kind: maybe(rng, |rng| format!("kind.{}", rng.random_range(0..3))).filter(|_| rng.random()),
        lane: maybe(rng, lane),
        namespace: maybe(rng, |_| "default".to_owned()),
        state: maybe(rng, |rng| g::PublicState::ALL[rng.random_range(0..12)]),
        tag_key: tag.as_ref().map(|_| "team".to_owned()),
        tag_value: tag,
        worker: maybe(rng, instance).filter(|_| rng.random()),
        ..g::ListExecutions::new(rng.random_range(1..12))
    }
}

/// Names of keys, existing and invented.
fn store_keys(rng: &mut StdRng, model: &Model) -> Vec<Bytes> {
    let mut keys = vec![
        "ff:idx:{p:0}:timers",
        "ff:idx:{p:0}:all",
        "ff:lane:{p:0}:default/main",
        "ff:what:{p:0}:ever",
        "ff:idx:{p:1}:all",
        "plain",
    ];
    keys.truncate(rng.random_range(0..=keys.len()));
    let cores = model.executions.keys().take(3).map(|id| format!("ff:exec:{{p:0}}:{id}:core"));
    keys.iter().map(|key| Bytes::from(*key)).chain(cores.map(|key| Bytes::from(key.as_str()))).collect()
}

/// Any function, with random arguments of the right types.
fn sampled(rng: &mut StdRng, now: i64) -> Invocation {
    loop {
        let specimen = &g::SPECIMENS[rng.random_range(0..g::SPECIMENS.len())];
        let name = function_name(specimen.name);
        // The first event after a time depends on the ids of each host.
        let left_out = LEFT_OUT.contains(&name.as_str()) || name == "ff_read_events";
        let Some(function) = g::FUNCTIONS.iter().find(|known| **known == name && !left_out) else { continue };
        let args = (specimen.encode)(&mut Samples::new(rng.random()));
        let route = [ROUTE, Route::Fleet, SLOTS, BUDGETS][rng.random_range(0..4)];
        return Invocation {
            route,
            function,
            read_only: false,
            args,
            now_ms: Some(now),
            count_calls: true,
            terms: ff_script::Terms::default(),
        };
    }
}

/// `SubmitExecution` calls `ff_submit_execution`.
fn function_name(type_name: &str) -> String {
    let words = type_name.chars().flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain(c.to_lowercase()));
    ["ff".to_owned(), words.collect()].concat()
}

/// Calls about grants that were never given; none of them moves an execution.
fn grants(rng: &mut StdRng, model: &Model) -> Invocation {
    if rng.random() {
        let consume = g::ConsumeGrant {
            attempt_id: ff_core::types::AttemptId::from_uuid(id(rng)),
            kinds: None,
            capabilities: vec![],
            execution_id: some_execution(rng, model),
            grant_id: id(rng),
            instance: instance(rng),
            keep: None,
            lease_id: ff_core::types::LeaseId::from_uuid(id(rng)),
            lease_ttl_ms: 5_000,
            worker_id: "model".to_owned(),
        };
        return call(ROUTE, &consume, model.now);
    }
    let block = g::BlockExecution {
        detail: [("key".to_owned(), "k".to_owned())].into(),
        execution_id: some_execution(rng, model),
        grant_id: id(rng),
        reason: g::AdmissionReason::WaitingForQuota,
        unheld: maybe(rng, |rng| rng.random()),
    };
    call(ROUTE, &block, model.now)
}

/// Calls about access tokens. There are few ids and digests, so that the calls interact.
fn access(rng: &mut StdRng, now: i64) -> Invocation {
    let digest = |rng: &mut StdRng| format!("{:064x}", rng.random_range(0..4));
    match rng.random_range(0..6) {
        0..=2 => {
            let number = rng.random_range(0..4_u64);
            let own = if rng.random_ratio(3, 4) { format!("{number:064x}") } else { digest(rng) };
            let roles = (0..rng.random_range(0..3)).map(|_| g::Role::ALL[rng.random_range(0..7)]).collect();
            let name = format!("bearer-{}", number / 3);
            let grant = g::GrantAccess {
                namespaces: maybe(rng, |_| vec!["default".to_owned()]),
                lanes: maybe(rng, |rng| (0..rng.random_range(0..3)).map(|_| lane(rng)).collect()),
                capabilities: maybe(rng, |_| vec!["cap-0".to_owned()]),
                expires_at: maybe(rng, |rng| now + rng.random_range(-10..5_000)),
                ..g::GrantAccess::new(Uuid::from_u64_pair(5, number), "ops".to_owned(), own, name, roles)
            };
            call(Route::Fleet, &grant, now)
        }
        3 => call(Route::Fleet, &g::FindAccess { digest: digest(rng) }, now),
        4 => {
            let after = maybe(rng, |rng| Uuid::from_u64_pair(5, rng.random_range(0..4)));
            call(Route::Fleet, &g::ListAccess { after, limit: rng.random_range(1..4) }, now)
        }
        _ => {
            let access_id = Uuid::from_u64_pair(5, rng.random_range(0..5));
            call(Route::Fleet, &g::RevokeAccess { access_id, actor: "ops".to_owned() }, now)
        }
    }
}

/// One call.
pub fn call_of(rng: &mut StdRng, model: &Model) -> Invocation {
    let now = model.now;
    let count = rng.random_range(0..3);
    match rng.random_range(0..41) {
        0 | 1 => {
            let worker = g::RegisterWorker {
                incarnation: maybe(rng, id),
                take_over: maybe(rng, |rng| rng.random()),
                owner: maybe(rng, |rng| format!("team-{}", rng.random_range(0..2))),
                ..g::RegisterWorker::new(
                    (0..count).map(|n| format!("cap-{n}")).collect(),
                    instance(rng),
                    (0..count).map(|_| lane(rng)).collect(),
                    "default".to_owned(),
                    rng.random_range(1..9),
                    "model".to_owned(),
                )
            };
            call(Route::Fleet, &worker, now)
        }
        23 => call(Route::Fleet, &g::ChallengeWorker { instance: instance(rng), nonce: id(rng) }, now),
        24 => call(
            Route::Fleet,
            &g::AnswerChallenge { incarnation: id(rng), instance: instance(rng), nonce: id(rng) },
            now,
        ),
        25 => call(
            ROUTE,
            &g::FindLeases {
                instance: instance(rng),
                lease_prefix: maybe(rng, |rng| id(rng).to_string()[..23].to_owned()),
            },
            now,
        ),
        2 => call(Route::Fleet, &g::HeartbeatWorkers { instances: (0..count).map(|_| instance(rng)).collect() }, now),
        3 => call(
            Route::Fleet,
            &g::DeregisterWorker {
                actor: maybe(rng, |_| "ops".to_owned()),
                incarnation: maybe(rng, id),
                instance: instance(rng),
            },
            now,
        ),
        4 => call(Route::Fleet, &g::DrainWorker { actor: "ops".to_owned(), instance: instance(rng) }, now),
        5 => call(Route::Fleet, &g::MarkWorkerDead { actor: "ops".to_owned(), instance: instance(rng) }, now),
        6 => call(Route::Fleet, &g::ListWorkers { limit: rng.random_range(1..3), offset: rng.random_range(0..3) }, now),
        7 => call(Route::Fleet, &g::GetWorker { instance: instance(rng) }, now),
        8 => call(
            Route::Fleet,
            &g::HeartbeatServer { leave: maybe(rng, |rng| rng.random()), listening: rng.random(), server_id: id(rng) },
            now,
        ),
        9 | 10 => call(Route::Fleet, &definition(rng), now),
        11 => call(Route::Fleet, &g::GetLane { lane: lane(rng), namespace: "default".to_owned() }, now),
        12 => call(Route::Fleet, &g::ListLanes { limit: rng.random_range(1..3), offset: rng.random_range(0..3) }, now),
        13 => call(Route::Fleet, &g::ReadOutbox::new(5), now),
        14 => call(Route::Fleet, &g::FireDue { draw: 1, limit: 5 }, now),
        15 | 16 => call(ROUTE, &list(rng, model), now),
        17 => call(ROUTE, &g::ExplainExecution { execution_id: some_execution(rng, model) }, now),
        18 => call(ROUTE, &g::PartitionStats { lane: maybe(rng, lane), namespace: None, offset: None }, now),
        19 if rng.random() => call(ROUTE, &g::TallyEvents { limit: rng.random_range(1..200) }, now),
        37 => {
            let call_of_lane =
                g::ExplainLane { lane: lane(rng), limit: rng.random_range(1..9), namespace: "default".to_owned() };
            call(ROUTE, &call_of_lane, now)
        }
        38 => {
            let score = now + rng.random_range(-10_000..10_000);
            let execution_id = some_execution(rng, model);
            call(ROUTE, &g::CountAhead { execution_id, lane: lane(rng), namespace: "default".to_owned(), score }, now)
        }
        39 => {
            let execution_id = some_execution(rng, model);
            call(Route::Fleet, &g::OfferGrant { execution_id, grant_id: id(rng), instance: instance(rng) }, now)
        }
        40 => {
            let action = g::RecordedAction::ALL[rng.random_range(0..g::RecordedAction::ALL.len())];
            let key_id = maybe(rng, |_| "k1".to_owned());
            call(Route::Fleet, &g::RecordAction { action, actor: "ops".to_owned(), key_id }, now)
        }
        19 => call(ROUTE, &g::ReadEvents::new(rng.random_range(1..50)), now),
        20 => call(ROUTE, &g::Library {}, now),
        26..=28 => sampled(rng, now),
        29 => {
            let key = |rng: &mut StdRng| format!("k{}", rng.random_range(0..4));
            let gone = maybe(rng, |rng| vec![key(rng)]);
            call(Route::Fleet, &g::NoteKeys { gone, key_ids: (0..count).map(|_| key(rng)).collect() }, now)
        }
        30..=32 => slots(rng, model),
        33 => grants(rng, model),
        35 | 36 => access(rng, now),
        21 => call(
            ROUTE,
            &g::CheckExecutions {
                limit: rng.random_range(1..64),
                offset: rng.random_range(0..5),
                repair: rng.random(),
            },
            now,
        ),
        _ => call(ROUTE, &g::CheckKeys { keys: store_keys(rng, model), repair: rng.random() }, now),
    }
}

/// One action.
pub fn call_or_acknowledge(rng: &mut StdRng, model: &Model) -> Made {
    if rng.random_ratio(1, 24) {
        Made::Acknowledge { now: model.now }
    } else {
        Made::Call(Box::new(call_of(rng, model)))
    }
}
