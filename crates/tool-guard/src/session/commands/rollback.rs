//! `tool-guard session rollback`: rolls a session back to a checkpoint.
use super::{Change, change};
use crate::{
    files::CliError,
    session::{
        document::Document,
        each::Outcome,
        report::{Health, head},
        source::Source,
        target::Target,
        verdict::{Failure, Verdict},
    },
    terminal::{count, quoted, size},
};
use serde::Serialize;
use std::path::Path;
use tr_transcript::CheckpointError;

/// The result or the plan of a rollback.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RolledBack {
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    messages_removed: usize,
    new_message_count: usize,
    bytes_removed: u64,
    /// What is wrong after the rollback.
    remaining: Health,
}

/// Rolls a session back, or reports what would be removed.
pub(crate) fn rollback(
    target: &Target,
    to: Option<&str>,
    write: bool,
) -> Result<Change<RolledBack>, Failure> {
    change(target, (write, "bak"), |source, content| {
        let (checkpoint, after) = match to {
            Some(id) => at_checkpoint(source, content, id)?,
            None => (None, content.before_fault()),
        };
        let (about, left) = (content.about(), after.about());
        let said = RolledBack {
            checkpoint,
            // If a compaction is rolled back, there are more messages than before.
            messages_removed: about.messages.saturating_sub(left.messages),
            new_message_count: left.messages,
            bytes_removed: about.bytes.saturating_sub(left.bytes),
            remaining: after.health(),
        };
        Ok((Some(after), said))
    })
}

/// The checkpoint that the user named, and the content at it.
fn at_checkpoint(
    source: &Source,
    content: &dyn Document,
    id: &str,
) -> Result<(Option<String>, Box<dyn Document>), CliError> {
    let kept = source.checkpoints(content)?;
    let came = match kept.get(id) {
        Some(found) => content.at(found).ok_or(CheckpointError::Mismatch),
        None => content.at_turn(id),
    };
    let id = kept.get(id).map_or(id, |found| &found.id).to_owned();
    let after = came.map_err(|error| {
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
        CliError::new(error.to_string(), help)
    })?;
    Ok((Some(id), after))
}

impl Outcome for Change<RolledBack> {
    fn verdict(&self) -> Verdict {
        self.verdict_of(self.said.remaining.verdict())
    }

    fn status(&self) -> &'static str {
        self.state_name(Verdict::Clean, "rolledBack")
    }

    fn show(&self, target: &Target, out: &mut String) {
        let said = &self.said;
        head(target, &self.about, self.verdict(), out);
        let left = count(said.new_message_count as u64, "message");
        let gone = count(said.messages_removed as u64, "message");
        let gone = format!("the last {gone} ({})", size(said.bytes_removed));
        let nothing = format!("nothing to roll back: it ends there, with {left}");
        let planned = format!("{gone} would go, {left} would be left");
        let done = format!("{gone} went, {left} left");
        self.show_state(target, &nothing, &planned, ("rolled back", &done), out);
        said.remaining.show_remaining(target, out);
    }

    fn next(&self, target: &Target) -> Option<String> {
        let to = match &self.said.checkpoint {
            Some(id) => format!("--to {}", quoted(Path::new(id))),
            None => "--before-fault".to_owned(),
        };
        let target = target.argument();
        self.is_planned
            .then(|| format!("Do it:  tool-guard session rollback {to} --write {target}"))
    }
}
