//! The code of every refusal; written by `cargo xtask codegen` from lua/lib/errors.lua, do not edit.

use crate::error::Class;
use crate::text_enum::text_enum;

text_enum! {
    /// The stable code of a refusal.
    ErrorCode as "error code" {
        /// An argument is missing, unknown, mistyped or out of bounds; detail names the field.
        InvalidArgument = "invalid_argument",
        /// A capability token is empty or holds a comma, white space or a control character.
        CapabilityInvalid = "capability_invalid",
        /// No execution has this id, or it was retired.
        ExecutionNotFound = "execution_not_found",
        /// The execution has no attempt with this index.
        AttemptNotFound = "attempt_not_found",
        /// The worker instance is unknown or its registration ran out.
        WorkerNotRegistered = "worker_not_registered",
        /// The lane has never been used or configured.
        LaneNotFound = "lane_not_found",
        /// The grant is unknown, was consumed or ran out.
        GrantNotFound = "grant_not_found",
        /// The namespace has no schedule of this name.
        ScheduleNotFound = "schedule_not_found",
        /// The schedule has another version than the one named; detail says which.
        ScheduleVersionConflict = "schedule_version_conflict",
        /// A backfill of the schedule is under way; detail says which.
        ScheduleBusy = "schedule_busy",
        /// No flow has this id, or it was retired.
        FlowNotFound = "flow_not_found",
        /// No budget has this id.
        BudgetNotFound = "budget_not_found",
        /// The reservation is unknown, was settled, released or ran out.
        ReservationNotFound = "reservation_not_found",
        /// The budget's definition changed in between.
        BudgetVersionConflict = "budget_version_conflict",
        /// The budget has children, or something is held; detail says how many.
        BudgetInUse = "budget_in_use",
        /// The lease ended when a report met the hard limit of a budget; detail says which and what followed.
        HardBreach = "hard_breach",
        /// Too many reports of the execution wait for their budgets.
        UsagePending = "usage_pending",
        /// The flow has ended or was stopped; detail says how.
        FlowTerminal = "flow_terminal",
        /// The operation needs an execution whose flow or parent has ended.
        FlowNotTerminal = "flow_not_terminal",
        /// The flow's graph changed in between; the client checks again.
        FlowChanged = "flow_changed",
        /// The member has started: nothing can be put before it.
        MemberStarted = "member_started",
        /// The edge would close a cycle.
        CycleDetected = "cycle_detected",
        /// The flow or the parent holds as many members as it can.
        FlowFull = "flow_full",
        /// The execution is not running, or another outcome won; detail says which.
        ExecutionNotActive = "execution_not_active",
        /// The operation needs an execution that has not started or has stopped waiting to start.
        ExecutionNotRunnable = "execution_not_runnable",
        /// The operation needs an execution that has ended.
        ExecutionNotTerminal = "execution_not_terminal",
        /// The execution has ended; replay it instead.
        ExecutionTerminal = "execution_terminal",
        /// The fence is not the current one: a newer lease exists.
        StaleLease = "stale_lease",
        /// The lease ran out before this call arrived.
        LeaseExpired = "lease_expired",
        /// An operator took the lease away.
        LeaseRevoked = "lease_revoked",
        /// The same key or id was submitted with a different body.
        IdempotencyConflict = "idempotency_conflict",
        /// The execution was replayed as often as it allows.
        MaxReplays = "max_replays",
        /// The lane is disabled or draining and accepts no work.
        LaneDisabled = "lane_disabled",
        /// The lane holds as much as max_depth allows; the depth is at most one second old.
        LaneFull = "lane_full",
        /// The lane's definition changed in between.
        LaneVersionConflict = "lane_version_conflict",
        /// Another live process holds this worker instance id.
        InstanceInUse = "instance_in_use",
        /// The worker lacks required capabilities; detail lists them.
        NotCapable = "not_capable",
        /// The waitpoint takes no signal with this token; whether it is unknown, closed, expired or spent is not said.
        WaitpointNotOpen = "waitpoint_not_open",
        /// The token was not signed with a key of this store; answered before the store is asked.
        InvalidToken = "invalid_token",
        /// The execution has no such waitpoint.
        WaitpointNotFound = "waitpoint_not_found",
        /// The waitpoint does not take signals of this name.
        SignalNotAllowed = "signal_not_allowed",
        /// The execution took as many signals as it can hold.
        SignalsFull = "signals_full",
        /// The operation needs a suspended execution.
        ExecutionNotSuspended = "execution_not_suspended",
        /// The first sequence leaves a gap; detail says which is expected.
        FramesMissing = "frames_missing",
        /// The summary changed in between; the client folds again.
        SummaryChanged = "summary_changed",
        /// The store was set up with other partition counts.
        PartitionMismatch = "partition_mismatch",
        /// An import into the store was begun and has not ended.
        ImportUnfinished = "import_unfinished",
        /// The partition has no copy of the lane yet; the client installs it and asks again.
        LaneUnseen = "lane_unseen",
        /// The lane has a max_depth; the client adds the lane's depth and asks again.
        LaneDepthNeeded = "lane_depth_needed",
        /// The holder set has no capacity yet; the client counts what runs, sets it and asks again.
        CapacityUnknown = "capacity_unknown",
        /// Every slot of a concurrency limit is held; detail names it.
        AtCapacity = "at_capacity",
        /// No quota has this id.
        QuotaNotFound = "quota_not_found",
        /// The quota exists, or its definition changed in between; detail says which version it has.
        QuotaVersionConflict = "quota_version_conflict",
        /// No access token has this id, or it was revoked.
        AccessNotFound = "access_not_found",
        /// The execution has recorded no step of this name.
        StepNotFound = "step_not_found",
        /// The step was recorded with another input, or as another kind of step; detail says what is stored.
        StepChanged = "step_changed",
        /// The execution has recorded as many steps, or bytes, as it can.
        StepsFull = "steps_full",
        /// The partition is moving; nothing was written.
        TryAgain = "try_again",
        /// A stored record cannot be read; detail names key and field.
        CorruptRecord = "corrupt_record",
    }
}

