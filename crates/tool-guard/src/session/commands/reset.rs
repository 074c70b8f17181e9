//! `tool-guard session reset`: resets a session to its system prompt.
use super::{Change, change};
use crate::{
    files::CliError,
    session::{
        each::Outcome,
        report::head,
        sidecar,
        source::Source,
        target::Target,
        verdict::{Failure, NotJudged, Verdict},
    },
    terminal::count,
};
use serde::Serialize;
use std::{fs, io};

/// The result or the plan of a reset.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reset {
    archived: bool,
    remaining_messages: usize,
}

/// Resets a session to its system prompt, or reports what would be removed.
pub(crate) fn reset(target: &Target, archive: bool, write: bool) -> Result<Change<Reset>, Failure> {
    let mark = if archive { "archive" } else { "bak" };
    let mut real = None;
    let mut change = change(target, (write, mark), |source, content| {
        if let Some(why) = content.health().not_judged() {
            let help = "nothing was changed; to start over, move the file away yourself and let the \
                        agent begin another session";
            return Err(NotJudged { help: help.into(), ..why }.into());
        }
        let after = content.prompt(archive);
        let remaining_messages = after.about().messages;
        if let Source::File(file, _) = source {
            real = Some(file.real.to_owned());
        }
        Ok((Some(after), Reset { archived: false, remaining_messages }))
    })?;
    if let (Some(real), Some(backup)) = (real, &change.backup) {
        // Its checkpoints refer to the old content.
        match fs::rename(sidecar::path(&real), sidecar::path(backup)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(CliError::writing(real.parent().unwrap_or(&real), &error).into());
            }
            _ => {}
        }
    }
    change.said.archived = archive && change.backup.is_some();
    Ok(change)
}

impl Outcome for Change<Reset> {
    fn verdict(&self) -> Verdict {
        self.verdict_of(Verdict::Clean)
    }

    fn status(&self) -> &'static str {
        self.state_name(Verdict::Clean, "reset")
    }

    fn show(&self, target: &Target, out: &mut String) {
        head(target, &self.about, self.verdict(), out);
        let left = self.said.remaining_messages;
        let gone = self.about.messages.saturating_sub(left);
        let left = count(left as u64, "message");
        let gone = count(gone as u64, "message");
        let nothing = "nothing to reset: it has the system's prompt alone";
        let planned = format!("{gone} would go, {left} of the system's would stay");
        let done = format!("{gone} went, {left} of the system's stay");
        self.show_state(target, nothing, &planned, ("reset", &done), out);
    }

    fn next(&self, target: &Target) -> Option<String> {
        let target = target.argument();
        self.is_planned
            .then(|| format!("Do it:  tool-guard session reset --archive --write {target}"))
    }
}
