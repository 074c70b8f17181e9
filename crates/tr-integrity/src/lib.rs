//! Keeps an agent's session valid when tool calls fail, are cancelled, or outlive the process.
//!
//! A provider refuses a session in which one tool use lacks its result, and then refuses every
//! further call with that session. [`Validator`] finds such faults before they are sent, [`Repair`]
//! fixes them and keeps every tool's answer, [`Session`] rolls back to checkpoints, and two layers
//! prevent the faults: [`IntegrityLayer`] around tools, [`ModelGuardLayer`] around the model's API.
//!
//! # When to use
//!
//! Use the layers in an agent that keeps its own transcript, with [`IntegrityLayer`] outside the
//! loop guard and idempotency, so that each recorded use gets its result whatever the inner layers
//! do. [tr-transcript](tr_transcript) has the validator and the repair alone, for transcripts and
//! session files of other programs.
//!
//! ```text
//! ModelGuardLayer ─ model's API          IntegrityLayer ─ loop guard ─ … ─ tool
//!        └──────────────┬───────────────────────┘
//!                    Sessions
//! ```
//!
//! # Example
//!
//! ```
//! use tower::{ServiceBuilder, ServiceExt};
//! use tr_core::{BoxError, Json, Params, ToolCall, ToolOutcome};
//! use tr_integrity::{Format, IntegrityLayer, Sessions};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BoxError> {
//! let sessions = Sessions::new(Format::AnthropicMessages);
//! let tool = ServiceBuilder::new()
//!     .layer(IntegrityLayer::new(sessions.clone()))
//!     .service_fn(async |_: ToolCall| {
//!         Ok::<_, BoxError>(ToolOutcome::success(Json::from_text(r#""receipt 7""#)?))
//!     });
//!
//! let call = ToolCall::new("pay", Params::empty_object()).session("s-1").tool_call_id("toolu_1");
//! tool.oneshot(call).await?;
//!
//! sessions.with("s-1", |session, _now| {
//!     assert_eq!(session.transcript().len(), 2); // the use, and its result
//!     assert!(session.validate().valid);
//! });
//! # Ok(())
//! # }
//! ```
//!
//! # Defaults
//!
//! Those of [`Layer0Config`]: enabled, transcripts validated before each call of the model, repairs
//! offered and not applied, 10 committed checkpoints kept, no snapshots. [`CycleMode::Preserve`]
//! handles a failed cycle: it is rolled back if the tool did not run, else recorded with its error
//! or with [`OUTCOME_UNKNOWN`]. A use that the agent has pushed itself is always answered, also by
//! a refusal. A call without a session or without a tool call id passes through and costs no
//! allocation.
//!
//! Give sessions that must outlive the process a [store](SessionsBuilder::store): the intent
//! to run a tool is written before the tool starts, its use and result before the caller gets the
//! answer.
//!
//! # Errors
//!
//! [`IntentNotRecorded`] (`store_unavailable` or, after another process's change,
//! `session_corrupt`; [`Ran::No`](tr_core::Ran::No)): the sessions' store failed, and the tool did
//! not run. [`SessionCorrupt`] (`session_corrupt`, permanent, [`Ran::No`](tr_core::Ran::No)): the
//! transcript was not sent; the error holds the planned repair. [`ContentFiltered`]
//! (`content_filter`, permanent, [`Ran::Yes`](tr_core::Ran::Yes)): the session was rolled back; the
//! error's text is for the user. [`AnswerCutOff`] (`answer_cut_off`, transient,
//! [`Ran::Yes`](tr_core::Ran::Yes)): a streamed answer ended early, and the session was rolled
//! back. [`CheckpointNotRecorded`] (`store_unavailable`, [`Ran::No`](tr_core::Ran::No)): the
//! sessions' store did not record the checkpoint, so the model was not called. Errors of tools and
//! of the model pass through unchanged. The guard refuses in `call`: it must not sit directly on a
//! concurrency or rate limit, whose reserved capacity a refused call leaves unused.
//!
//! # Streamed answers
//!
//! [`ModelGuardLayer::streamed`] watches an answer as it arrives: its pieces pass unchanged, and
//! the last item is an error if a filter stopped it. Pieces that were already shown cannot be
//! recalled. If the caller drops the answer early, the session is rolled back to its checkpoint.
//! See [`WatchedBody`]. Without the layer, [`AnswerScanner`] finds out how an answer ended.
//!
//! # Features
//!
//! All are off by default.
//!
//! - `http`: the guard in front of an HTTP client, for `http::Request`, `http::Response` and any
//!   `http_body::Body`.
//! - `stream`: the guard around a `futures_core::Stream` of chunks.
//! - `sqlite`: sessions in a SQLite file, shared by the processes of one machine.
//! - `postgres`: sessions in PostgreSQL, shared by machines; `postgres-tls`: over TLS.
//! - `conformance`: the rules for stores of sessions, as tests.
//!
//! # Knows nothing of
//!
//! disks and databases, which are features (`sqlite`, `postgres`) behind the trait
//! [`SessionStore`](store::SessionStore); an async runtime, retries, and what tools do.
mod config;
#[cfg(feature = "conformance")]
pub mod conformance;
mod cycle;
mod guard;
#[cfg(feature = "postgres")]
pub mod postgres;
mod remote;
mod session;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod store;

/// The named futures of the services.
pub mod future {
    pub use crate::{cycle::future::IntegrityFuture, guard::service::ModelGuardFuture};
}

#[cfg(feature = "stream")]
pub use self::guard::Chunks;
#[cfg(feature = "http")]
pub use self::guard::SessionId;
pub use self::{
    config::Layer0Config,
    cycle::{Integrity, IntegrityBuilder, IntegrityLayer, IntentNotRecorded},
    guard::{
        AnswerCutOff, BodyOf, BodyWatch, CheckpointNotRecorded, ContentFiltered, ModelCall,
        ModelEndOf, ModelGuard, ModelGuardBuilder, ModelGuardLayer, SessionCorrupt, Streamed, Take,
        TranscriptOf, WatchedBody, Whole,
    },
    session::{
        Archive, Checkpoint, CycleId, CycleMode, CycleState, ErrorRecovery, Incident, Operation,
        RecoveryAction, ResetOptions, ResetResult, RollbackResult, Session, Sessions,
        SessionsBuilder, ToolCycleResult, ToolCycleTransaction, ToolResult, ToolUse,
    },
};
pub use tr_core::{ConfigError, WhenStoreFails};
pub use tr_transcript::{
    ActionKind, AnswerScanner, CheckpointError, Complaint, Fault, Finding, Format, Head, Loss,
    LossKind, Message, ModelEnd, OUTCOME_UNKNOWN, ReadError, Repair, RepairAction, RepairMode,
    RepairPlan, RepairResult, Role, Severity, StalePlan, Transcript, ValidationResult, Validator,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