impl ErrorCode {
    /// What a caller can do about it.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            ErrorCode::InvalidArgument => Class::Invalid,
            ErrorCode::CapabilityInvalid => Class::Invalid,
            ErrorCode::ExecutionNotFound => Class::NotFound,
            ErrorCode::AttemptNotFound => Class::NotFound,
            ErrorCode::WorkerNotRegistered => Class::NotFound,
            ErrorCode::LaneNotFound => Class::NotFound,
            ErrorCode::GrantNotFound => Class::NotFound,
            ErrorCode::ScheduleNotFound => Class::NotFound,
            ErrorCode::ScheduleVersionConflict => Class::Conflict,
            ErrorCode::ScheduleBusy => Class::Conflict,
            ErrorCode::FlowNotFound => Class::NotFound,
            ErrorCode::BudgetNotFound => Class::NotFound,
            ErrorCode::ReservationNotFound => Class::NotFound,
            ErrorCode::BudgetVersionConflict => Class::Conflict,
            ErrorCode::BudgetInUse => Class::Conflict,
            ErrorCode::HardBreach => Class::Conflict,
            ErrorCode::UsagePending => Class::Retryable,
            ErrorCode::FlowTerminal => Class::Conflict,
            ErrorCode::FlowNotTerminal => Class::Conflict,
            ErrorCode::FlowChanged => Class::Retryable,
            ErrorCode::MemberStarted => Class::Conflict,
            ErrorCode::CycleDetected => Class::Invalid,
            ErrorCode::FlowFull => Class::Conflict,
            ErrorCode::ExecutionNotActive => Class::Conflict,
            ErrorCode::ExecutionNotRunnable => Class::Conflict,
            ErrorCode::ExecutionNotTerminal => Class::Conflict,
            ErrorCode::ExecutionTerminal => Class::Conflict,
            ErrorCode::StaleLease => Class::Conflict,
            ErrorCode::LeaseExpired => Class::Conflict,
            ErrorCode::LeaseRevoked => Class::Conflict,
            ErrorCode::IdempotencyConflict => Class::Conflict,
            ErrorCode::MaxReplays => Class::Conflict,
            ErrorCode::LaneDisabled => Class::Conflict,
            ErrorCode::LaneFull => Class::Retryable,
            ErrorCode::LaneVersionConflict => Class::Conflict,
            ErrorCode::InstanceInUse => Class::Conflict,
            ErrorCode::NotCapable => Class::Conflict,
            ErrorCode::WaitpointNotOpen => Class::NotFound,
            ErrorCode::InvalidToken => Class::Invalid,
            ErrorCode::WaitpointNotFound => Class::NotFound,
            ErrorCode::SignalNotAllowed => Class::Conflict,
            ErrorCode::SignalsFull => Class::Conflict,
            ErrorCode::ExecutionNotSuspended => Class::Conflict,
            ErrorCode::FramesMissing => Class::Conflict,
            ErrorCode::SummaryChanged => Class::Retryable,
            ErrorCode::PartitionMismatch => Class::Terminal,
            ErrorCode::ImportUnfinished => Class::Terminal,
            ErrorCode::LaneUnseen => Class::Retryable,
            ErrorCode::LaneDepthNeeded => Class::Retryable,
            ErrorCode::CapacityUnknown => Class::Retryable,
            ErrorCode::AtCapacity => Class::Retryable,
            ErrorCode::QuotaNotFound => Class::NotFound,
            ErrorCode::QuotaVersionConflict => Class::Conflict,
            ErrorCode::AccessNotFound => Class::NotFound,
            ErrorCode::StepNotFound => Class::NotFound,
            ErrorCode::StepChanged => Class::Conflict,
            ErrorCode::StepsFull => Class::Conflict,
            ErrorCode::TryAgain => Class::Retryable,
            ErrorCode::CorruptRecord => Class::Corrupt,
        }
    }

    /// What it means, in one sentence.
    #[must_use]
    pub const fn doc(self) -> &'static str {
        match self {
            ErrorCode::InvalidArgument => "An argument is missing, unknown, mistyped or out of bounds; detail names the field.",
            ErrorCode::CapabilityInvalid => "A capability token is empty or holds a comma, white space or a control character.",
            ErrorCode::ExecutionNotFound => "No execution has this id, or it was retired.",
            ErrorCode::AttemptNotFound => "The execution has no attempt with this index.",
            ErrorCode::WorkerNotRegistered => "The worker instance is unknown or its registration ran out.",
            ErrorCode::LaneNotFound => "The lane has never been used or configured.",
            ErrorCode::GrantNotFound => "The grant is unknown, was consumed or ran out.",
            ErrorCode::ScheduleNotFound => "The namespace has no schedule of this name.",
            ErrorCode::ScheduleVersionConflict => "The schedule has another version than the one named; detail says which.",
            ErrorCode::ScheduleBusy => "A backfill of the schedule is under way; detail says which.",
            ErrorCode::FlowNotFound => "No flow has this id, or it was retired.",
            ErrorCode::BudgetNotFound => "No budget has this id.",
            ErrorCode::ReservationNotFound => "The reservation is unknown, was settled, released or ran out.",
            ErrorCode::BudgetVersionConflict => "The budget's definition changed in between.",
            ErrorCode::BudgetInUse => "The budget has children, or something is held; detail says how many.",
            ErrorCode::HardBreach => "The lease ended when a report met the hard limit of a budget; detail says which and what followed.",
            ErrorCode::UsagePending => "Too many reports of the execution wait for their budgets.",
            ErrorCode::FlowTerminal => "The flow has ended or was stopped; detail says how.",
            ErrorCode::FlowNotTerminal => "The operation needs an execution whose flow or parent has ended.",
            ErrorCode::FlowChanged => "The flow's graph changed in between; the client checks again.",
            ErrorCode::MemberStarted => "The member has started: nothing can be put before it.",
            ErrorCode::CycleDetected => "The edge would close a cycle.",
            ErrorCode::FlowFull => "The flow or the parent holds as many members as it can.",
            ErrorCode::ExecutionNotActive => "The execution is not running, or another outcome won; detail says which.",
            ErrorCode::ExecutionNotRunnable => "The operation needs an execution that has not started or has stopped waiting to start.",
            ErrorCode::ExecutionNotTerminal => "The operation needs an execution that has ended.",
            ErrorCode::ExecutionTerminal => "The execution has ended; replay it instead.",
            ErrorCode::StaleLease => "The fence is not the current one: a newer lease exists.",
            ErrorCode::LeaseExpired => "The lease ran out before this call arrived.",
            ErrorCode::LeaseRevoked => "An operator took the lease away.",
            ErrorCode::IdempotencyConflict => "The same key or id was submitted with a different body.",
            ErrorCode::MaxReplays => "The execution was replayed as often as it allows.",
            ErrorCode::LaneDisabled => "The lane is disabled or draining and accepts no work.",
            ErrorCode::LaneFull => "The lane holds as much as max_depth allows; the depth is at most one second old.",
            ErrorCode::LaneVersionConflict => "The lane's definition changed in between.",
            ErrorCode::InstanceInUse => "Another live process holds this worker instance id.",
            ErrorCode::NotCapable => "The worker lacks required capabilities; detail lists them.",
            ErrorCode::WaitpointNotOpen => "The waitpoint takes no signal with this token; whether it is unknown, closed, expired or spent is not said.",
            ErrorCode::InvalidToken => "The token was not signed with a key of this store; answered before the store is asked.",
            ErrorCode::WaitpointNotFound => "The execution has no such waitpoint.",
            ErrorCode::SignalNotAllowed => "The waitpoint does not take signals of this name.",
            ErrorCode::SignalsFull => "The execution took as many signals as it can hold.",
            ErrorCode::ExecutionNotSuspended => "The operation needs a suspended execution.",
            ErrorCode::FramesMissing => "The first sequence leaves a gap; detail says which is expected.",
            ErrorCode::SummaryChanged => "The summary changed in between; the client folds again.",
            ErrorCode::PartitionMismatch => "The store was set up with other partition counts.",
            ErrorCode::ImportUnfinished => "An import into the store was begun and has not ended.",
            ErrorCode::LaneUnseen => "The partition has no copy of the lane yet; the client installs it and asks again.",
            ErrorCode::LaneDepthNeeded => "The lane has a max_depth; the client adds the lane's depth and asks again.",
            ErrorCode::CapacityUnknown => "The holder set has no capacity yet; the client counts what runs, sets it and asks again.",
            ErrorCode::AtCapacity => "Every slot of a concurrency limit is held; detail names it.",
            ErrorCode::QuotaNotFound => "No quota has this id.",
            ErrorCode::QuotaVersionConflict => "The quota exists, or its definition changed in between; detail says which version it has.",
            ErrorCode::AccessNotFound => "No access token has this id, or it was revoked.",
            ErrorCode::StepNotFound => "The execution has recorded no step of this name.",
            ErrorCode::StepChanged => "The step was recorded with another input, or as another kind of step; detail says what is stored.",
            ErrorCode::StepsFull => "The execution has recorded as many steps, or bytes, as it can.",
            ErrorCode::TryAgain => "The partition is moving; nothing was written.",
            ErrorCode::CorruptRecord => "A stored record cannot be read; detail names key and field.",
        }
    }
}
