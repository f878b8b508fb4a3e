//! Concurrency per tenant: one quota, a key for each tenant, and never more than two of a tenant's executions at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::runtime::{Ctx, Data, HandlerResult, WorkerRuntime};
use flowfabric::{NewExecution, QuotaSpec};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

const TENANTS: [&str; 3] = ["acme", "initech", "umbrella"];
const AT_ONCE: usize = 2;
const EACH: usize = 6;

/// How many executions run for each tenant now, and how many ran at most.
struct Watch {
    tenants: Mutex<BTreeMap<String, (usize, usize)>>,
    /// Opens when as many run as all tenants together are allowed.
    everyone: Barrier,
}

async fn work(ctx: Ctx, Data(watch): Data<Arc<Watch>>) -> HandlerResult {
    let tenant = ctx.info().tags["tenant"].clone();
    {
        let mut tenants = watch.tenants.lock().expect("no holder of the lock panics");
        let (now, most) = tenants.entry(tenant.clone()).or_default();
        *now += 1;
        *most = (*most).max(*now);
    }
    watch.everyone.wait().await;
    let mut tenants = watch.tenants.lock().expect("no holder of the lock panics");
    tenants.entry(tenant).or_default().0 -= 1;
    Ok(None)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let admin = sandbox.engine.admin();
    let quota = admin.create_quota(QuotaSpec::new("default").concurrency(AT_ONCE as u64)).await?.quota_id;
    let mut ids = Vec::new();
    // The first tenant floods the lane before the other tenants submit.
    for tenant in TENANTS {
        for _ in 0..EACH {
            let mut new = NewExecution::new("default", "shared", "work").quota(&quota, tenant);
            new.fields.tags = Some([("tenant".to_owned(), tenant.to_owned())].into());
            ids.push(admin.submit(new).await?);
        }
    }

    let everyone = Barrier::new(AT_ONCE * TENANTS.len());
    let watch = Arc::new(Watch { tenants: Mutex::default(), everyone });
    let stop = CancellationToken::new();
    let mut fleet = Vec::new();
    for instance in ["worker-1", "worker-2"] {
        let runtime = WorkerRuntime::new(sandbox.worker(instance, "shared", &[]).await?)
            .data(Arc::clone(&watch))
            .on("work", work)
            .shutdown_on(stop.clone());
        fleet.push(tokio::spawn(runtime.run()));
    }
    for id in &ids {
        sandbox.result(id).await?;
    }
    let seen = watch.tenants.lock().expect("no holder of the lock panics").clone();
    for (tenant, (_, most)) in &seen {
        ensure!(*most == AT_ONCE, "{most} executions of {tenant} ran at once, not {AT_ONCE}");
    }
    println!("{} executions of {} tenants: {AT_ONCE} of each ran at once, never more", ids.len(), seen.len());
    stop.cancel();
    for running in fleet {
        running.await??;
    }
    Ok(())
}
