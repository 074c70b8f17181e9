//! Validates and repairs the transcripts that agents send to models, and the session files that
//! they keep.
//!
//! A provider refuses a transcript in which one tool use lacks its result. [`Validator`] finds such
//! faults before they are sent, [`Repair`] plans what fixes them and keeps every tool's answer.
//! [`SessionFile`] does both for the session files of other programs, and [`ModelEnd`] tells from a
//! model's answer whether the provider refused the transcript.
//!
//! # When to use
//!
//! On transcripts and files from other programs, and where you keep a transcript yourself. To keep
//! one valid while tools fail and processes end, use the layers of
//! [tr-integrity](../tr_integrity/index.html), which are built on this crate.
//!
//! # Example
//!
//! ```
//! use tr_transcript::{Fault, Repair, Transcript, Validator};
//!
//! let mut transcript = Transcript::read(r#"[
//!     {"role":"user","content":"how is the weather?"},
//!     {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":{}}]},
//!     {"role":"user","content":"go on"}
//! ]"#)?;
//! assert_eq!(Validator::of(&transcript).findings()[0].fault, Fault::IncompleteUse);
//!
//! let plan = Repair::default().plan(&transcript);
//! plan.apply(&mut transcript).unwrap();
//! assert!(Validator::of(&transcript).result().valid);
//! # Ok::<_, tr_transcript::ReadError>(())
//! ```
//!
//! # Defaults
//!
//! [`Repair`] preserves: a lost result becomes an error that says so, and an answer without its use
//! becomes text. A transcript whose form is not known is not judged.
//!
//! # Errors
//!
//! [`ReadError`] names the place of what cannot be read; [`StalePlan`], that the transcript has
//! changed since it was planned; [`CheckpointError`], a file that no longer begins as it did.
//!
//! # Features
//!
//! None.
//!
//! # Knows nothing of
//!
//! layers, sessions and their stores, an async runtime, disks.
mod file;
mod format;
#[doc(hidden)]
pub mod internal;
mod json;
mod keys;
mod message;
mod messages;
mod name;
mod provider;
mod repair;
mod transcript;
mod validate;

pub use self::{
    file::{
        CheckpointError, Dropped, FileAction, FileActionKind, FileBytes, FileCheck, FileCheckpoint,
        FileFault, FileFinding, FileForm, FileLoss, FilePlan, FilePlanner, FileReport, Piece,
        Record, Records, SessionFile, SkipReason, Skipped,
    },
    format::{Format, OUTCOME_UNKNOWN, ReadError},
    message::{Message, Role},
    provider::{AnswerScanner, Complaint, Head, ModelEnd},
    repair::{
        ActionKind, Loss, LossKind, Repair, RepairAction, RepairMode, RepairPlan, RepairResult,
        StalePlan,
    },
    transcript::Transcript,
    validate::{Fault, Finding, Severity, ValidationResult, Validator},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
