//! `tool-guard session checkpoints`: lists a session's checkpoints, or makes one.
use super::{
    Content, Failure, Outcome, Source, Trouble, Verdict,
    content::id,
    options,
    report::{About, head},
    show::{BAD, DIM, GOOD, TITLE, count, quoted},
    sidecar::{self, Checkpoint},
};
use serde::Serialize;
use std::{fmt::Write as _, path::Path};
use tr_core::rfc3339;
use tr_integrity::{FileCheckpoint, Operation};

/// How many turns are listed: each costs as much as a check.
const TURNS: usize = 5;

/// The checkpoints of a session.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    status: &'static str,
    #[serde(flatten)]
    about: About,
    /// The id of the one that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    checkpoints: Vec<Listing>,
    /// Where its last turns begin: it can go back there without a checkpoint.
    turns: Vec<Turn>,
    /// Lines of the file of checkpoints that are none.
    unreadable_lines: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct Listing {
    #[serde(flatten)]
    checkpoint: Checkpoint,
    /// Whether the session can be rolled back to it.
    holds: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Turn {
    id: Box<str>,
    message_index: usize,
    line: u64,
    length: u64,
}

/// Lists the checkpoints of a file; first makes one, if it is asked for.
pub(crate) fn checkpoints(
    file: &Path,
    options: &options::Checkpoints,
    now: u64,
) -> Result<Listed, Failure> {
    let source = Source::open(file)?;
    let content = Content::read(&source)?;
    let created = if options.create {
        let (length, content_hash) = content.end().ok_or_else(|| {
            Trouble::new("has no messages, so there is nothing to come back to", "begin with some")
        })?;
        let session_id = id(source.real());
        let made = sidecar::add(source.real(), |number| Checkpoint {
            id: format!("{session_id}#{number}"),
            session_id,
            timestamp: now,
            message_index: content.about().messages,
            content_hash,
            operation: Operation::Manual,
            length,
            note: options.note.clone(),
        })?;
        Some(made.id)
    } else {
        None
    };
    let kept = sidecar::read(source.real())?;
    let turn = |turn: FileCheckpoint| Turn {
        id: turn.id,
        message_index: turn.messages,
        line: turn.line,
        length: turn.length,
    };
    let listing = |checkpoint| Listing { holds: content.at(&checkpoint).is_some(), checkpoint };
    Ok(Listed {
        status: "clean",
        about: content.about(),
        created,
        checkpoints: kept.checkpoints.into_iter().map(listing).collect(),
        turns: content.turns(TURNS).into_iter().map(turn).collect(),
        unreadable_lines: kept.unreadable,
    })
}

impl Outcome for Listed {
    fn verdict(&self) -> Verdict {
        Verdict::Clean
    }

    fn show(&self, file: &Path, out: &mut String) {
        head(file, &self.about, true, out);
        let width = self.checkpoints.iter().map(|it| it.checkpoint.id.chars().count()).max();
        for Listing { checkpoint, holds } in &self.checkpoints {
            let (id, time) = (&checkpoint.id, rfc3339(checkpoint.timestamp).to_string());
            let at = count(checkpoint.message_index as u64, "message");
            let (style, state) =
                if *holds { (GOOD, "") } else { (BAD, "  the messages before it were changed") };
            let note = checkpoint.note.as_deref().unwrap_or_default();
            let width = width.unwrap_or_default();
            let time = time.split('.').next().unwrap_or_default().replace('T', " ");
            let _ = writeln!(
                out,
                "  {TITLE}{id:<width$}{TITLE:#}  {time} UTC  {at:>14}  {note}{style}{state}{style:#}"
            );
        }
        for line in &self.unreadable_lines {
            let path = sidecar::path(file);
            let _ = writeln!(out, "  {DIM}{}:{line} is torn, and left out{DIM:#}", path.display());
        }
        if self.checkpoints.is_empty() {
            let _ = writeln!(out, "  no checkpoints");
        }
        for turn in &self.turns {
            let (id, at) = (&turn.id, count(turn.message_index as u64, "message"));
            let line = turn.line;
            let _ = writeln!(out, "  {TITLE}{id}{TITLE:#}  a turn begins behind line {line}, {at}");
        }
    }

    fn next(&self, file: &Path) -> Option<String> {
        let file = quoted(file);
        let Some(last) = self.checkpoints.iter().rfind(|it| it.holds) else {
            return Some(format!("Make one:  tool-guard session checkpoints --create {file}"));
        };
        let id = quoted(Path::new(&last.checkpoint.id));
        Some(format!("Go back to it:  tool-guard session rollback --to {id} {file}"))
    }
}
