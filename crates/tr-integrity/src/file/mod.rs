//! Sessions as harnesses keep them: files of JSON lines.
mod records;
mod salvage;

pub use self::records::{Piece, Record, Records, SkipReason, Skipped};
