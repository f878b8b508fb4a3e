//! The admission step between a grant and its claim: quotas, then budgets, each asked once for a whole batch.

use std::collections::BTreeMap;

use crate::Operations;
use async_trait::async_trait;
use ff_core::EngineError;
use ff_core::error::Detail;
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::Error;
use ff_script::generated::{AdmissionReason, BudgetCandidate, BudgetVerdict, Grant, QuotaAnswer, QuotaCandidate};
use uuid::Uuid;

use crate::dispatch::combine::Combiner;

/// The most one call of the library takes.
const BATCH: usize = 64;

/// What admission says about a granted execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It may start.
    Yes {
        /// The sets that stay with it while its attempt is set aside.
        keep: Vec<String>,
    },
    /// It has to wait; the reason and its facts are recorded with it.
    No {
        /// Which kind of resource is missing.
        reason: AdmissionReason,
        /// What is missing, for people.
        detail: BTreeMap<String, String>,
        /// Something has taken it in before it was refused.
        held: bool,
    },
}

/// Decides whether granted executions may start.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// Asks for a batch; one answer for each grant, in order. An error admits nothing: the grant is given back.
    async fn admit(&self, grants: &[Grant]) -> Vec<Result<Admitted, Error>>;
}

/// Admission by what the store knows of quotas and budgets. Whatever cannot be decided is not admitted.
#[derive(Clone)]
pub struct StoreAdmission {
    operations: Operations,
    quotas: Combiner<QuotaCandidate, QuotaAnswer>,
    budgets: Combiner<BudgetCandidate, BudgetVerdict>,
}

/// What is known so far about one grant of a batch.
#[derive(Default)]
struct Verdict {
    keep: Vec<String>,
    /// Something has taken it in.
    held: bool,
    refused: Option<(AdmissionReason, BTreeMap<String, String>)>,
    error: Option<Error>,
}

impl Verdict {
    fn is_open(&self) -> bool {
        self.refused.is_none() && self.error.is_none()
    }

    fn refuse(&mut self, reason: AdmissionReason, facts: impl IntoIterator<Item = (&'static str, String)>) {
        let detail = facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect();
        self.refused.get_or_insert((reason, detail));
    }

    fn answer(self) -> Result<Admitted, Error> {
        match (self.error, self.refused) {
            (Some(error), _) => Err(error),
            (None, Some((reason, detail))) => Ok(Admitted::No { reason, detail, held: self.held }),
            (None, None) => Ok(Admitted::Yes { keep: self.keep }),
        }
    }
}

/// A grant's place in the batch and what it asks a quota for.
type Asked = (usize, QuotaCandidate);

impl StoreAdmission {
    /// Admission through these operations.
    #[must_use]
    pub fn new(operations: Operations) -> Self {
        Self { operations, quotas: Combiner::default(), budgets: Combiner::default() }
    }

    /// Asks every quota that is named, the next only for what the ones before it let pass.
    async fn ask_quotas(&self, grants: &[Grant], verdicts: &mut [Verdict]) {
        let mut by_quota: BTreeMap<Uuid, Vec<Asked>> = BTreeMap::new();
        for (index, grant) in grants.iter().enumerate() {
            for quota in grant.quotas.iter().flatten() {
                let asked = by_quota.entry(quota.quota_id).or_default();
                // Naming a key twice asks for it once.
                if !asked.iter().any(|(other, candidate)| *other == index && candidate.key == quota.key) {
                    asked.push((index, candidate(grant, &quota.key, quota.weight)));
                }
            }
        }
        for (id, asked) in by_quota {
            let open: Vec<Asked> = asked.into_iter().filter(|(index, _)| verdicts[*index].is_open()).collect();
            for batch in open.chunks(BATCH) {
                self.ask_quota(QuotaPolicyId::from_uuid(id), batch, verdicts).await;
            }
        }
    }

    async fn ask_quota(&self, id: QuotaPolicyId, batch: &[Asked], verdicts: &mut [Verdict]) {
        let candidates = batch.iter().map(|(_, candidate)| candidate.clone()).collect();
        let operations = self.operations.clone();
        let ask = move |candidates| {
            let operations = operations.clone();
            async move { operations.admit_quota(id, candidates).await }
        };
        match self.quotas.ask(*id.as_uuid(), candidates, ask).await {
            Ok(answers) => {
                for ((index, candidate), answer) in batch.iter().zip(answers) {
                    note(&mut verdicts[*index], id, candidate, answer);
                }
            }
            Err(Error::Engine(error)) if error.error_code() == Some(ErrorCode::QuotaNotFound) => {
                for (index, _) in batch {
                    let facts = [("quota_id", id.to_string()), ("problem", "not found".to_owned())];
                    verdicts[*index].refuse(AdmissionReason::WaitingForQuota, facts);
                }
            }
            Err(error) => {
                for (index, _) in batch {
                    verdicts[*index].error = Some(error.clone());
                }
            }
        }
    }

