//! `tool-guard session reset`: begins a session anew with its system prompt alone.
use super::{
    Content, Failure, Outcome, Source, Trouble, Verdict, ending, options,
    report::{About, head},
    show::{GOOD, TITLE, count, quoted},
    sidecar, swap,
};
use serde::Serialize;
use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

/// What a reset did, or would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reset {
    status: Status,
    #[serde(flatten)]
    about: About,
    archived: bool,
    remaining_messages: usize,
    /// Where the old file is.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Status {
    /// There is nothing but the prompt.
    Clean,
    /// Nothing is written yet.
    Planned,
    Reset,
}

/// Empties a file but for the prompt, or says what would go.
pub(crate) fn reset(file: &Path, options: &options::Reset, now: u64) -> Result<Reset, Failure> {
    let source = if options.write { Source::open_to_change(file) } else { Source::open(file) }?;
    let stamp = if options.write { Some(source.stamp()?) } else { None };
    let content = Content::read(&source)?;
    let about = content.about();
    let after = content.prompt();
    let remaining_messages = after.about().messages;
    let (status, backup) = match stamp {
        _ if after.bytes() == content.bytes() => (Status::Clean, None),
        None => (Status::Planned, None),
        Some(stamp) => {
            let ending = ending(if options.archive { "archive" } else { "bak" }, now);
            let write = |out: &mut dyn io::Write| out.write_all(after.bytes());
            let backup = swap::replace(&source, stamp, &ending, write)?;
            // They are of what stood there before.
            let checkpoints = sidecar::path(source.real());
            match fs::rename(&checkpoints, sidecar::path(&backup)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Trouble::writing(source.folder(), &error).into());
                }
                _ => (Status::Reset, Some(backup)),
            }
        }
    };
    let archived = options.archive && status == Status::Reset;
    Ok(Reset { status, about, archived, remaining_messages, backup })
}

impl Outcome for Reset {
    fn verdict(&self) -> Verdict {
        if self.status == Status::Planned { Verdict::Findings } else { Verdict::Clean }
    }

    fn show(&self, file: &Path, out: &mut String) {
        head(file, &self.about, self.verdict() == Verdict::Clean, out);
        let left = count(self.remaining_messages as u64, "message");
        let gone = self.about.messages.saturating_sub(self.remaining_messages);
        let gone = count(gone as u64, "message");
        let _ = match (self.status, &self.backup) {
            (Status::Reset, Some(backup)) => {
                let backup = backup.display();
                writeln!(
                    out,
                    "  {GOOD}begun anew{GOOD:#}: {gone} went, {left} of the system's stay; the old \
                     file is {backup}"
                )
            }
            (Status::Planned, _) => writeln!(
                out,
                "  {TITLE}nothing is written yet{TITLE:#}: {gone} would go, {left} of the system's \
                 would stay"
            ),
            _ => writeln!(out, "  nothing to reset: it has the system's prompt alone"),
        };
    }

    fn next(&self, file: &Path) -> Option<String> {
        let file = quoted(file);
        (self.status == Status::Planned)
            .then(|| format!("Do it:  tool-guard session reset --archive --write {file}"))
    }
}
