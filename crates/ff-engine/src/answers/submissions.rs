//! Submissions: one execution, or many.

use ff_api::executions::{SubmitBody, SubmitExecution, Submitted};
use ff_api::{Ask, Invalid, Problem};
use ff_core::types::ExecutionId;

use crate::operations::NewExecution;
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// The submission that a body means.
pub fn new_execution(mut body: SubmitBody) -> Result<NewExecution, Invalid> {
    let kind = std::mem::take(&mut body.kind);
    Ok(NewExecution { fields: body.submission("", kind, ExecutionId::mint, "default", "default")? })
}

impl Service {
    /// Submits one execution: accepted whole or refused whole.
    pub async fn submit(&self, by: &Principal, new: NewExecution) -> Result<Submitted, Problem> {
        self.check_submission(by, &new.fields).await?;
        Ok(self.dispatcher.submit(new).await?.into())
    }

    /// Submits many executions, each answered on its own, in order. One that cannot be submitted keeps no other from it.
    pub async fn submit_many(
        &self,
        by: &Principal,
        many: Vec<Result<NewExecution, Problem>>,
    ) -> Result<Vec<Result<Submitted, Problem>>, Problem> {
        let mut answers: Vec<Option<Result<Submitted, Problem>>> = Vec::with_capacity(many.len());
        let (mut places, mut accepted) = (Vec::new(), Vec::new());
        for (index, new) in many.into_iter().enumerate() {
            let checked = match new {
                Ok(new) => self.check_submission(by, &new.fields).await.map(|()| new),
                Err(problem) => Err(problem),
            };
            answers.push(match checked {
                Ok(new) => {
                    places.push(index);
                    accepted.push(new);
                    None
                }
                Err(problem) => Some(Err(problem)),
            });
        }
        let replies = self.operations.submit_many(accepted).await?;
        for (place, reply) in places.into_iter().zip(replies) {
            answers[place] = Some(reply.map(Submitted::from).map_err(Problem::from));
        }
        Ok(answers.into_iter().map(|answer| answer.expect("each was refused or answered")).collect())
    }
}

impl Handle<SubmitExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<SubmitExecution>) -> Result<Submitted, Problem> {
        self.submit(by, new_execution(ask.body)?).await
    }
}
