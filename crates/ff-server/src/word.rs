//! Reads one of the library's words from a text of a query. A wrong one fails with those there are.

use std::fmt::Display;

use ff_script::generated::{
    CancelPolicy, EdgeOn, EdgeState, Fairness, FlowState, FrameMode, InboundPolicy, LaneState, MemberState, OnHard,
    OnMemberFailure, OnSatisfied, OnSoft, ParentClose, PublicState, RateMode, ResetType, Role, ScopeType,
    SuspensionReason, TimeoutBehavior,
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
    OnHard,
    OnMemberFailure,
    OnSatisfied,
    OnSoft,
    ParentClose,
    PublicState,
    RateMode,
    ResetType,
    Role,
    ScopeType,
    SuspensionReason,
    TimeoutBehavior,
);

/// The word this text is.
pub fn word<T: Words>(field: &str, text: &str) -> Answer<T> {
    one_of(field, text, T::ALL)
}

/// The same of some of them.
pub fn one_of<T: Words>(field: &str, text: &str, words: &[T]) -> Answer<T> {
    words
        .iter()
        .copied()
        .find(|word| word.to_string() == text)
        .ok_or_else(|| Problem::invalid(field, format!("is {text:?}: it must be one of {}", listed(words))))
}

fn listed<T: Words>(words: &[T]) -> String {
    words.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
