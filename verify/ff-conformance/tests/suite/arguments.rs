//! Arguments: a missing, unknown, mistyped, too long or too large one fails with its field, and nothing is written.

use std::collections::BTreeMap;

use ff_conformance::work::HOME;
use ff_conformance::{Store, for_each_host};
use ff_core::EngineError;
use ff_core::error::Detail;
use ff_script::Route;
use ff_script::generated_rules::CHECKS;
use rmpv::Value;

use crate::contract::{Contract, Contracts, Mistake};

fn arguments(fields: &BTreeMap<String, Value>) -> Value {
    Value::Map(fields.iter().map(|(name, value)| (Value::from(name.as_str()), value.clone())).collect())
}

fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
    match value {
        Value::Map(entries) => {
            entries.iter().find(|(key, _)| key.as_str() == Some(name)).map_or(&Value::Nil, |(_, value)| value)
        }
        _ => &Value::Nil,
    }
}

/// The code and the field of a refusal.
fn refused(reply: &Value) -> (Option<String>, Option<String>) {
    let text = |value: &Value| match value {
        Value::String(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        _ => None,
    };
    (text(field(reply, "err")), text(field(field(reply, "detail"), "field")))
}

async fn expect_refusal(
    store: &Store,
    contract: &Contract,
    fields: &BTreeMap<String, Value>,
    what: &str,
    path: &str,
    code: &str,
) {
    let reply = store.raw(HOME, contract.name, contract.read_only, &arguments(fields)).await;
    let expected = (Some(code.to_owned()), Some(path.to_owned()));
    assert_eq!(refused(&reply), expected, "{} with {what}: {:.300}", contract.name, reply.to_string());
    same_in_process(contract, fields, what, &reply);
}

/// A typed call with the same mistake fails with the same message before it leaves the process.
fn same_in_process(contract: &Contract, fields: &BTreeMap<String, Value>, what: &str, reply: &Value) {
    let mut packed = Vec::new();
    rmpv::encode::write_value(&mut packed, &arguments(fields)).expect("writing to memory cannot fail");
    let (_, check) = CHECKS.iter().find(|(name, _)| *name == contract.name).expect("every function has a check");
    let problem = match check(&packed) {
        None => return,
        Some(Ok(())) => {
            let text = field(field(reply, "detail"), "problem").as_str();
            // A typed call cannot have such a field, and writes a UUID in only one way.
            let cannot_be_said = ["is not a known field", "must be a UUID in lower case"];
            assert!(text.is_some_and(|text| cannot_be_said.contains(&text)), "{} with {what}: {reply}", contract.name);
            return;
        }
        Some(Err(problem)) => EngineError::from(problem),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (code, detail) = (text(field(reply, "err")), field(reply, "detail"));
    let detail = ["field", "problem"].map(|name| (name.to_owned(), text(field(detail, name))));
    let said = EngineError::from_refusal(code.parse().expect("a code"), Detail::from_iter(detail));
    assert_eq!(problem, said, "{} with {what}", contract.name);
}

/// The route on which a function is correctly called.
fn route(function: &str) -> Route {
    let fleet = ["worker", "_server", "ff_define_lane", "ff_get_lane", "ff_list_lanes"];
    if function == "ff_fix_partitions" {
        Route::Config
    } else if fleet.iter().any(|word| function.contains(word)) {
        Route::Fleet
    } else {
        HOME
    }
}

for_each_host! {
    async fn every_mistake_is_refused_with_its_field_and_nothing_is_written(store) {
        store.install_default_lane().await;
        store.submit_kind("mail").await;
        let contracts = Contracts::read();
        let before = store.dump().await;
        let mut tried = 0;
        for contract in &contracts.functions {
            let right = contracts.required(contract);
            let mut unknown = right.clone();
            unknown.insert("zzz".to_owned(), Value::from(1));
            expect_refusal(&store, contract, &unknown, "an unknown argument", "zzz", "invalid_argument").await;
            for (name, spec) in &contract.args {
                if !spec.ends_with('?') {
                    let mut missing = right.clone();
                    missing.remove(name);
                    expect_refusal(&store, contract, &missing, &format!("{name} missing"), name, "invalid_argument").await;
                }
                for Mistake { what, value, path, code } in contracts.mistakes(spec) {
                    let mut wrong = right.clone();
                    wrong.insert(name.clone(), value);
                    expect_refusal(&store, contract, &wrong, &format!("{name}: {what}"), &format!("{name}{path}"), code).await;
                    tried += 1;
                }
            }
        }
        assert!(tried > 500, "only {tried} mistakes were tried");
        assert_eq!(store.dump().await, before, "a refused call leaves nothing behind");
    }

    async fn what_is_required_is_enough(store) {
        let contracts = Contracts::read();
        assert!(contracts.functions.len() >= 50, "{} functions", contracts.functions.len());
        for contract in &contracts.functions {
            let reply = store.raw(route(contract.name), contract.name, contract.read_only, &arguments(&contracts.required(contract))).await;
            // A delay and a rest have one of two fields, a quota one of three parts, a webhook one of two ids; each of
            // them is optional.
            if !["ff_delay_execution", "ff_sleep_execution", "ff_put_quota", "ff_describe_webhook"].contains(&contract.name) {
                assert_ne!(refused(&reply).0.as_deref(), Some("invalid_argument"), "{}: {reply}", contract.name);
            }
        }
    }
}
