//! `tool-guard session checkpoints`: lists a session's checkpoints, or makes one.
use crate::{
    files::{CliError, File},
    session::{
        document::Document,
        each::Outcome,
        report::{About, head},
        sidecar::{self, Checkpoint, hash},
        source::Source,
        target::Target,
        verdict::{Failure, NotJudged, Verdict},
    },
    terminal::{BAD, DIM, GOOD, TITLE, count, quoted},
};
use serde::Serialize;
use std::{fmt::Write as _, path::Path};
use tr_core::{SystemClock, WallClock as _, printable, rfc3339};
use tr_integrity::Operation;
use tr_transcript::FileCheckpoint;

/// How many turns are listed: computing each costs as much as a check.
const TURNS: usize = 5;

/// The checkpoints of a session.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    #[serde(flatten)]
    about: About,
    /// The id of the new checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    checkpoints: Vec<Listing>,
    /// Where its last turns begin: it can be rolled back there without a checkpoint.
    turns: Vec<FileCheckpoint>,
    /// Invalid lines of the checkpoint file.
    unreadable_lines: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct Listing {
    #[serde(flatten)]
    checkpoint: Checkpoint,
    /// Whether the session can be rolled back to it.
    holds: bool,
}

/// Lists a session's checkpoints; makes one first if that is requested.
pub(crate) fn checkpoints(
    target: &Target,
    create: bool,
    note: Option<&String>,
) -> Result<Listed, Failure> {
    let is_own = target.stored.is_some() && create;
    let source = if is_own { Source::open_to_change(target)? } else { Source::open(target)? };
    let mut content = source.content()?;
    if let Some(why) = content.health().not_judged().filter(|_| create) {
        let help = "no checkpoint was made: what it would go back to is not known to be sound; copy \
                    the file";
        return Err(NotJudged { help: help.into(), ..why }.into());
    }
    let created = match (&source, create) {
        (_, false) => None,
        (Source::File(file, _), true) => Some(make_beside(file, &*content, note)?),
        (Source::Stored(stored), true) => {
            if note.is_some() {
                let what = "is in a database, which has no place for a note";
                let help = "leave --note out, and write the id down instead";
                return Err(CliError::new(what, help).into());
            }
            let made = stored.database.checkpoint(&stored.id)?;
            content = source.content()?;
            Some(made)
        }
    };
    let kept = source.checkpoints(&*content)?;
    let listing = |checkpoint| Listing { holds: content.at(&checkpoint).is_some(), checkpoint };
    Ok(Listed {
        about: content.about(),
        created,
        checkpoints: kept.checkpoints.into_iter().map(listing).collect(),
        turns: content.turns(TURNS),
        unreadable_lines: kept.unreadable,
    })
}

/// Makes a checkpoint of a file.
fn make_beside(
    file: &File,
    content: &dyn Document,
    note: Option<&String>,
) -> Result<String, CliError> {
    let (before, point) = content.end().ok_or_else(|| {
        CliError::new("has no messages, so there is nothing to come back to", "begin with some")
    })?;
    let session_id = file.real.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let made = sidecar::add(file, |number| Checkpoint {
        id: format!("{session_id}#{number}"),
        session_id,
        timestamp: SystemClock.unix_ms(),
        message_index: content.about().messages,
        content_hash: hash(before),
        operation: Operation::Manual,
        length: Some(before.len() as u64),
        point,
        committed: None,
        note: note.cloned(),
    })?;
    Ok(made.id)
}

impl Outcome for Listed {
    fn show(&self, target: &Target, out: &mut String) {
        head(target, &self.about, Verdict::Clean, out);
        let width =
            self.checkpoints.iter().map(|it| printable(&it.checkpoint.id).chars().count()).max();
        for Listing { checkpoint, holds } in &self.checkpoints {
            let (id, time) = (printable(&checkpoint.id), rfc3339(checkpoint.timestamp).to_string());
            let at = count(checkpoint.message_index as u64, "message");
            let (style, state) =
                if *holds { (GOOD, "") } else { (BAD, "  the messages before it were changed") };
            let note = match checkpoint.committed {
                None => checkpoint.note.as_deref().unwrap_or_default(),
                Some(true) => of(checkpoint.operation),
                Some(false) => "before a call that has not ended",
            };
            let note = printable(note);
            let width = width.unwrap_or_default();
            let time = time.split('.').next().unwrap_or_default().replace('T', " ");
            let _ = writeln!(
                out,
                "  {TITLE}{id:<width$}{TITLE:#}  {time} UTC  {at:>14}  {note}{style}{state}{style:#}"
            );
        }
        for line in &self.unreadable_lines {
            let path = sidecar::path(&target.file);
            let path = path.to_string_lossy();
            let path = printable(&path);
            let _ = writeln!(out, "  {DIM}{path}:{line} is torn, and left out{DIM:#}");
        }
        if self.checkpoints.is_empty() {
            let _ = writeln!(out, "  no checkpoints");
        }
        for turn in &self.turns {
            let (id, at) = (printable(&turn.id), count(turn.messages as u64, "message"));
            let line = turn.line;
            let _ = writeln!(out, "  {TITLE}{id}{TITLE:#}  a turn begins behind line {line}, {at}");
        }
    }

    fn next(&self, target: &Target) -> Option<String> {
        let target = target.argument();
        let Some(last) = self.checkpoints.iter().rfind(|it| it.holds) else {
            return Some(format!("Make one:  tool-guard session checkpoints --create {target}"));
        };
        let id = quoted(Path::new(&last.checkpoint.id));
        Some(format!("Go back to it:  tool-guard session rollback --to {id} {target}"))
    }
}

/// The operation before which a checkpoint in a database was made.
fn of(operation: Operation) -> &'static str {
    match operation {
        Operation::ToolCycle => "before a tool's call",
        Operation::Compaction => "before a compaction",
        Operation::ApiCall => "before a call of the model",
        Operation::Manual => "made by hand",
        _ => "before another operation",
    }
}
