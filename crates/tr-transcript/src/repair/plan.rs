//! The plan of a repair, and its application.
use super::{
    action::{ActionKind, Loss, RepairAction},
    position_map::PositionMap,
    settings::RepairMode,
};
use crate::{message::Message, transcript::Transcript};

/// The planned actions and losses of a repair.
#[derive(Clone, Debug)]
#[must_use]
pub struct RepairPlan {
    pub(super) mode: RepairMode,
    pub(super) before: Vec<Message>,
    pub(super) after: Vec<Message>,
    pub(super) actions: Vec<RepairAction>,
    pub(super) losses: Vec<Loss>,
}

/// The result of a repair.
#[derive(Clone, Debug)]
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

impl RepairPlan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// The planned actions.
    #[must_use]
    pub fn actions(&self) -> &[RepairAction] {
        &self.actions
    }

    /// For each action, the index of its message in the transcript before the repair. In mode
    /// `remove`, the actions' own indexes are counted after the removals before them.
    #[must_use]
    pub fn places(&self) -> Vec<usize> {
        let mut left = PositionMap::of(self.before.len());
        let place = |action: &RepairAction| {
            let index = action.message_index;
            if self.mode == RepairMode::Preserve {
                return index;
            }
            let removes = action.action == ActionKind::RemoveEmptyMessage;
            if removes { left.remove(index) } else { left.place(index) }.unwrap_or(index)
        };
        self.actions.iter().map(place).collect()
    }

    /// What the session will no longer contain.
    #[must_use]
    pub fn losses(&self) -> &[Loss] {
        &self.losses
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
            repaired: !self.actions.is_empty(),
            repairs: self.actions,
            messages: transcript.messages().to_vec(),
        })
    }
}
