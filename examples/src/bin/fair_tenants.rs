//! Fair tenants: one tenant floods a lane, and another tenant's few executions do not wait behind the flood.

use std::time::Duration;

use anyhow::{Context, ensure};
use ff_examples::Sandbox;
use flowfabric::NewExecution;
use flowfabric::script::generated::{DefineLane, Fairness};
use flowfabric::types::ExecutionId;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let lane = DefineLane::new("example".to_owned(), "shared".to_owned(), "default".to_owned());
    sandbox.engine.engine().operations().define_lane(DefineLane { fairness: Some(Fairness::Fair), ..lane }).await?;

    // Fairness applies per partition. These executions share one; those of a busy lane are on every partition.
    let submit = async |tenant: &str| {
        let mut new = NewExecution::new("default", "shared", "work").with_id(ExecutionId::mint_with_seed(0));
        new.fields.fairness_key = Some(tenant.to_owned());
        new.fields.tags = Some([("tenant".to_owned(), tenant.to_owned())].into());
        sandbox.engine.admin().submit(new).await
    };
    for _ in 0..60 {
        submit("flood").await?;
    }
    for _ in 0..5 {
        submit("quiet").await?;
    }

    let worker = sandbox.worker("fair-1", "shared", &[]).await?;
    let mut last_quiet = 0;
    for place in 1..=65 {
        let task = worker.claim_many(1, Duration::from_secs(10)).await?.pop().context("65 executions wait")?;
        if task.tags().get("tenant").is_some_and(|tenant| tenant == "quiet") {
            last_quiet = place;
        }
        task.complete(None).await?;
    }
    ensure!((1..=20).contains(&last_quiet), "the quiet tenant's last execution ran at place {last_quiet} of 65");
    println!("the quiet tenant was done after {last_quiet} of 65");
    Ok(())
}
