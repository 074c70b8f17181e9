//! Keeps an agent's session valid, whatever happens to its tool calls.
mod config;
mod cycle;
mod format;
mod guard;
mod json;
mod message;
mod provider;
mod repair;
mod session;
mod transcript;
mod validate;

/// The named futures of the services.
pub mod future {
    pub use crate::{cycle::future::IntegrityFuture, guard::future::ModelGuardFuture};
}

pub use self::{
    config::{ConfigError, Layer0Config},
    cycle::{Integrity, IntegrityBuilder, IntegrityLayer},
    format::{Format, OUTCOME_UNKNOWN, ReadError},
    guard::{
        ContentFiltered, ModelCall, ModelEndOf, ModelGuard, ModelGuardBuilder, ModelGuardLayer,
        SessionCorrupt, TranscriptOf,
    },
    message::{Message, Role},
    provider::{Complaint, ModelEnd},
    repair::{
        ActionKind, Loss, LossKind, Repair, RepairAction, RepairMode, RepairPlan, RepairResult,
        StalePlan,
    },
    session::{
        Archive, Checkpoint, CheckpointError, CycleId, CycleMode, CycleState, ErrorRecovery,
        Incident, Operation, RecoveryAction, ResetOptions, ResetResult, RollbackResult, Session,
        Sessions, SessionsBuilder, ToolCycleResult, ToolCycleTransaction, ToolResult, ToolUse,
    },
    transcript::Transcript,
    validate::{Fault, Finding, Severity, ValidationResult, Validator},
};
