//! `tool-guard session repair`: shows how to mend a session, and mends it.
use super::{
    Content, Failure, Outcome, Source, Verdict, ending, options,
    report::{About, Act, Health, Lost, head, show_plan},
    show::{BAD, GOOD, TITLE, count, quoted},
    swap,
};
use serde::Serialize;
use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};
use tr_integrity::RepairMode;

/// What a repair did, or would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Repaired {
    status: Status,
    #[serde(flatten)]
    about: About,
    mode: RepairMode,
    close_tail: bool,
    repairs: Vec<Act>,
    losses: Vec<Lost>,
    /// What is wrong even then.
    remaining: Health,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Status {
    /// There is nothing to do.
    Clean,
    /// Nothing is written yet.
    Planned,
    Repaired,
}

/// Mends a file, or plans it.
pub(crate) fn repair(
    file: &Path,
    options: &options::Repair,
    now: u64,
) -> Result<Repaired, Failure> {
    let source = if options.write { Source::open_to_change(file) } else { Source::open(file) }?;
    let stamp = if options.write { Some(source.stamp()?) } else { None };
    let content = Content::read(&source)?;
    let (mode, close_tail) = (options.how.mode.into(), options.how.close_tail);
    let planned = content.plan(mode, close_tail);
    let (status, backup) = match stamp {
        _ if planned.acts.is_empty() => (Status::Clean, None),
        None => (Status::Planned, None),
        Some(stamp) => {
            let write = |out: &mut dyn io::Write| out.write_all(planned.after.bytes());
            let backup = swap::replace(&source, stamp, &ending("bak", now), write)?;
            (Status::Repaired, Some(backup))
        }
    };
    Ok(Repaired {
        status,
        about: content.about(),
        mode,
        close_tail,
        remaining: planned.after.health(),
        repairs: planned.acts,
        losses: planned.losses,
        backup,
    })
}

impl Outcome for Repaired {
    fn verdict(&self) -> Verdict {
        let is_done = self.status != Status::Planned && self.remaining.is_valid();
        if is_done { Verdict::Clean } else { Verdict::Findings }
    }

    fn show(&self, file: &Path, out: &mut String) {
        head(file, &self.about, self.verdict() == Verdict::Clean, out);
        show_plan(&self.repairs, &self.losses, file, out);
        if !self.remaining.is_valid() {
            let _ = writeln!(out, "  {BAD}wrong even then:{BAD:#}");
            self.remaining.show(file, out);
        }
        let changes = count(self.repairs.len() as u64, "change");
        let _ = match (&self.status, &self.backup) {
            (Status::Clean, _) => writeln!(out, "  nothing to mend"),
            (Status::Planned, _) => {
                writeln!(out, "  {TITLE}nothing is written yet{TITLE:#}: {changes} planned")
            }
            (Status::Repaired, Some(backup)) => {
                let backup = backup.display();
                writeln!(out, "  {GOOD}mended{GOOD:#}: {changes}; the old file is {backup}")
            }
            (Status::Repaired, None) => Ok(()),
        };
    }

    fn next(&self, file: &Path) -> Option<String> {
        if self.status != Status::Planned {
            return None;
        }
        let mut flags = String::new();
        if self.mode == RepairMode::Remove {
            flags.push_str(" --mode remove");
        }
        if self.close_tail {
            flags.push_str(" --close-tail");
        }
        let file = quoted(file);
        Some(format!(
            "Look at it closer:  tool-guard session diff{flags} {file}\n\
             Do it:              tool-guard session repair{flags} --write {file}"
        ))
    }
}
