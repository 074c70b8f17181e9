//! What a session holds, and what a change makes of it.
use super::{
    lines::Lines,
    messages::Planned,
    report::{About, Health},
    sidecar::Checkpoint,
    stored::Stored,
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
    /// A log in a database.
    Stored(Stored),
}

/// Where a checkpoint that is made of a file reaches to.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) length: u64,
    /// Of all bytes up to there.
    pub(crate) content_hash: String,
    /// What the library calls this place of a session of JSON lines.
    pub(crate) point: Option<Box<str>>,
}

impl Content {
    pub(crate) fn about(&self) -> About {
        match self {
            Self::Whole(whole) => whole.about(),
            Self::Lines(lines) => lines.about(),
            Self::Stored(stored) => stored.about(),
        }
    }

    /// The file; of a session in a database, its messages as one JSON text.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(whole) => whole.text().as_bytes(),
            Self::Lines(lines) => lines.bytes(),
            Self::Stored(stored) => stored.text().as_bytes(),
        }
    }

    /// The texts of the messages, or of the lines, and at which line of a file each begins.
    pub(crate) fn records(&self) -> Vec<(Option<u64>, Cow<'_, str>)> {
        match self {
            Self::Whole(whole) => {
                whole.records().map(|(line, text)| (Some(line), text.into())).collect()
            }
            Self::Lines(lines) => lines.records().map(|(line, text)| (Some(line), text)).collect(),
            Self::Stored(stored) => stored.messages().map(|text| (None, text.into())).collect(),
        }
    }

    pub(crate) fn health(&self) -> Health {
        match self {
            Self::Whole(whole) => whole.health(),
            Self::Lines(lines) => lines.health(),
            Self::Stored(stored) => stored.health(),
        }
    }

    pub(crate) fn plan(&self, mode: RepairMode, close_tail: bool) -> Planned {
        let repair = Repair::new(mode);
        let repair = if close_tail { repair.close_tail() } else { repair };
        match self {
            Self::Whole(whole) => whole.plan(repair, mode),
            Self::Lines(lines) => lines.plan(repair),
            Self::Stored(stored) => stored.plan(repair, mode),
        }
    }

    /// The longest beginning that the provider takes, all calls answered.
    pub(crate) fn before_fault(&self) -> Self {
        match self {
            Self::Whole(whole) => whole.before_fault().into(),
            Self::Lines(lines) => lines.before_fault().into(),
            Self::Stored(stored) => stored.before_fault().into(),
        }
    }

    /// How far a checkpoint of a file that is made now reaches; `None` if there is nothing to come
    /// back to, or if its checkpoints are its own.
    pub(crate) fn end(&self) -> Option<End> {
        let (length, point) = match self {
            Self::Whole(whole) => (whole.end()? as u64, None),
            Self::Lines(lines) => {
                let end = Some(lines.end()).filter(|end| end.records > 0)?;
                (end.length, Some(end.id))
            }
            Self::Stored(_) => return None,
        };
        let before = &self.bytes()[..usize::try_from(length).ok()?];
        Some(End { length, content_hash: hash(before), point })
    }

    /// What stood there when a checkpoint was made; `None` if it does not stand there now.
    pub(crate) fn at(&self, checkpoint: &Checkpoint) -> Option<Self> {
        match self {
            Self::Whole(whole) => whole.at(checkpoint).map(Into::into),
            Self::Lines(lines) => lines.at(checkpoint).map(Into::into),
            Self::Stored(stored) => stored.at(checkpoint).map(Into::into),
        }
    }

    /// The newest points to which it can go back without a checkpoint of ours: where turns of a
    /// session of JSON lines begin.
    pub(crate) fn turns(&self, most: usize) -> Vec<FileCheckpoint> {
        match self {
            Self::Whole(_) | Self::Stored(_) => Vec::new(),
            Self::Lines(lines) => lines.turns().take(most).collect(),
        }
    }

    /// What stood there at such a point.
    pub(crate) fn at_turn(&self, id: &str) -> Result<Self, CheckpointError> {
        match self {
            Self::Whole(_) | Self::Stored(_) => Err(CheckpointError::NotFound(id.into())),
            Self::Lines(lines) => lines.at_turn(id).map(Into::into),
        }
    }

    /// The system's prompt, or the header, alone.
    ///
    /// `archive` keeps the messages in the session's own archive, where it has one.
    pub(crate) fn prompt(&self, archive: bool) -> Self {
        match self {
            Self::Whole(whole) => whole.prompt().into(),
            Self::Lines(lines) => lines.prompt().into(),
            Self::Stored(stored) => stored.prompt(archive).into(),
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
