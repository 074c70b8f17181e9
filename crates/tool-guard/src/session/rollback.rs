//! `tool-guard session rollback`: takes a session back to a checkpoint.
use super::{
    Content, Failure, Outcome, Source, Trouble, Verdict, ending, options,
    report::{About, Health, head},
    show::{BAD, GOOD, TITLE, count, quoted},
    sidecar, swap,
};
use serde::Serialize;
use std::{
    fmt::Write as _,
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
    let content = Content::read(source.bytes()?)?;
    let (checkpoint, keep) = match &options.to.to {
        Some(id) => {
            let (id, keep) = checkpoint(&source, &content, id)?;
            (Some(id), keep)
        }
        None => (None, content.clean_prefix()),
    };
    let after = content.first(keep);
    let about = content.about();
    let (status, backup) = match stamp {
        _ if keep == about.messages => (Status::Clean, None),
        None => (Status::Planned, None),
        Some(stamp) => {
            let write = |out: &mut dyn std::io::Write| out.write_all(after.text().as_bytes());
            let backup = swap::replace(&source, stamp, &ending("bak", now), write)?;
            (Status::RolledBack, Some(backup))
        }
    };
    Ok(RolledBack {
        status,
        checkpoint,
        messages_removed: about.messages - keep,
        new_message_count: keep,
        about,
        remaining: after.health(),
        backup,
    })
}

/// The checkpoint that the user means, and how many messages stand before it.
fn checkpoint(source: &Source, content: &Content, id: &str) -> Result<(String, usize), Trouble> {
    let kept = sidecar::read(source.real())?;
    let Some(found) = kept.get(id) else {
        let known: Vec<_> = kept.checkpoints.iter().map(|known| known.id.as_str()).collect();
        let help = if known.is_empty() {
            "there are none; rollback --before-fault needs none".to_owned()
        } else {
            format!("there are: {}", known.join(", "))
        };
        return Err(Trouble::new(CheckpointError::NotFound(id.into()).to_string(), help));
    };
    if !content.holds(found) {
        let help = format!(
            "what stands before {} is not what stood there then, so nothing was cut; take another \
             checkpoint, or rollback --before-fault",
            found.id
        );
        return Err(Trouble::new(CheckpointError::Mismatch.to_string(), help));
    }
    Ok((found.id.clone(), found.message_index))
}

impl Outcome for RolledBack {
    fn verdict(&self) -> Verdict {
        let is_done = self.status != Status::Planned && self.remaining.is_valid();
        if is_done { Verdict::Clean } else { Verdict::Findings }
    }

    fn show(&self, file: &Path, out: &mut String) {
        head(file, &self.about, self.verdict() == Verdict::Clean, out);
        let left = count(self.new_message_count, "message");
        let gone = match self.messages_removed {
            1 => "the last 1".to_owned(),
            gone => format!("the last {gone}"),
        };
        let _ = match (self.status, &self.backup) {
            (Status::RolledBack, Some(backup)) => {
                let backup = backup.display();
                writeln!(
                    out,
                    "  {GOOD}rolled back{GOOD:#}: {gone} went, {left} stay; the old file is {backup}"
                )
            }
            (Status::Planned, _) => writeln!(
                out,
                "  {TITLE}nothing is written yet{TITLE:#}: {gone} would go, {left} would stay"
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
