//! Tool cycles: the intent before the tool starts, use and result together at its end.
use super::{
    CycleId, CycleMode, CycleState, Operation, Session, ToolCycleResult, ToolCycleTransaction,
    ToolResult, ToolUse,
    cycle::{RecordedCycle, UsePosition},
    incidents::keep,
};
use tr_core::{Answer, CycleRef, Ran};
use tr_transcript::OUTCOME_UNKNOWN;

/// For how many ended cycles a session remembers the end.
const KEPT_ENDS: usize = 1_000;

impl Session {
    /// Records the intent to run a tool, and makes a checkpoint before it. The transcript does not
    /// change.
    pub fn begin_cycle(&mut self, cycle: &CycleRef<'_>, now: u64) -> CycleId {
        let checkpoint = self.checkpoint(Operation::ToolCycle, now).id;
        let tool_use = ToolUse::of(cycle);
        let used = UsePosition::pushed(self.validator.pending_at(&tool_use.id));
        // A retry: the refusal of the earlier attempt is dropped.
        self.drop_cycles(|other| {
            let was_refused = other.refused || other.state == CycleState::RolledBack;
            was_refused && other.tool_use.id == tool_use.id && other.used == used
        });
        self.cycles_begun += 1;
        let id = CycleId(self.cycles_begun);
        let cycle = ToolCycleTransaction::new(id, checkpoint, tool_use, self.driver);
        self.keep_cycle(ToolCycleTransaction { used, ..cycle });
        self.note_cycle("cycle_begun", id, now);
        id
    }

    /// The tool starts now.
    pub fn start_cycle(&mut self, id: CycleId) {
        if let Some(cycle) = self.cycles.iter_mut().find(|cycle| cycle.id == id) {
            cycle.state = CycleState::Executing;
        }
    }

    /// The tool starts as soon as the intent is written.
    pub(crate) fn start_once_written(&mut self, id: CycleId) {
        if let Some(cycle) = self.cycles.iter_mut().find(|cycle| cycle.id == id) {
            cycle.starts_once_written = true;
        }
    }

    /// The state of a cycle, or its end. `None` if it was never begun, if a thousand other cycles
    /// ended after it, or if it ended before the session was loaded.
    #[must_use]
    pub fn cycle_state(&self, id: CycleId) -> Option<CycleState> {
        let on_its_way = self.cycles.iter().find(|cycle| cycle.id == id);
        let ended = || self.ended.iter().rfind(|(ended, _)| *ended == id).map(|(_, state)| *state);
        on_its_way.map(|cycle| cycle.state).or_else(ended)
    }

    /// Records the tool's answer: use and result are added to the transcript together.
    ///
    /// If the agent has already put the use there, the result is added with the others of its step,
    /// once all of them are known.
    pub fn finish_cycle(&mut self, id: CycleId, answer: &Answer<'_>, now: u64) -> ToolCycleResult {
        let content = answer.content.as_ref().into();
        self.end_cycle(id, content, answer.is_error, None, now)
    }

    /// Records that the call failed. A use that the agent has put into the transcript is answered
    /// there with the error, because the provider would refuse every further call of the model for
    /// a use without a result. Otherwise the cycle is rolled back or recorded with the error,
    /// depending on the session's mode. An unknown outcome is recorded as such.
    pub fn fail_cycle(&mut self, id: CycleId, answer: &Answer<'_>, now: u64) -> ToolCycleResult {
        let error = answer.content.as_ref();
        let is_taken_back = self.mode == CycleMode::Rollback || answer.ran == Ran::No;
        if is_taken_back && !self.has_use_of(id) {
            return self.roll_back_cycle(id, error, now);
        }
        let content = match answer.ran {
            Ran::Unknown if error != OUTCOME_UNKNOWN => {
                format!("{error} ({OUTCOME_UNKNOWN})").into()
            }
            _ => error.into(),
        };
        if let Some(cycle) = self.cycles.iter_mut().find(|cycle| cycle.id == id) {
            cycle.refused = answer.ran == Ran::No;
        }
        self.end_cycle(id, content, true, Some(error), now)
    }

    /// The cycles that have not ended.
    #[must_use]
    pub fn cycles(&self) -> &[ToolCycleTransaction] {
        &self.cycles
    }

    /// Whether the transcript has the cycle's use: it waits for its result, or a placeholder
    /// answers it.
    pub(super) fn has_use_of(&self, id: CycleId) -> bool {
        let cycle = self.cycles.iter().find(|cycle| cycle.id == id);
        cycle.is_some_and(|cycle| matches!(cycle.used, UsePosition::At(_)))
    }

