//! What is in a session's file, and what a change makes of it.
use super::{
    Failure, Source,
    kind::{Kind, kind},
    lines::Lines,
    report::{About, Act, Health, Lost},
    sidecar::Checkpoint,
    whole::Whole,
};
use std::{borrow::Cow, path::Path};
use tr_integrity::{CheckpointError, FileCheckpoint, Repair, RepairMode};

/// A session that is in memory.
#[derive(Debug)]
pub(crate) enum Content {
    /// One JSON text.
    Whole(Whole),
    /// JSON lines.
    Lines(Lines),
}

/// What a repair does.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) acts: Vec<Act>,
    pub(crate) losses: Vec<Lost>,
    /// What it leads to.
    pub(crate) after: Content,
}

impl Content {
    /// Reads a file.
    pub(crate) fn read(source: &Source) -> Result<Self, Failure> {
        match kind(source)? {
            Kind::Whole => Whole::read(source.bytes()?).map(Self::Whole),
            Kind::Lines => Lines::read(source.bytes()?).map(Self::Lines),
        }
    }

    pub(crate) fn about(&self) -> About {
        match self {
            Self::Whole(whole) => whole.about(),
            Self::Lines(lines) => lines.about(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(whole) => whole.text().as_bytes(),
            Self::Lines(lines) => lines.bytes(),
        }
    }

    /// The texts of the messages, or of the lines, and at which line each begins.
    pub(crate) fn records(&self) -> Vec<(u64, Cow<'_, str>)> {
        match self {
            Self::Whole(whole) => {
                whole.records().map(|(line, text)| (line, Cow::Borrowed(text))).collect()
            }
            Self::Lines(lines) => lines.records().collect(),
        }
    }

    pub(crate) fn health(&self) -> Health {
        match self {
            Self::Whole(whole) => whole.health(),
            Self::Lines(lines) => lines.health(),
        }
    }

    pub(crate) fn plan(&self, mode: RepairMode, close_tail: bool) -> Planned {
        let repair = Repair::new(mode);
        let repair = if close_tail { repair.close_tail() } else { repair };
        match self {
            Self::Whole(whole) => whole.plan(repair, mode),
            Self::Lines(lines) => lines.plan(repair),
        }
    }

    /// The longest beginning that the provider takes, all calls answered.
    pub(crate) fn before_fault(&self) -> Self {
        match self {
            Self::Whole(whole) => whole.before_fault().into(),
            Self::Lines(lines) => lines.before_fault().into(),
        }
    }

    /// How far a checkpoint made now reaches, and the hash of all up to there; `None` if there is
    /// nothing to come back to.
    pub(crate) fn end(&self) -> Option<(u64, String)> {
        let end = match self {
            Self::Whole(whole) => whole.end(),
            Self::Lines(lines) => lines.end(),
        };
        end.map(|end| (end as u64, hash(&self.bytes()[..end])))
    }

    /// What stood there when a checkpoint was made; `None` if it does not stand there now.
    pub(crate) fn at(&self, checkpoint: &Checkpoint) -> Option<Self> {
        match self {
            Self::Whole(whole) => whole.at(checkpoint).map(Into::into),
            Self::Lines(lines) => lines.at(checkpoint).map(Into::into),
        }
    }

    /// The newest points to which it can go back without a checkpoint of ours: where turns of a
    /// session of JSON lines begin.
    pub(crate) fn turns(&self, most: usize) -> Vec<FileCheckpoint> {
        match self {
            Self::Whole(_) => Vec::new(),
            Self::Lines(lines) => lines.turns().take(most).collect(),
        }
    }

    /// What stood there at such a point.
    pub(crate) fn at_turn(&self, id: &str) -> Result<Self, CheckpointError> {
        match self {
            Self::Whole(_) => Err(CheckpointError::NotFound(id.into())),
            Self::Lines(lines) => lines.at_turn(id).map(Into::into),
        }
    }

    /// The system's prompt, or the header, alone.
    pub(crate) fn prompt(&self) -> Self {
        match self {
            Self::Whole(whole) => whole.prompt().into(),
            Self::Lines(lines) => lines.prompt().into(),
        }
    }
}

/// What a session is called: as its file.
pub(crate) fn id(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
