//! Why an execution, or the work of a lane, is not running.

use ff_api::explain::ExplainExecution;
use ff_api::explain_lane::ExplainLane;

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new().answering::<ExplainExecution>().answering::<ExplainLane>()
}
