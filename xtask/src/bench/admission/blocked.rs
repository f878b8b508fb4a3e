//! Many executions that wait for one budget.

/// What one step of it took.
pub struct Step {
    pub name: &'static str,
    pub calls: usize,
    pub at_most: Option<usize>,
    pub seconds: Option<f64>,
}

pub struct Blocked {
    pub executions: usize,
    pub steps: Vec<Step>,
}
