//! Claims that go along: with what a worker ends, and with a submission that meets a waiting worker.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::operations::Submitter;
use crate::{Claimed, NewExecution};
use async_trait::async_trait;
use ff_script::generated::{SubmitExecution, SubmitExecutionReply, Task};
use ff_script::{Answers, Error, HostError, List, Route};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{Dispatcher, Inner, Profile, claimant, shares};
use crate::dispatch::board::{Errand, Met, Sent, Sight};

impl Dispatcher {
    /// Submits an execution. When a worker waits here that covers it, its claim goes along in the same list.
    pub async fn submit(&self, new: NewExecution) -> Result<SubmitExecutionReply, Error> {
        self.inner.operations.submit_by(new, self).await
    }

    /// Runs operations that end work, and claims up to `max` tasks for the worker that did it in the same list. Never waits for work.
    ///
    /// The claim goes where work is known to wait; when nothing is, it looks where the last one ended (`last`), in `lane`. The ends are
    /// answered whatever becomes of the claim.
    pub async fn claim_after(
        &self,
        ends: List,
        last: Option<Route>,
        lane: Option<&str>,
        profile: &Profile,
        max: u16,
        request_id: Uuid,
    ) -> (Answers, Result<Vec<Task>, Error>) {
        let sights = match self.inner.watch(profile).await {
            Ok(sights) => sights,
            Err(error) => return (self.inner.operations.client().run(ends).await, Err(error)),
        };
        let (along, apart) = self.inner.errands_after(last, lane, profile, &sights, max);
        let shares = shares(max, &along.iter().chain(&apart).cloned().collect::<Vec<_>>());
        let (answer, answered) = oneshot::channel();
        let (inner, profile) = (Arc::clone(&self.inner), profile.clone());
        // Whatever becomes of the caller: leases nobody is there to take are handed back at once.
        tokio::spawn(async move {
            let (ended, claimed) = inner.run_after(ends, along, apart, shares, &profile, request_id).await;
            if let Err((_, Ok(tasks))) = answer.send((ended, claimed)) {
                inner.hand_back(tasks).await;
            }
        });
        match answered.await {
            Ok((ended, Ok(tasks))) => (ended, Ok(self.hold(tasks).take_what_fits())),
            Ok(failed) => failed,
            Err(_) => (Answers::default(), Err(Error::Host(HostError::Closed))),
        }
    }
}

#[async_trait]
impl Submitter for Dispatcher {
    async fn send(&self, route: Route, call: &SubmitExecution) -> Result<SubmitExecutionReply, Error> {
        let submission = &call.submission;
        let asks = [submission.quotas.as_ref().map(Vec::len), submission.budgets.as_ref().map(Vec::len)];
        let admitted = self.inner.operations.client().admits_in_claims() || asks.iter().flatten().all(|len| *len == 0);
        let is_plain = admitted && submission.delay_until.is_none();
        let met = match route {
            Route::Execution(partition) if is_plain => {
                let lane = format!("{}/{}", submission.namespace, submission.lane);
                let requires = submission.requires.as_deref().unwrap_or_default();
                self.inner.board().meet(&lane, &submission.kind, requires, partition)
            }
            _ => None,
        };
        let Some(met) = met else { return self.inner.operations.client().call(route, call).await };
        let (answer, answered) = oneshot::channel();
        let (inner, call) = (Arc::clone(&self.inner), call.clone());
        // The waiter is answered whatever becomes of the submitter.
        tokio::spawn(async move {
            let submitted = inner.submit_and_claim(route, &call, met).await;
            // A submitter that has gone needs no answer.
            let _ = answer.send(submitted);
        });
        answered.await.unwrap_or(Err(Error::Host(HostError::Closed)))
    }
}

impl Inner {
    /// Submits, and claims what was submitted for one who waits.
    async fn submit_and_claim(
        self: &Arc<Self>,
        route: Route,
        call: &SubmitExecution,
        met: Met,
    ) -> Result<SubmitExecutionReply, Error> {
        let Met { errand, wish, sent } = met;
        let client = self.operations.client();
        let mut list = List::default();
        let submission = list.add(client, route, call);
        let claim = list.add(client, route, &claimant(&errand, &wish.profile).claim(route, 1, wish.request_id));
        let mut answers = client.run(list).await;
        let (submitted, claimed) = (answers.take(submission), answers.take(claim).map(Claimed::from));
        let unheard = match claimed {
            Ok(claimed) if !claimed.admission_needed => {
                self.board().answered(&errand, claimed.next_score);
                sent.send(Sent::Met(errand, claimed.tasks)).err()
            }
            // The waiter goes itself, and hears why.
            _ => sent.send(Sent::To(errand)).err(),
        };
        match unheard {
            Some(Sent::Met(_, tasks)) => self.hand_back(tasks).await,
            Some(Sent::To(errand)) => self.board().unanswered(&errand),
            None => {}
        }
        submitted
    }

    /// Where a worker goes that ends something: the errands that ride in the same list, and those that need admission.
    fn errands_after(
        &self,
        last: Option<Route>,
        lane: Option<&str>,
        profile: &Profile,
        sights: &[Sight],
        max: u16,
    ) -> (Vec<Errand>, Vec<Errand>) {
        let mut errands = Vec::new();
        self.more_errands(&profile.instance, sights, max, &mut BTreeSet::new(), &mut errands);
        if errands.is_empty()
            && let Some(Route::Execution(partition)) = last
            && let [sight] =
                sights.iter().filter(|sight| lane.is_none_or(|lane| sight.is_of(lane))).collect::<Vec<_>>()[..]
        {
            errands.extend(self.board().look_in(sight, partition));
        }
        errands.into_iter().partition(|errand| !errand.needs_grants())
    }

    /// Runs the ends and the claims that ride with them, then the claims that need admission.
    async fn run_after(
        &self,
        mut list: List,
        along: Vec<Errand>,
        apart: Vec<Errand>,
        shares: Vec<u16>,
        profile: &Profile,
        request_id: Uuid,
    ) -> (Answers, Result<Vec<Task>, Error>) {
        let client = self.operations.client();
        let mut shares = shares.into_iter();
        let claims: Vec<_> = along
            .into_iter()
            .zip(shares.by_ref())
            .map(|(errand, share)| {
                let route = Route::Execution(errand.partition);
                let place = list.add(client, route, &claimant(&errand, profile).claim(route, share, request_id));
                (errand, share, place)
            })
            .collect();
        let mut answers = client.run(list).await;
        let (mut tasks, mut failure) = (Vec::new(), None);
        let mut note = |errand: &Errand, claimed: Result<Claimed, Error>| match claimed {
            Ok(mut claimed) => {
                self.board().answered(errand, claimed.next_score);
                tasks.append(&mut claimed.tasks);
            }
            Err(error) => {
                self.board().unanswered(errand);
                failure = Some(error);
            }
        };
        for (errand, share, place) in claims {
            let claimed = match answers.take(place).map(Claimed::from) {
                Ok(claimed) if claimed.admission_needed => self.claim_at(&errand, profile, share, request_id).await,
                claimed => claimed,
            };
            note(&errand, claimed);
        }
        for (errand, share) in apart.into_iter().zip(shares) {
            let claimed = self.claim_at(&errand, profile, share, request_id).await;
            note(&errand, claimed);
        }
        let claimed = match failure {
            Some(error) if tasks.is_empty() => Err(error),
            _ => Ok(tasks),
        };
        (answers, claimed)
    }
}
