//! Reads one of the library's words from a text of a query. A wrong one fails with those there are.

use std::fmt::Display;

use ff_script::generated::{
    CancelPolicy, EdgeOn, EdgeState, Fairness, FlowState, FrameMode, InboundPolicy, LaneState, MemberState,
    OnMemberFailure, OnSatisfied, ParentClose, PublicState, Role, SuspensionReason, TimeoutBehavior,
};

use crate::problem::{Answer, Problem};

/// A set of words.
pub trait Words: Copy + Display + 'static {
    /// All of them.
    const ALL: &'static [Self];
}

macro_rules! words {
    ( $( $name:ty ),+ $(,)? ) => { $( impl Words for $name { const ALL: &'static [Self] = <$name>::ALL; } )+ };
}
words!(
    CancelPolicy,
    EdgeOn,
    EdgeState,
    Fairness,
    FlowState,
    FrameMode,
    InboundPolicy,
    LaneState,
    MemberState,
    OnMemberFailure,
    OnSatisfied,
    ParentClose,
    PublicState,
    Role,
    SuspensionReason,
    TimeoutBehavior,
);

/// The word this text is.
pub fn word<T: Words>(field: &str, text: &str) -> Answer<T> {
    T::ALL
        .iter()
        .copied()
        .find(|word| word.to_string() == text)
        .ok_or_else(|| Problem::invalid(field, format!("is {text:?}: it must be one of {}", listed(T::ALL))))
}

fn listed<T: Words>(words: &[T]) -> String {
    words.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
