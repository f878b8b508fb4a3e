//! The check of a store's invariants.

use ff_api::fsck::{CheckStore, FsckFinding, FsckReport};
use ff_api::{Ask, Problem};
use ff_script::generated::RecordedAction;

use crate::Fsck;
use crate::principal::Principal;
use crate::service::{Handle, Service};

impl Handle<CheckStore> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CheckStore>) -> Result<FsckReport, Problem> {
        let repair = ask.body.repair.unwrap_or(false);
        if repair {
            // Before it begins: one that is cut short has changed something all the same.
            self.operations.record_action(RecordedAction::StoreRepaired, by.name(), None).await?;
        }
        let found = Fsck::run(self.operations.client(), repair).await?;
        tracing::info!(actor = by.name(), repair, findings = found.findings.len(), "the store was checked");
        let clean = found.is_clean();
        let findings = found.findings.into_iter().map(|finding| FsckFinding {
            invariant: finding.invariant,
            key: finding.key.0.escape_ascii().to_string(),
            problem: finding.problem,
            repaired: finding.repaired,
        });
        Ok(FsckReport {
            clean,
            executions: found.executions,
            keys: found.keys,
            findings: findings.collect(),
            foreign: found.foreign,
        })
    }
}
