//! Whether whoever holds a worker instance id still lives: a newcomer asks, a live holder answers.

use std::time::Duration;

use ff_script::generated::{AnswerChallenge, ChallengeWorker, ChallengeWorkerReply};
use ff_script::{Error, Route, Wake};
use tokio::time::Instant;
use uuid::Uuid;

use super::Operations;
use crate::news::{Listener, News};

/// How long a live holder of an instance id has to answer.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// How often it is asked meanwhile: one that has just started may not have heard the first time.
const ASK_EVERY: Duration = Duration::from_millis(120);

impl Operations {
    /// Asks whoever holds the instance id to say that it lives. Silence means a ghost.
    pub async fn holder_lives(&self, instance: &str) -> Result<bool, Error> {
        let challenge = ChallengeWorker { instance: instance.to_owned(), nonce: Uuid::now_v7() };
        let mut news = Listener::new(self.client.host().as_ref());
        let until = Instant::now() + ANSWER_LIMIT;
        loop {
            // Asked again with the same nonce, the record says whether the holder has answered.
            match self.client.call(Route::Fleet, &challenge).await? {
                ChallengeWorkerReply::Answered => return Ok(true),
                ChallengeWorkerReply::Unknown => return Ok(false),
                ChallengeWorkerReply::Challenged if Instant::now() >= until => return Ok(false),
                ChallengeWorkerReply::Challenged => {}
            }
            let ask_again = until.min(Instant::now() + ASK_EVERY);
            while let Ok(Some(heard)) = tokio::time::timeout_at(ask_again, news.next()).await {
                let answered = |item: &News| matches!(item, News::Said(Route::Fleet, Wake::Answered { nonce, .. }) if *nonce == challenge.nonce);
                if heard.iter().any(answered) {
                    return Ok(true);
                }
            }
        }
    }

    /// Says that this incarnation of an instance lives; refused with `instance_in_use` when it was replaced.
    pub async fn answer_challenge(&self, instance: &str, incarnation: Uuid, nonce: Uuid) -> Result<(), Error> {
        let answer = AnswerChallenge { incarnation, instance: instance.to_owned(), nonce };
        self.client.call(Route::Fleet, &answer).await.map(|_| ())
    }
}
