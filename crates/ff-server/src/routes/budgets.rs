//! Budgets: made and changed by operators, reserved from and reported to by anyone.

use ff_api::budgets::{
    ApproveBudget, ChangeBudget, CorrectBudget, CreateBudget, DeleteBudget, GetBudget, ListBlockedOnBudget,
    ListBudgets, ResetBudget,
};
use ff_api::usage::{ReleaseBudget, ReserveBudget, SettleBudget, SpendBudget};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<ListBudgets>()
        .answering::<CreateBudget>()
        .answering::<GetBudget>()
        .answering::<ChangeBudget>()
        .answering::<DeleteBudget>()
        .answering::<ListBlockedOnBudget>()
        .answering::<ResetBudget>()
        .answering::<ApproveBudget>()
        .answering::<CorrectBudget>()
        .answering::<ReserveBudget>()
        .answering::<SpendBudget>()
        .answering::<SettleBudget>()
        .answering::<ReleaseBudget>()
}
