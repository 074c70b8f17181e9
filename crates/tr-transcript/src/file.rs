//! The session files (JSON lines) of agents such as Claude Code, Codex and OpenClaw.
//!
//! Reading: `records`, `piece`, `recover`, `entry`, `outline`, `form`. Checking: `check`, `branch`,
//! `walk`, `finding`. Repair in memory: `repaired`, `branch_repair`, `edit`. Repair of a large file
//! in parts: `index`, `part`, `planner`. It works on bytes given to it, and opens no file.
mod align;
mod branch;
mod branch_repair;
mod check;
mod checkpoint;
mod done;
mod drafts;
mod edit;
mod entry;
mod evidence;
mod finding;
mod form;
mod index;
mod located;
mod named;
mod new_line;
mod outline;
mod part;
mod path;
mod piece;
mod planner;
mod preserved;
mod records;
mod recover;
mod relink;
mod repaired;
mod session_file;
mod walk;

pub use self::{
    check::FileCheck,
    checkpoint::{CheckpointError, FileCheckpoint},
    done::{Dropped, FileAction, FileActionKind, FileLoss, FilePlan},
    finding::{FileBytes, FileFault, FileFinding, FileReport},
    form::FileForm,
    planner::FilePlanner,
    records::{Piece, Record, Records, SkipReason, Skipped},
    session_file::SessionFile,
};
