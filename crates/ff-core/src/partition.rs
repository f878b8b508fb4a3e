//! How many partitions each family of records has; fixed when a store is first used.

use serde::{Deserialize, Serialize};

use crate::types::{BudgetId, ExecutionId, FlowId, QuotaPolicyId, WaitpointId};

/// The partition counts of a store, none of them 0.
///
/// They decide where every record lives, so a store keeps the counts of its first boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PartitionConfig {
    /// Executions and flows.
    pub executions: u16,
    /// Budgets.
    pub budgets: u16,
    /// Quotas.
    pub quotas: u16,
    /// Schedules.
    pub schedules: u16,
}

/// A partition count of 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("partition count of {family} is 0, must be 1 to 65535")]
pub struct NoPartitions {
    /// The family without partitions.
    pub family: &'static str,
}

impl PartitionConfig {
    /// The counts of a fresh embedded store.
    #[must_use]
    pub const fn embedded() -> Self {
        Self { executions: 16, budgets: 4, quotas: 4, schedules: 4 }
    }

    /// The counts of a fresh Valkey store.
    #[must_use]
    pub const fn valkey() -> Self {
        Self { executions: 256, budgets: 32, quotas: 32, schedules: 32 }
    }

    /// These counts, if each family has at least one partition.
    pub fn checked(self) -> Result<Self, NoPartitions> {
        for (family, count) in [
            ("executions", self.executions),
            ("budgets", self.budgets),
            ("quotas", self.quotas),
            ("schedules", self.schedules),
        ] {
            if count == 0 {
                return Err(NoPartitions { family });
            }
        }
        Ok(self)
    }

    /// The partition of an execution.
    #[must_use]
    pub const fn of_execution(&self, id: &ExecutionId) -> u16 {
        id.partition(self.executions)
    }

    /// The partition of a flow, which its members share.
    #[must_use]
    pub const fn of_flow(&self, id: &FlowId) -> u16 {
        id.partition(self.executions)
    }

    /// The partition of a waitpoint, which it shares with its execution.
    #[must_use]
    pub const fn of_waitpoint(&self, id: &WaitpointId) -> u16 {
        id.partition(self.executions)
    }

    /// The partition of a budget.
    #[must_use]
    pub const fn of_budget(&self, id: &BudgetId) -> u16 {
        id.partition(self.budgets)
    }

    /// The partition of a quota.
    #[must_use]
    pub const fn of_quota(&self, id: &QuotaPolicyId) -> u16 {
        id.partition(self.quotas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_without_partitions_is_refused_by_name() {
        assert_eq!(PartitionConfig::embedded().checked(), Ok(PartitionConfig::embedded()));
        let none = PartitionConfig { quotas: 0, ..PartitionConfig::valkey() };
        assert_eq!(none.checked().unwrap_err().to_string(), "partition count of quotas is 0, must be 1 to 65535");
    }

    #[test]
    fn a_flow_and_its_members_share_a_partition() {
        let flow = FlowId::mint();
        let member = ExecutionId::mint_with_seed(flow.seed());
        let config = PartitionConfig::valkey();
        assert_eq!(config.of_flow(&flow), config.of_execution(&member));
    }
}
