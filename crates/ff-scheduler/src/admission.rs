//! The admission step between a grant and its claim: quotas and budgets plug in here.

use std::collections::BTreeMap;

use async_trait::async_trait;
use ff_script::Error;
use ff_script::generated::{AdmissionReason, Grant};

/// What admission says about a granted execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It may start.
    Yes,
    /// It has to wait; the reason and its facts are recorded with it.
    No {
        /// Which kind of resource is missing.
        reason: AdmissionReason,
        /// What is missing, for people.
        detail: BTreeMap<String, String>,
    },
}

/// Decides whether a granted execution may start. An error admits nothing: the grant is given back.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// Asks for one execution.
    async fn admit(&self, grant: &Grant) -> Result<Admitted, Error>;
}

/// Admits nothing that names a quota or a budget: without a source for them, closed is the safe side.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefuseAll;

#[async_trait]
impl Admission for RefuseAll {
    async fn admit(&self, grant: &Grant) -> Result<Admitted, Error> {
        let no = |reason, name: &str, id: String| {
            let detail = [(name.to_owned(), id), ("problem".to_owned(), "not found".to_owned())];
            Ok(Admitted::No { reason, detail: detail.into() })
        };
        if let Some(quota) = grant.quotas.iter().flatten().next() {
            return no(AdmissionReason::WaitingForQuota, "quota_id", quota.quota_id.to_string());
        }
        if let Some(budget) = grant.budgets.iter().flatten().next() {
            return no(AdmissionReason::WaitingForBudget, "budget_id", budget.budget_id.to_string());
        }
        Ok(Admitted::Yes)
    }
}
