//! Sessions as harnesses keep them: files of JSON lines.
mod branch;
mod check;
mod drafts;
mod entry;
mod finding;
mod form;
mod path;
mod records;
mod salvage;
mod walk;

pub use self::{
    check::{FileBytes, FileCheck, FileReport},
    finding::{FileFault, FileFinding},
    form::FileForm,
    records::{Piece, Record, Records, SkipReason, Skipped},
};
