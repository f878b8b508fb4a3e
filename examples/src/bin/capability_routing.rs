//! Capability routing: two workers of one lane, and each execution goes to one that can run it.

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::NewExecution;
use flowfabric::runtime::{Data, HandlerResult, WorkerRuntime};
use tokio_util::sync::CancellationToken;

struct Name(&'static str);

async fn who(Data(name): Data<Name>) -> HandlerResult {
    Ok(Some(name.0.as_bytes().to_vec()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let admin = sandbox.engine.admin();
    let stop = CancellationToken::new();
    let mut running = Vec::new();
    for (name, capabilities) in [("cpu", vec!["cpu"]), ("gpu", vec!["cpu", "gpu"])] {
        let worker = sandbox.worker(name, "mixed", &capabilities).await?;
        running.push(tokio::spawn(
            WorkerRuntime::new(worker).data(Name(name)).on("who", who).shutdown_on(stop.clone()).run(),
        ));
    }

    let mut submitted = Vec::new();
    for n in 0..30 {
        let requires: &[&str] = [&["gpu"] as &[&str], &["cpu"], &[]][n % 3];
        let mut new = NewExecution::new("default", "mixed", "who");
        new.fields.requires = Some(requires.iter().map(|token| (*token).to_owned()).collect());
        submitted.push((admin.submit(new).await?, requires));
    }
    for (id, requires) in submitted {
        let ran = sandbox.result(&id).await?.result.unwrap_or_default();
        ensure!(
            !requires.contains(&"gpu") || ran == b"gpu",
            "{id} needs a gpu and ran on {:?}",
            String::from_utf8(ran)
        );
    }

    stop.cancel();
    for one in running {
        one.await??;
    }
    println!("everything ran where it could");
    Ok(())
}