    /// Asks every budget that is named, the next only for what the ones before it let pass.
    async fn ask_budgets(&self, grants: &[Grant], verdicts: &mut [Verdict]) {
        let mut by_budget: BTreeMap<Uuid, Vec<(usize, BudgetCandidate)>> = BTreeMap::new();
        for (index, grant) in grants.iter().enumerate() {
            for budget in grant.budgets.iter().flatten() {
                let asked = BudgetCandidate {
                    estimate: budget.estimate.clone(),
                    ..BudgetCandidate::new(grant.execution_id, grant.grant_id, grant.expires_at)
                };
                by_budget.entry(budget.budget_id).or_default().push((index, asked));
            }
        }
        for (id, asked) in by_budget {
            let open: Vec<_> = asked.into_iter().filter(|(index, _)| verdicts[*index].is_open()).collect();
            for batch in open.chunks(BATCH) {
                self.ask_budget(BudgetId::from_uuid(id), batch, verdicts).await;
            }
        }
    }

    async fn ask_budget(&self, id: BudgetId, batch: &[(usize, BudgetCandidate)], verdicts: &mut [Verdict]) {
        let candidates = batch.iter().map(|(_, candidate)| candidate.clone()).collect();
        let operations = self.operations.clone();
        let ask = move |candidates| {
            let operations = operations.clone();
            async move { operations.admit_budget(id, candidates).await }
        };
        match self.budgets.ask(*id.as_uuid(), candidates, ask).await {
            Ok(answers) => {
                for ((index, _), answer) in batch.iter().zip(answers) {
                    note_budget(&mut verdicts[*index], id, answer);
                }
            }
            Err(Error::Engine(error)) if error.error_code() == Some(ErrorCode::BudgetNotFound) => {
                for (index, _) in batch {
                    let facts = [("budget_id", id.to_string()), ("problem", "not found".to_owned())];
                    verdicts[*index].refuse(AdmissionReason::WaitingForBudget, facts);
                }
            }
            Err(error) => {
                for (index, _) in batch {
                    verdicts[*index].error = Some(error.clone());
                }
            }
        }
    }
}

/// What a budget said; `rooms` tells the reconciler whether there was room since.
fn note_budget(verdict: &mut Verdict, asked: BudgetId, answer: BudgetVerdict) {
    if answer.admitted {
        verdict.held = true;
        return;
    }
    let in_the_way = answer.budget_id.unwrap_or(asked);
    let words = [("dimension", answer.dimension), ("refusal", answer.refusal.map(|refusal| refusal.to_string()))];
    let numbers = [("used", answer.used), ("limit", answer.limit), ("rooms", answer.rooms)];
    let words = words.into_iter().filter_map(|(name, word)| Some((name, word?)));
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?.to_string())));
    let facts = [("budget_id", in_the_way.to_string())];
    verdict.refuse(AdmissionReason::WaitingForBudget, facts.into_iter().chain(words).chain(numbers));
}

fn candidate(grant: &Grant, key: &str, weight: Option<i64>) -> QuotaCandidate {
    QuotaCandidate {
        execution_id: grant.execution_id,
        expires_at: grant.expires_at,
        holder_id: grant.grant_id,
        key: key.to_owned(),
        number: grant.number,
        score: grant.score,
        weight: weight.unwrap_or(1),
    }
}

fn note(verdict: &mut Verdict, id: QuotaPolicyId, candidate: &QuotaCandidate, answer: QuotaAnswer) {
    if answer.admitted {
        verdict.held = true;
        verdict.keep.extend(answer.keep);
        return;
    }
    let Some(part) = answer.part else {
        // The grant had run out by then: nothing was decided.
        let detail = Detail::from_iter([("grant_id".to_owned(), candidate.holder_id.to_string())]);
        verdict.error = Some(Error::Engine(EngineError::from_refusal(ErrorCode::GrantNotFound, detail)));
        return;
    };
    let facts = [("quota_id", id.to_string()), ("key", candidate.key.clone()), ("part", part.to_string())];
    let numbers = [("used", answer.used), ("limit", answer.limit), ("next_at", answer.next_at)];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?.to_string())));
    verdict.refuse(AdmissionReason::WaitingForQuota, facts.into_iter().chain(numbers));
}

#[async_trait]
impl Admission for StoreAdmission {
    async fn admit(&self, grants: &[Grant]) -> Vec<Result<Admitted, Error>> {
        let mut verdicts: Vec<Verdict> = grants.iter().map(|_| Verdict::default()).collect();
        self.ask_quotas(grants, &mut verdicts).await;
        self.ask_budgets(grants, &mut verdicts).await;
        verdicts.into_iter().map(Verdict::answer).collect()
    }
}
