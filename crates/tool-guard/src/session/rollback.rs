//! `tool-guard session rollback`: takes a session back to a checkpoint.
use super::{
    Content, Failure, Outcome, Source, Trouble, Verdict, ending, options,
    report::{About, Health, head},
    show::{BAD, GOOD, TITLE, count, quoted, size},
    sidecar, swap,
};
use serde::Serialize;
use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};
use tr_integrity::CheckpointError;

/// What a rollback did, or would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RolledBack {
    status: Status,
    #[serde(flatten)]
    about: About,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    messages_removed: usize,
    new_message_count: usize,
    bytes_removed: u64,
    /// What is wrong even then.
    remaining: Health,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Status {
    /// It ends there already.
    Clean,
    /// Nothing is written yet.
    Planned,
    RolledBack,
}

/// Takes a file back, or says how far it would go.
pub(crate) fn rollback(
    file: &Path,
    options: &options::Rollback,
    now: u64,
) -> Result<RolledBack, Failure> {
    let source = if options.write { Source::open_to_change(file) } else { Source::open(file) }?;
    let stamp = if options.write { Some(source.stamp()?) } else { None };
    let content = Content::read(&source)?;
    let (checkpoint, after) = match &options.to.to {
        Some(id) => {
            let (id, after) = at_checkpoint(&source, &content, id)?;
            (Some(id), after)
        }
        None => (None, content.before_fault()),
    };
    let (status, backup) = match stamp {
        _ if after.bytes() == content.bytes() => (Status::Clean, None),
        None => (Status::Planned, None),
        Some(stamp) => {
            let write = |out: &mut dyn io::Write| out.write_all(after.bytes());
            let backup = swap::replace(&source, stamp, &ending("bak", now), write)?;
            (Status::RolledBack, Some(backup))
        }
    };
    let (about, left) = (content.about(), after.about());
    Ok(RolledBack {
        status,
        checkpoint,
        // Fewer than were left, where a compaction is taken back.
        messages_removed: about.messages.saturating_sub(left.messages),
        new_message_count: left.messages,
        bytes_removed: about.bytes.saturating_sub(left.bytes),
        about,
        remaining: after.health(),
        backup,
    })
}

/// The checkpoint that the user means, and what stood there when it was made.
fn at_checkpoint(
    source: &Source,
    content: &Content,
    id: &str,
) -> Result<(String, Content), Trouble> {
    let kept = sidecar::read(source.real())?;
    let came = match kept.get(id) {
        Some(found) => content.at(found).ok_or(CheckpointError::Mismatch),
        None => content.at_turn(id),
    };
    let id = kept.get(id).map_or(id, |found| &found.id).to_owned();
    match came {
        Ok(after) => Ok((id, after)),
        Err(error) => {
            let known = kept.checkpoints.iter().map(|known| known.id.as_str()).collect::<Vec<_>>();
            let help = match &error {
                CheckpointError::NotFound(_) if known.is_empty() => {
                    "there are none of yours; rollback --before-fault needs none".to_owned()
                }
                CheckpointError::NotFound(_) => format!("there are: {}", known.join(", ")),
                _ => format!(
                    "what stands before {id} is not what stood there then, so nothing was cut; \
                     take another one, or rollback --before-fault"
                ),
            };
            Err(Trouble::new(error.to_string(), help))
        }
    }
}

impl Outcome for RolledBack {
    fn verdict(&self) -> Verdict {
        let is_done = self.status != Status::Planned && self.remaining.is_valid();
        if is_done { Verdict::Clean } else { Verdict::Findings }
    }

    fn show(&self, file: &Path, out: &mut String) {
        head(file, &self.about, self.verdict() == Verdict::Clean, out);
        let left = count(self.new_message_count as u64, "message");
        let gone = format!(
            "the last {} ({})",
            count(self.messages_removed as u64, "message"),
            size(self.bytes_removed)
        );
        let _ = match (self.status, &self.backup) {
            (Status::RolledBack, Some(backup)) => {
                let backup = backup.display();
                writeln!(
                    out,
                    "  {GOOD}rolled back{GOOD:#}: {gone} went, {left} left; the old file is {backup}"
                )
            }
            (Status::Planned, _) => writeln!(
                out,
                "  {TITLE}nothing is written yet{TITLE:#}: {gone} would go, {left} would be left"
            ),
            _ => writeln!(out, "  nothing to roll back: it ends there, with {left}"),
        };
        if !self.remaining.is_valid() {
            let _ = writeln!(out, "  {BAD}wrong even then:{BAD:#}");
            self.remaining.show(file, out);
        }
    }

    fn next(&self, file: &Path) -> Option<String> {
        let to = match &self.checkpoint {
            Some(id) => format!("--to {}", quoted(Path::new(id))),
            None => "--before-fault".to_owned(),
        };
        let file = quoted(file);
        (self.status == Status::Planned)
            .then(|| format!("Do it:  tool-guard session rollback {to} --write {file}"))
    }
}
