//! Budgets and quotas: made by operators, used by running tasks.

mod report;
mod spec;
mod throttle;

pub use spec::{BudgetChange, BudgetSpec, QuotaChange, QuotaSpec};
