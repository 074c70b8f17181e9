//! Plans a repair in its mode.
use super::{
    action::{ActionKind, Log},
    plan::RepairPlan,
    preserve, remove,
    settings::{Repair, RepairMode},
};
use crate::transcript::Transcript;

impl Repair {
    /// Plans the repair of `transcript` without changing it.
    pub fn plan(self, transcript: &Transcript) -> RepairPlan {
        let mut log = Log::default();
        let after = match self.mode {
            RepairMode::Preserve if self.waive_thoughts => {
                let waived = waived(transcript, &mut log);
                preserve::repair(&waived, self, &mut log)
            }
            RepairMode::Preserve => preserve::repair(transcript, self, &mut log),
            RepairMode::Remove => remove::repair(transcript, self.members, &mut log),
        };
        let before = transcript.messages().to_vec();
        let mode = self.mode;
        RepairPlan { mode, before, after, actions: log.actions, losses: log.losses }
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
