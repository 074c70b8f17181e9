//! Handles failed calls of the model.
use super::{
    Checkpoint, CycleMode, ErrorRecovery, Operation, RecoveryAction, ResetOptions, Session,
    cycle::RecordedCycle,
};
use serde_json::{Map, Value};
use tr_transcript::{Complaint, Message, ModelEnd, Repair};

impl Session {
    /// Handles a failed call of the model: rolls back to its checkpoint, or repairs the session.
    ///
    /// Without `checkpoint`, uses the latest one whose operation has not ended, except those of
    /// tool cycles, which are settled separately. Tool cycles that completed since then are kept,
    /// unless the mode is `rollback`.
    pub fn handle_error(
        &mut self,
        end: ModelEnd,
        checkpoint: Option<&str>,
        now: u64,
    ) -> ErrorRecovery {
        let active = || self.active_call().map(|active| active.id.clone());
        let checkpoint = checkpoint.map(Into::into).or_else(active);
        let rolled_back = checkpoint.and_then(|id| self.roll_back_call(end, id, now));
        match (end, rolled_back) {
            (ModelEnd::Refused(complaint), _) => self.repair_refused(complaint, now),
            (_, Some(recovery)) => recovery,
            (ModelEnd::Filtered, None) => {
                let message = "Content filtered with no checkpoint. Validating session state.";
                self.note("content_filter", None, None, now);
                self.repair_or_offer(message, self.validator.is_valid(), Repair::preserve(), now)
            }
            (_, None) => {
                let message = "API error with no checkpoint. The session is unchanged.";
                ErrorRecovery::new(RecoveryAction::Escalate, message)
            }
        }
    }

    /// Repairs what validation finds, if the configuration allows it; returns whether anything
    /// changed. Leaves a live tail unchanged.
    pub(crate) fn auto_repair(&mut self, now: u64) -> bool {
        let is_allowed = self.config.enabled && self.config.auto_repair;
        if !is_allowed || self.validator.is_valid() {
            return false;
        }
        let plan = self.plan(Repair::preserve());
        !plan.is_empty() && self.apply(plan, now).is_ok()
    }

    /// If these are the session's messages, and no tool of the live tail is running: answers the
    /// tail's uses with the held results, the others with "outcome unknown, may have run", and
    /// repairs other findings. Returns the messages if they may be sent then.
    pub(crate) fn settle_tail_of(&mut self, sent: &[Message], now: u64) -> Option<Vec<Message>> {
        let own = self.transcript.messages().iter().map(Message::raw);
        if !own.eq(sent.iter().map(Message::raw)) || self.tail_is_driven() {
            return None;
        }
        self.recover(now);
        let held = self.release_held();
        held.into_iter().for_each(|message| self.append(message));
        let plan = self.plan(Repair::preserve().close_tail());
        self.apply(plan, now).ok()?;
        let may_be_sent = self.validator.is_valid() && !self.validator.waits();
        may_be_sent.then(|| self.transcript.messages().to_vec())
    }

    /// Removes a checkpoint whose operation was not started.
    pub(crate) fn forget(&mut self, checkpoint: &str) {
        self.checkpoints.retain(|other| &*other.id != checkpoint);
    }

    fn active_call(&self) -> Option<&Checkpoint> {
        self.checkpoints.iter().rfind(|checkpoint| {
            let is_open = !checkpoint.is_committed && self.holds(checkpoint);
            is_open && checkpoint.operation != Operation::ToolCycle
        })
    }

