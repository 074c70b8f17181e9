//! The plan of a repair, in its mode, and its application.
use super::{
    action::{ActionKind, Log, Loss, RepairAction},
    preserve, remove,
    settings::{Repair, RepairMode},
};
use crate::{message::Message, transcript::Transcript, validate::Validator};
use serde::Serialize;

/// The planned actions and losses of a repair.
#[derive(Clone, Debug)]
#[must_use]
pub struct RepairPlan {
    before: Vec<Message>,
    after: Vec<Message>,
    log: Log,
}

/// The result of a repair.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RepairResult {
    /// Whether anything was changed.
    pub repaired: bool,
    /// What was done.
    pub repairs: Vec<RepairAction>,
    /// The repaired messages.
    pub messages: Vec<Message>,
}

/// The transcript has changed since the repair was planned. The repair changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the transcript has changed since the repair was planned")]
pub struct StalePlan(pub(crate) ());

impl Repair {
    /// Plans the repair of `transcript` without changing it.
    pub fn plan(self, transcript: &Transcript) -> RepairPlan {
        let mut log = Log::default();
        let after = match self.mode {
            _ if self.keeps(transcript) => transcript.messages().to_vec(),
            RepairMode::Preserve if self.waive_thoughts => {
                let waived = waived(transcript, &mut log);
                preserve::repair(&waived, self, &mut log)
            }
            RepairMode::Preserve => preserve::repair(transcript, self, &mut log),
            RepairMode::Remove => remove::repair(transcript, self.members, &mut log),
        };
        RepairPlan { before: transcript.messages().to_vec(), after, log }
    }

    fn keeps(self, transcript: &Transcript) -> bool {
        let validator = || match self.members {
            true => Validator::with_members_of(transcript),
            false => Validator::of(transcript),
        };
        let has_reason = !self.only_errors || self.close_tail || self.waive_thoughts;
        !has_reason && validator().is_valid()
    }
}

/// The transcript without reasons to demand missing thoughts.
fn waived(transcript: &Transcript, log: &mut Log) -> Transcript {
    let (format, mut messages) = (transcript.format(), transcript.messages().to_vec());
    for (at, raw) in format.form().waive_thoughts(&messages) {
        log.act(ActionKind::WaiveThoughts, at, None);
        messages[at] = messages[at].with_raw_of(format.own(raw));
    }
    let mut waived = transcript.clone();
    waived.set_messages(messages);
    waived
}

impl RepairPlan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.log.actions.is_empty()
    }

    /// The planned actions.
    #[must_use]
    pub fn actions(&self) -> &[RepairAction] {
        &self.log.actions
    }

    /// For each action, the index of its message in the transcript before the repair. In mode
    /// `remove`, the actions' own indexes are counted after the removals before them, but for
    /// `RemoveReasoning` and `UnlinkItem`, whose indexes are those before the repair.
    #[must_use]
    pub fn places(&self) -> Vec<usize> {
        self.log.places.clone()
    }

    /// What the session will no longer contain.
    #[must_use]
    pub fn losses(&self) -> &[Loss] {
        &self.log.losses
    }

    /// The messages after the repair.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.after
    }

    /// How many messages at the beginning stay unchanged.
    #[must_use]
    pub fn untouched(&self) -> usize {
        let same =
            self.before.iter().zip(&self.after).take_while(|(before, after)| before == after);
        same.count()
    }

    /// Applies the plan.
    ///
    /// # Errors
    /// If `transcript` has changed since it was planned; it is then left unchanged.
    pub fn apply(self, transcript: &mut Transcript) -> Result<RepairResult, StalePlan> {
        if transcript.messages() != self.before {
            return Err(StalePlan(()));
        }
        if !self.is_empty() {
            transcript.set_messages(self.after);
        }
        Ok(RepairResult {
            repaired: !self.log.actions.is_empty(),
            repairs: self.log.actions,
            messages: transcript.messages().to_vec(),
        })
    }
}
