//! The number of partitions of each family of records; fixed when a store is first used.

use serde::{Deserialize, Serialize};

use crate::types::{BudgetId, ExecutionId, FlowId, QuotaPolicyId, WaitpointId};

/// The partition counts of a store, none of them 0.
///
/// They decide where every record is stored, so a store keeps the counts of its first boot.
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
    pub family: &'static str,
}

/// A partition count that is not a power of two.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} is not a power of two from 1 to 1024; only such a count can later be halved or doubled")]
pub struct NoPowerOfTwo {
    pub count: u16,
}

impl PartitionConfig {
    /// The counts of a new store on one machine: work in the same partition shares calls.
    #[must_use]
    pub const fn standalone() -> Self {
        Self { executions: 4, budgets: 1, quotas: 1, schedules: 1 }
    }

    /// The counts of a new store on a cluster, whose nodes share the partitions.
    #[must_use]
    pub const fn cluster() -> Self {
        Self { executions: 32, budgets: 8, quotas: 8, schedules: 8 }
    }

    /// This number of partitions for executions, and a quarter of it for every other family.
    pub fn of(executions: u16) -> Result<Self, NoPowerOfTwo> {
        if !executions.is_power_of_two() || executions > 1_024 {
            return Err(NoPowerOfTwo { count: executions });
        }
        let others = (executions / 4).max(1);
        Ok(Self { executions, budgets: others, quotas: others, schedules: others })
    }

    /// Returns these counts if each family has at least one partition.
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

    #[must_use]
    pub const fn of_execution(&self, id: &ExecutionId) -> u16 {
        id.partition(self.executions)
    }

    /// The partition of a flow and of its members.
    #[must_use]
    pub const fn of_flow(&self, id: &FlowId) -> u16 {
        id.partition(self.executions)
    }

    /// The partition of a waitpoint and of its execution.
    #[must_use]
    pub const fn of_waitpoint(&self, id: &WaitpointId) -> u16 {
        id.partition(self.executions)
    }

    #[must_use]
    pub const fn of_budget(&self, id: &BudgetId) -> u16 {
        id.partition(self.budgets)
    }

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
        assert_eq!(PartitionConfig::standalone().checked(), Ok(PartitionConfig::standalone()));
        let none = PartitionConfig { quotas: 0, ..PartitionConfig::cluster() };
        assert_eq!(none.checked().unwrap_err().to_string(), "partition count of quotas is 0, must be 1 to 65535");
    }

    #[test]
    fn counts_are_powers_of_two() {
        assert_eq!(PartitionConfig::of(4), Ok(PartitionConfig::standalone()));
        assert_eq!(PartitionConfig::of(32), Ok(PartitionConfig::cluster()));
        assert_eq!(PartitionConfig::of(1).map(|counts| counts.budgets), Ok(1));
        for count in [0, 3, 12, 2_048] {
            let refused = PartitionConfig::of(count).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("{count} is not a power of two")), "{refused}");
        }
    }

    #[test]
    fn a_flow_and_its_members_share_a_partition() {
        let flow = FlowId::mint();
        let member = ExecutionId::mint_with_seed(flow.seed());
        let config = PartitionConfig::cluster();
        assert_eq!(config.of_flow(&flow), config.of_execution(&member));
    }
}
