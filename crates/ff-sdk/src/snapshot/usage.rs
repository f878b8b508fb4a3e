//! What the engine says about budgets, quotas, and what executions used.

use std::collections::BTreeMap;

use ff_core::types::{AttemptIndex, BudgetId, Namespace, QuotaPolicyId, TimestampMs};
use ff_engine::Usage;
use ff_script::generated::{
    Budget, DimensionStatus, OnHard, OnSoft, QuotaEntry, QuotaKeyState, QuotaRate, QuotaUse, QuotaWeights,
};

use super::attempt_index;

/// A budget as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetSnapshot {
    /// Its id.
    pub budget_id: BudgetId,
    /// Its namespace.
    pub namespace: Namespace,
    /// The budget above it.
    pub parent: Option<BudgetId>,
    /// What it measures.
    pub dimensions: BTreeMap<String, DimensionSnapshot>,
    /// What happens at a soft limit.
    pub on_soft: OnSoft,
    /// What happens at a hard limit.
    pub on_hard: OnHard,
    /// An operator lets work start past the soft limits.
    pub approved: bool,
    /// When its period ends.
    pub next_reset_at: Option<TimestampMs>,
}

/// One dimension of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimensionSnapshot {
    /// Never more than this is used.
    pub hard: Option<u64>,
    /// Where it says something.
    pub soft: Option<u64>,
    /// How much is used.
    pub used: u64,
    /// How much is held for work that was admitted or has reserved it.
    pub held: u64,
}

impl DimensionSnapshot {
    /// What is left below the hard limit; nothing without one.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.hard.map(|hard| hard.saturating_sub(self.used.saturating_add(self.held)))
    }
}

impl From<Budget> for BudgetSnapshot {
    fn from(budget: Budget) -> Self {
        let dimension = |status: DimensionStatus| {
            let DimensionStatus { name, hard, soft, used, held } = status;
            let (hard, soft) = (hard.map(i64::unsigned_abs), soft.map(i64::unsigned_abs));
            (name, DimensionSnapshot { hard, soft, used: used.unsigned_abs(), held: held.unsigned_abs() })
        };
        Self {
            budget_id: budget.budget_id,
            namespace: Namespace::new(budget.namespace),
            parent: budget.parent,
            dimensions: budget.dimensions.into_iter().map(dimension).collect(),
            on_soft: budget.on_soft,
            on_hard: budget.on_hard,
            approved: budget.approved,
            next_reset_at: budget.next_reset_at.map(TimestampMs),
        }
    }
}

/// A quota, and how far its keys are used where that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaSnapshot {
    /// Its id.
    pub quota_id: QuotaPolicyId,
    /// Its namespace.
    pub namespace: Namespace,
    /// How many may start.
    pub rate: Option<QuotaRate>,
    /// How many may run at once.
    pub concurrency: Option<u64>,
    /// How much weight may start.
    pub weighted: Option<QuotaWeights>,
    /// Suspended work keeps its place.
    pub hold_while_suspended: bool,
    /// The key that was asked for, or those in use.
    pub keys: Vec<QuotaKeySnapshot>,
}

/// One key of a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaKeySnapshot {
    /// The key.
    pub key: String,
    /// How far each part is used, and when one more may pass.
    pub parts: Vec<QuotaUse>,
    /// How many run.
    pub held: u64,
    /// How many wait.
    pub waiting: u64,
    /// Until when nothing starts, because a provider said so.
    pub throttled_until: Option<TimestampMs>,
}

impl QuotaSnapshot {
    pub(crate) fn new(entry: QuotaEntry, keys: Vec<QuotaKeyState>) -> Self {
        let quota = entry.quota;
        let key = |state: QuotaKeyState| QuotaKeySnapshot {
            key: state.key,
            parts: state.parts,
            held: state.held.unsigned_abs(),
            waiting: state.waiting.unsigned_abs(),
            throttled_until: state.throttled_until.map(TimestampMs),
        };
        Self {
            quota_id: quota.quota_id,
            namespace: Namespace::new(quota.namespace),
            rate: quota.rate,
            concurrency: quota.concurrency.map(i64::unsigned_abs),
            weighted: quota.weighted,
            hold_while_suspended: quota.hold_while_suspended,
            keys: keys.into_iter().map(key).collect(),
        }
    }
}

/// What an execution used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSnapshot {
    /// By attempt, budget and dimension.
    pub lines: Vec<UsageLine>,
    /// How many reports wait for their budget's answer.
    pub pending: u64,
}

/// What an attempt used of a budget's dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageLine {
    /// The attempt.
    pub attempt_index: AttemptIndex,
    /// The budget it reported to.
    pub budget_id: BudgetId,
    /// The dimension.
    pub dimension: String,
    /// What was counted.
    pub accepted: u64,
    /// What was refused, because it would have passed a limit.
    pub refused: u64,
}

impl UsageSnapshot {
    /// What all attempts used of a dimension, of all budgets together.
    #[must_use]
    pub fn used(&self, dimension: &str) -> u64 {
        self.lines.iter().filter(|line| line.dimension == dimension).map(|line| line.accepted).sum()
    }
}

impl From<Usage> for UsageSnapshot {
    fn from(usage: Usage) -> Self {
        let line = |line: ff_script::generated::LedgerLine| UsageLine {
            attempt_index: attempt_index(line.attempt_index),
            budget_id: line.budget_id,
            dimension: line.dimension,
            accepted: line.accepted.unsigned_abs(),
            refused: line.refused.unsigned_abs(),
        };
        Self {
            lines: usage.ledger.into_iter().map(line).collect(),
            pending: u64::try_from(usage.pending.len()).unwrap_or(u64::MAX),
        }
    }
}