    /// Rolls back to the checkpoint before the call; `None` if that is refused.
    fn roll_back_call(&mut self, end: ModelEnd, id: Box<str>, now: u64) -> Option<ErrorRecovery> {
        let found = self.checkpoints.iter().find(|checkpoint| checkpoint.id == id)?;
        if !self.holds(found) {
            return None;
        }
        let index = found.message_index;
        let since = self.done.extract_if(.., |done| done.at >= index);
        let mut kept: Vec<RecordedCycle> = since.collect();
        let held = self.cycles.iter().filter_map(|cycle| {
            let result = cycle.held.clone()?;
            Some(cycle.clone().recorded(0, result))
        });
        kept.extend(held);
        let Ok(rolled_back) = self.rollback(&id, now) else { return None };
        for done in &mut kept {
            done.used = done.used.filter(|at| *at < index);
        }
        // A held result is still held if its step was kept.
        kept.retain(|done| self.cycles.iter().all(|cycle| cycle.id.0 != done.id));
        // A use that was kept gets its result again; other results are recorded if their tools ran.
        kept.retain(|done| {
            let is_done = self.mode == CycleMode::Preserve && !done.refused;
            is_done || done.used.is_some_and(|at| self.waits(at, &done.tool_use.id))
        });
        let count = kept.iter().filter(|done| !done.refused).count();
        kept.into_iter().for_each(|done| self.record(done));
        let (kind, what) = match end {
            ModelEnd::Filtered => ("content_filter", "Content filter triggered."),
            _ => ("api_error", "API error."),
        };
        let removed = rolled_back.messages_removed;
        self.note(kind, Some(&id), Some(removed), now);
        let message = format!("{what} Rolled back {removed} messages.");
        let mut recovery = ErrorRecovery::new(RecoveryAction::RolledBack, &message);
        recovery.checkpoint = Some(id);
        Some(if count > 0 { recovery.with("cyclesKept", count) } else { recovery })
    }

    /// Repairs a session that the provider refused. If it refuses the session again although
    /// validation finds nothing, no repair would help.
    fn repair_refused(&mut self, complaint: Complaint, now: u64) -> ErrorRecovery {
        let message = "The provider refuses the session.";
        // Only the provider knows that a thought is missing.
        let repair = match complaint {
            Complaint::Thinking => Repair::preserve().waive_thoughts(),
            _ => Repair::preserve(),
        };
        let is_valid = self.validator.is_valid() && self.plan(repair).is_empty();
        let is_hopeless = is_valid && self.was_refused_before();
        self.note("session_refused", None, None, now);
        if is_hopeless && self.config.auto_repair {
            return self.give_up(message, now);
        }
        self.repair_or_offer(message, is_valid, repair, now)
    }

    /// Whether no call has succeeded since the provider last refused the session.
    fn was_refused_before(&self) -> bool {
        let refused = self.incidents.iter().rfind(|incident| incident.kind == "session_refused");
        refused.is_some_and(|refused| {
            let done = self.checkpoints.iter().filter(|checkpoint| checkpoint.is_committed);
            done.map(|done| done.timestamp).all(|done| done < refused.timestamp)
        })
    }

    fn repair_or_offer(
        &mut self,
        message: &str,
        is_valid: bool,
        repair: Repair,
        now: u64,
    ) -> ErrorRecovery {
        if is_valid {
            let action = RecoveryAction::ValidateAndRepair;
            return ErrorRecovery::new(action, message).with("valid", true);
        }
        let plan = self.plan(repair);
        let repairs = plan.actions().len();
        if !self.config.auto_repair {
            let recovery = ErrorRecovery::new(RecoveryAction::ValidateAndRepair, message);
            return recovery.with("valid", false).with("repairsOffered", repairs);
        }
        let applied = self.apply(plan, now).is_ok();
        if applied && self.validator.is_valid() {
            let message = format!("{message} Made {repairs} repairs.");
            let recovery = ErrorRecovery::new(RecoveryAction::Repaired, &message);
            return recovery.with("repairs", repairs);
        }
        self.give_up(message, now)
    }

    fn give_up(&mut self, message: &str, now: u64) -> ErrorRecovery {
        let reset = self.reset(ResetOptions { archive: true }, now);
        let message = format!("{message} It could not be repaired and was reset.");
        let recovery = ErrorRecovery::new(RecoveryAction::Reset, &message);
        recovery.with("remainingMessages", reset.remaining_messages)
    }
}

impl ErrorRecovery {
    pub(crate) fn new(action: RecoveryAction, message: &str) -> Self {
        Self { action, message: message.into(), checkpoint: None, details: None }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.get_or_insert_with(Map::new).insert(name.into(), value.into());
        self
    }
}
