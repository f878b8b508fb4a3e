//! A plain reference for flows: after each step it evaluates everything anew, and keeps no counts.

use std::collections::VecDeque;

use ff_script::generated::{EdgeOn, InboundPolicy, MemberState, OnMemberFailure};

/// A member as it was submitted.
#[derive(Clone, Debug)]
pub struct NaiveMember {
    /// When it may run.
    pub policy: InboundPolicy,
    /// Number of edges that a quorum needs.
    pub k: usize,
    /// Whether the upstreams that are no longer needed are cancelled.
    pub cancels: bool,
}

/// An edge between two members, by index.
#[derive(Clone, Debug)]
pub struct NaiveEdge {
    /// Index of the upstream member.
    pub from: usize,
    /// Index of the downstream member.
    pub to: usize,
    /// The outcome that meets the edge.
    pub on: EdgeOn,
}

/// A flow and its progress.
#[derive(Clone, Debug)]
pub struct Naive {
    members: Vec<NaiveMember>,
    edges: Vec<NaiveEdge>,
    policy: OnMemberFailure,
    /// Waiting, ready (which is `Waiting`), or the end of the member.
    states: Vec<State>,
    stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Undecided,
    Ready,
    Ended(MemberState),
}

/// The remaining work, in the order it came up.
enum Next {
    /// The outgoing edges of a member that has ended.
    Edges(usize),
    /// The upstreams that a member no longer needs.
    Losers(usize),
    /// Failures that could have been handled by a member that is now decided.
    Decided(usize),
}

impl Naive {
    /// A flow that was just sealed.
    pub fn new(members: Vec<NaiveMember>, edges: Vec<NaiveEdge>, policy: OnMemberFailure) -> Self {
        let states = vec![State::Undecided; members.len()];
        let mut naive = Self { members, edges, policy, states, stopped: false };
        for at in 0..naive.members.len() {
            if naive.judge(at) == Some(true) {
                naive.states[at] = State::Ready;
            }
        }
        naive
    }

    /// Members that may run.
    pub fn ready(&self) -> Vec<usize> {
        (0..self.states.len()).filter(|&at| self.states[at] == State::Ready && !self.stopped).collect()
    }

    /// Ends a member, with all consequences.
    pub fn end(&mut self, at: usize, how: MemberState) {
        self.states[at] = State::Ended(how);
        let mut line = VecDeque::from([Next::Edges(at)]);
        while let Some(next) = line.pop_front() {
            match next {
                Next::Edges(at) => {
                    if self.stopped {
                        continue;
                    }
                    let downs: Vec<usize> = self.edges.iter().filter(|e| e.from == at).map(|e| e.to).collect();
                    for down in downs {
                        self.decide(down, &mut line);
                    }
                    self.fail_if(self.is_uncaught(at));
                }
                Next::Losers(at) => {
                    let ups: Vec<usize> = self.edges.iter().filter(|e| e.to == at).map(|e| e.from).collect();
                    for up in ups {
                        if !matches!(self.states[up], State::Ended(_)) && !self.wanted(up, at) {
                            self.states[up] = State::Ended(MemberState::Cancelled);
                            line.push_back(Next::Edges(up));
                        }
                    }
                }
                Next::Decided(at) => {
                    let ups: Vec<usize> = self.edges.iter().filter(|e| e.to == at).map(|e| e.from).collect();
                    self.fail_if(ups.into_iter().any(|up| self.is_uncaught(up)));
                }
            }
        }
    }

    fn fail_if(&mut self, uncaught: bool) {
        if uncaught && self.policy == OnMemberFailure::FailFlow && !self.stopped {
            self.cancel();
        }
    }

    /// Cancels everything that has not ended.
    pub fn cancel(&mut self) {
        self.stopped = true;
        for state in &mut self.states {
            if !matches!(state, State::Ended(_)) {
                *state = State::Ended(MemberState::Cancelled);
            }
        }
    }

    /// Whether no member starts any more.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// How each member ended; `None` if it has not.
    pub fn ended(&self) -> Vec<Option<MemberState>> {
        self.states
            .iter()
            .map(|state| match state {
                State::Ended(how) => Some(*how),
                State::Undecided | State::Ready => None,
            })
            .collect()
    }

    /// Whether the flow succeeds. Valid once all its members have ended.
    pub fn succeeds(&self) -> bool {
        let uncaught = (0..self.states.len()).any(|at| self.is_uncaught(at));
        let good_sink = (0..self.states.len()).any(|at| {
            self.states[at] == State::Ended(MemberState::Completed) && !self.edges.iter().any(|e| e.from == at)
        });
        !uncaught || (self.policy == OnMemberFailure::IsolateBranch && good_sink)
    }

    fn decide(&mut self, at: usize, line: &mut VecDeque<Next>) {
        if self.states[at] != State::Undecided {
            return;
        }
        match self.judge(at) {
            None => return,
            Some(false) => {
                self.states[at] = State::Ended(MemberState::Skipped);
                line.push_back(Next::Edges(at));
            }
            Some(true) => {
                self.states[at] = State::Ready;
                if self.members[at].cancels {
                    line.push_back(Next::Losers(at));
                }
            }
        }
        line.push_back(Next::Decided(at));
    }

    /// Whether another member that still needs this one has an edge from it.
    fn wanted(&self, up: usize, but: usize) -> bool {
        self.edges.iter().any(|e| e.from == up && e.to != but)
    }

    /// Whether the member may run (true) or never will (false); `None` while that is open.
    fn judge(&self, at: usize) -> Option<bool> {
        let inbound: Vec<&NaiveEdge> = self.edges.iter().filter(|e| e.to == at).collect();
        let of = |wanted: bool| {
            inbound
                .iter()
                .filter(|e| match self.states[e.from] {
                    State::Ended(how) => meets(e.on, how) == wanted,
                    State::Undecided | State::Ready => false,
                })
                .count()
        };
        let (met, dead, total) = (of(true), of(false), inbound.len());
        let needed = match self.members[at].policy {
            InboundPolicy::AllOf => total,
            InboundPolicy::AnyOf => total.min(1),
            InboundPolicy::Quorum => self.members[at].k,
        };
        if met >= needed {
            Some(true)
        } else if total - dead < needed {
            Some(false)
        } else {
            None
        }
    }

    /// Whether a failure is not handled and can no longer be.
    fn is_uncaught(&self, at: usize) -> bool {
        matches!(self.states[at], State::Ended(MemberState::Failed | MemberState::Expired))
            && !self.edges.iter().filter(|e| e.from == at).any(|e| {
                let race = self.members[e.to].policy != InboundPolicy::AllOf;
                let hopeful = !matches!(self.states[e.to], State::Ended(MemberState::Skipped));
                e.on != EdgeOn::Success || (race && hopeful)
            })
    }
}

fn meets(on: EdgeOn, how: MemberState) -> bool {
    match on {
        EdgeOn::Success => how == MemberState::Completed,
        EdgeOn::Failure => matches!(how, MemberState::Failed | MemberState::Expired),
        EdgeOn::Completion => how != MemberState::Skipped,
    }
}
