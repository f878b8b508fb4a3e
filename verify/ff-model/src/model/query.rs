//! The replies of reads.

use ff_script::generated::{
    AwaitResult, AwaitResultReply, DescribeExecution, DescribeExecutionReply, GetAttempt, GetAttemptReply, LaneDepth,
    LaneDepthReply,
};

use super::{Answer, Model, refused};

impl Model {
    pub fn describe(&self, call: &DescribeExecution) -> Answer<DescribeExecutionReply> {
        Ok(DescribeExecutionReply::Found { execution: self.get(call.execution_id)?.view() })
    }

    pub fn attempt(&self, call: &GetAttempt) -> Answer<GetAttemptReply> {
        let found = self.get(call.execution_id)?.attempt(call.index);
        let attempt = found.ok_or_else(|| refused("attempt_not_found", &[("index", Some(call.index.to_string()))]))?;
        Ok(GetAttemptReply::Found { attempt })
    }

    pub fn lane_depth(&self, call: &LaneDepth) -> Answer<LaneDepthReply> {
        let path = format!("{}/{}", call.namespace, call.lane);
        let depth = self.executions.values().filter(|e| e.path() == path && e.waiting().is_some()).count();
        Ok(LaneDepthReply::Depth { depth: depth as i64 })
    }

    pub fn await_result(&mut self, call: &AwaitResult) -> Answer<AwaitResultReply> {
        let execution = self.get(call.execution_id)?;
        if let Some(ended) = execution.ended() {
            let (result, result_encoding) = ended.result.clone().unzip();
            return Ok(AwaitResultReply::Ended {
                failure: ended.failure.clone(),
                outcome: ended.outcome,
                result,
                result_encoding,
            });
        }
        let state = execution.state();
        if !execution.awaited {
            self.edit(call.execution_id, |execution| execution.awaited = true);
        }
        Ok(AwaitResultReply::Waiting { state })
    }
}
