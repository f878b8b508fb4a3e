//! Every example runs to its end and confirms its own results.

use std::process::Command;

fn run(program: &str) {
    let output = Command::new(program).output().expect("the example starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} ended with {}\n{out}\n{err}", output.status);
    assert!(!out.trim().is_empty(), "{program} says what it has shown");
}

macro_rules! examples {
    ($($name:ident),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                run(env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
            }
        )+
    };
}

examples!(
    hello_worker,
    retries_and_poison,
    capability_routing,
    fair_tenants,
    axum_service,
    approval,
    token_stream,
    diamond,
    race,
    map_reduce,
    agent,
    token_budget,
    provider_rate_limit,
    tenant_concurrency,
);
