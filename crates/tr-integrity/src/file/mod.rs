//! Sessions as harnesses keep them: files of JSON lines.
mod align;
mod branch;
mod check;
mod checkpoint;
mod drafts;
mod edit;
mod entry;
mod finding;
mod form;
mod mend;
mod new_line;
mod outline;
mod path;
mod plan;
mod records;
mod salvage;
mod session_file;
mod walk;

pub use self::{
    check::{FileBytes, FileCheck, FileReport},
    checkpoint::{FileCheckpoint, FileCut},
    finding::{FileFault, FileFinding},
    form::FileForm,
    plan::{Dropped, FileAction, FileActionKind, FileLoss, FilePlan, FileRepair},
    records::{Piece, Record, Records, SkipReason, Skipped},
    session_file::SessionFile,
};
