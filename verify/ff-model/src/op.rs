//! The calls the model knows. Each can be sent to a host and to the model, and the replies are compared.

use ff_script::generated as g;
use ff_script::wire::{DecodeError, Reader, Wire};
use ff_script::{Call, Invocation, Route};

use crate::model::{Answer, Model, Refusal};

/// The library and the model disagree.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The function that was called.
    pub function: &'static str,
    /// The reply of the library.
    pub library: String,
    /// The reply of the model.
    pub model: String,
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} disagrees\n  library: {}\n  model:   {}", self.function, self.library, self.model)
    }
}

/// A typed reply from the raw bytes.
pub fn read_answer<C: Call>(bytes: &[u8]) -> Result<Answer<C::Reply>, DecodeError> {
    let mut input = Reader::new(bytes);
    if input.boolean().is_ok() {
        return Ok(Err(Refusal { code: Wire::read(&mut input)?, detail: Wire::read(&mut input)? }));
    }
    Ok(Ok(C::decode_reply(&mut Reader::new(bytes))?))
}

fn compare<C: Call>(library: &[u8], model: Answer<C::Reply>) -> Result<bool, Disagreement>
where
    C::Reply: PartialEq + std::fmt::Debug,
{
    let decoded = read_answer::<C>(library);
    if decoded.as_ref().is_ok_and(|answer| *answer == model) {
        return Ok(model.is_ok());
    }
    Err(Disagreement { function: C::FUNCTION, library: format!("{decoded:?}"), model: format!("{model:?}") })
}

fn invocation<C: Call>(call: &C, route: Route, now_ms: i64) -> Invocation {
    Invocation {
        route,
        function: C::FUNCTION,
        read_only: C::READ_ONLY,
        args: call.encode(),
        now_ms: Some(now_ms),
        count_calls: false,
        terms: ff_script::Terms::default(),
    }
}

macro_rules! ops {
    ( $( $variant:ident => $method:ident, )+ ) => {
        #[derive(Clone, Debug)]
        #[expect(clippy::large_enum_variant, reason = "a few thousand exist at a time; a box for each would only cost time")]
        pub enum Op { $( #[doc = concat!("Implemented by `Model::", stringify!($method), "`.")] $variant(g::$variant), )+ }

        $( impl From<g::$variant> for Op {
            fn from(call: g::$variant) -> Op {
                Op::$variant(call)
            }
        } )+

        impl Op {
            /// Every function in the model.
            pub const FUNCTIONS: &'static [&'static str] = &[$( <g::$variant as Call>::FUNCTION, )+];

            /// The function it calls.
            pub fn function(&self) -> &'static str {
                match self { $( Op::$variant(_) => <g::$variant as Call>::FUNCTION, )+ }
            }

            /// The invocation for a host.
            pub fn invocation(&self, route: Route, now_ms: i64) -> Invocation {
                match self { $( Op::$variant(call) => invocation(call, route, now_ms), )+ }
            }

            /// Runs the same call on the model and compares. Returns whether it succeeded.
            pub fn check(&self, model: &mut Model, library: &[u8]) -> Result<bool, Disagreement> {
                match self { $( Op::$variant(call) => compare::<g::$variant>(library, model.$method(call)), )+ }
            }

            /// Runs the call on the model only.
            pub fn imagine(&self, model: &mut Model) {
                match self { $( Op::$variant(call) => { let _ = model.$method(call); } )+ }
            }
        }
    };
}

ops! {
    SubmitExecution => submit,
    CompleteExecution => complete,
    FailExecution => fail,
    CancelExecution => cancel,
    CancelAttempt => cancel_attempt,
    DelayExecution => delay,
    YieldExecution => yield_back,
    UpdateProgress => progress,
    HoldExecution => hold,
    ReleaseExecution => release,
    ChangeExecution => change,
    ReplayExecution => replay,
    DeleteExecution => delete,
    AwaitResult => await_result,
    ClaimExecutions => claim,
    RenewLease => renew,
    RevokeLease => revoke,
    DrainLeases => drain,
    IssueGrants => issue_grants,
    ConsumeGrant => consume_grant,
    ReleaseGrant => release_grant,
    BlockExecution => block,
    UnblockExecution => unblock,
    GrantReclaim => grant_reclaim,
    SuspendExecution => suspend,
    ResumeExecution => resume,
    FailSuspension => fail_suspension,
    CreateWaitpoint => create_waitpoint,
    CloseWaitpoint => close_waitpoint,
    DeliverSignal => deliver,
    ReissueToken => reissue,
    ListWaitpoints => list_waitpoints,
    DescribeWaitpoint => describe_waitpoint,
    ExecutionWaitpoints => execution_waitpoints,
    ReadSignals => read_signals,
    AppendFrames => append,
    ReadStream => read_stream,
    ReadSummary => read_summary,
    FollowStream => follow,
    InstallLane => install_lane,
    DescribeExecution => describe,
    GetAttempt => attempt,
    LaneDepth => lane_depth,
    FireDue => fire_due,
    NextDue => next_due,
    ReviewRoutes => review_routes,
}
