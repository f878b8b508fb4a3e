//! What the engine says about budgets, quotas, and what executions used: the types of the API, under the names they have here.

/// A budget as it stands.
pub use ff_api::budgets::Budget as BudgetSnapshot;
/// One dimension of a budget.
pub use ff_api::budgets::DimensionStatus as DimensionSnapshot;
/// A quota, and how far its keys are used where that was asked for.
pub use ff_api::quotas::Quota as QuotaSnapshot;
/// What an execution used.
pub use ff_api::usage::ExecutionUsage as UsageSnapshot;
/// What an attempt used of a budget's dimension.
pub use ff_script::generated::LedgerLine as UsageLine;
/// One key of a quota.
pub use ff_script::generated::QuotaKeyState as QuotaKeySnapshot;