    /// Whether the live tail waits for its result.
    pub(super) fn is_awaited(&self, cycle: &ToolCycleTransaction) -> bool {
        cycle.used.at().is_some_and(|at| self.waits(at, &cycle.tool_use.id))
    }

    /// Whether a tool is running whose result the live tail waits for.
    pub(crate) fn tail_is_driven(&self) -> bool {
        let runs = |cycle: &&ToolCycleTransaction| cycle.held.is_none() && !cycle.abandoned;
        self.cycles.iter().filter(runs).any(|cycle| self.is_awaited(cycle))
    }

    /// Keeps the cycles in the order in which they began.
    pub(super) fn keep_cycle(&mut self, cycle: ToolCycleTransaction) {
        let at = self.cycles.partition_point(|other| other.id < cycle.id);
        self.cycles.insert(at, cycle);
    }

    /// Notes that a cycle was recorded.
    pub(super) fn done(&mut self, done: RecordedCycle) {
        self.ended(CycleId(done.id), CycleState::Committed);
        let place = self.done.partition_point(|other| other.id < done.id);
        self.done.insert(place, done);
    }

    /// Remembers the end of a cycle.
    pub(super) fn ended(&mut self, id: CycleId, state: CycleState) {
        keep(&mut self.ended, KEPT_ENDS, (id, state));
    }

    /// Rolls these cycles back: nothing of them is recorded.
    pub(super) fn drop_cycles(&mut self, goes: impl Fn(&ToolCycleTransaction) -> bool) {
        let gone: Vec<_> = self.cycles.extract_if(.., |cycle| goes(cycle)).collect();
        gone.into_iter().for_each(|cycle| self.ended(cycle.id, CycleState::RolledBack));
    }

    fn take_cycle(&mut self, id: CycleId) -> Option<ToolCycleTransaction> {
        let at = self.cycles.iter().position(|cycle| cycle.id == id)?;
        Some(self.cycles.remove(at))
    }

    fn end_cycle(
        &mut self,
        id: CycleId,
        content: Box<str>,
        is_error: bool,
        error: Option<&str>,
        now: u64,
    ) -> ToolCycleResult {
        let Some(cycle) = self.take_cycle(id) else { return ToolCycleResult::rolled_back("") };
        let tool_use_id = cycle.tool_use.id.clone();
        let result = ToolResult { tool_use_id, content, is_error };
        let checkpoint = cycle.checkpoint.clone();
        self.place(cycle, result.clone());
        self.note_verbose("cycle_recorded", Some(&checkpoint), now);
        // A rollback may have removed the checkpoint; the cycle is recorded nevertheless.
        let _ = self.commit(&checkpoint, now);
        ToolCycleResult {
            success: error.is_none(),
            result: Some(result),
            error: error.map(Into::into),
            rolled_back: None,
        }
    }

    fn roll_back_cycle(&mut self, id: CycleId, error: &str, now: u64) -> ToolCycleResult {
        if let Some(cycle) = self.take_cycle(id) {
            self.checkpoints.retain(|checkpoint| checkpoint.id != cycle.checkpoint);
            self.ended(id, CycleState::RolledBack);
            self.note("tool_cycle", Some(&cycle.checkpoint), Some(0), now);
        }
        ToolCycleResult::rolled_back(error)
    }
}

impl ToolCycleResult {
    fn rolled_back(error: &str) -> Self {
        Self { success: false, result: None, error: Some(error.into()), rolled_back: Some(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_transcript::Format;

    #[test]
    fn a_call_is_never_recorded_in_the_cycle_of_another() {
        let mut session = Session::new("s", Format::AnthropicMessages);
        let call = |id| CycleRef { session: "s", tool_use_id: id, name: "pay", input: "{}" };
        let answer =
            |text: &'static str| Answer { content: text.into(), is_error: false, ran: Ran::Yes };
        let other = session.begin_cycle(&call("other"), 0);
        session.start_cycle(other);
        // Begun as of this number in a copy of the session that nobody has any more.
        let resumed = session.resume_cycle(other, &call("mine"), None, 0);
        assert_ne!(resumed, other);
        session.finish_cycle(resumed, &answer("my answer"), 0);
        session.finish_cycle(other, &answer("the other's"), 0);
        let pairs = [("mine", "my answer"), ("other", "the other's")];
        for (message, (id, text)) in
            session.transcript().messages()[1..].iter().step_by(2).zip(pairs)
        {
            assert_eq!(message.tool_results().collect::<Vec<_>>(), [id]);
            assert!(message.raw().contains(text), "{}", message.raw());
        }
        assert!(session.validate().valid && session.cycles().is_empty());
    }
}
