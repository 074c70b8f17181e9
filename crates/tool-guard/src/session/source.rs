//! An open session in a file or a database: reads its content, and replaces it.
use super::{
    document::{
        Document, json_document,
        json_lines::{self, JsonLines},
        kind::{Kind, kind},
    },
    report::{About, Health},
    sidecar::{self, Kept},
    stored::NotReplaced,
    target::{InDatabase, Target},
    verdict::Failure,
};
use crate::files::{CliError, File, Stamp, keep_bytes, replace_file};
use std::{fs, path::PathBuf};

/// An open session. One that was opened for reading cannot be changed.
pub(crate) enum Source {
    /// A file, with its stamp if it was opened to be changed.
    File(File, Option<Stamp>),
    Stored(InDatabase),
}

impl Source {
    /// Opens a session for reading.
    pub(crate) fn open(target: &Target) -> Result<Self, Failure> {
        Ok(match &target.stored {
            None if target.is_standard_input() => Self::File(File::of_standard_input()?, None),
            None => Self::File(File::open(&target.file)?, None),
            Some(stored) => Self::Stored(stored.clone()),
        })
    }

    /// Opens a session to change it. Refuses one that another program is writing.
    pub(crate) fn open_to_change(target: &Target) -> Result<Self, Failure> {
        Ok(match &target.stored {
            None => {
                let file = File::open_to_change(&target.file)?;
                let stamp = file.stamp()?;
                Self::File(file, Some(stamp))
            }
            Some(InDatabase { database, id }) => {
                Self::Stored(InDatabase { database: database.to_change(id)?, id: id.clone() })
            }
        })
    }

    /// Reads the session's content.
    pub(crate) fn content(&self) -> Result<Box<dyn Document>, Failure> {
        match self {
            Self::File(file, _) => read(file, kind(file)?),
            Self::Stored(InDatabase { database, id }) => database.content(id),
        }
    }

    /// Checks the session: JSON lines while they are read, all others in memory.
    pub(crate) fn check(&self) -> Result<(About, Health), Failure> {
        let document = match self {
            Self::File(file, _) => match kind(file)? {
                Kind::JsonLines => {
                    file.refuse_holes()?;
                    return json_lines::check(file);
                }
                kind => read(file, kind)?,
            },
            Self::Stored(_) => self.content()?,
        };
        Ok((document.about(), document.health()))
    }

    /// The checkpoints of the session.
    pub(crate) fn checkpoints(&self, content: &dyn Document) -> Result<Kept, CliError> {
        match self {
            Self::File(file, _) => sidecar::read(file),
            Self::Stored(_) => Ok(Kept { checkpoints: content.checkpoints(), ..Kept::default() }),
        }
    }

    /// Replaces the content `before` with `after`, unless the session has changed meanwhile.
    /// Returns the path of the old file, or of the old messages: next to the file, with `ending`.
    pub(crate) fn replace(
        &self,
        before: &dyn Document,
        after: &dyn Document,
        ending: &str,
    ) -> Result<PathBuf, CliError> {
        match self {
            Self::File(_, None) => unreachable!("it was opened to be changed"),
            Self::File(file, Some(stamp)) => replace_file(file, *stamp, ending, after.bytes()),
            Self::Stored(InDatabase { database, id }) => {
                let part = format!(".{}", file_name(id));
                let backup = keep_bytes(database.file(), &part, ending, before.bytes())?;
                match database.replace(id, before, after) {
                    Ok(()) => Ok(backup),
                    Err(NotReplaced { cli_error: CliError { what, help }, is_uncertain: true }) => {
                        let backup = backup.display();
                        let help = format!("{help}; the messages as they were are in {backup}");
                        Err(CliError { what, help })
                    }
                    Err(NotReplaced { cli_error, .. }) => {
                        // Nothing has changed, so no backup is needed.
                        drop(fs::remove_file(&backup));
                        Err(cli_error)
                    }
                }
            }
        }
    }
}

fn read(file: &File, kind: Kind) -> Result<Box<dyn Document>, Failure> {
    Ok(match kind {
        Kind::JsonDocument => Box::new(json_document::read(file.bytes()?)?),
        Kind::JsonLines => Box::new(JsonLines::read(file)?),
    })
}

/// A session's id as a part of a file name.
fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    id.chars().take(64).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_any_characters_is_part_of_a_files_name() {
        assert_eq!(file_name("agent:main/7"), "agent_main_7");
        assert_eq!(file_name(&"x".repeat(500)).len(), 64);
    }
}
