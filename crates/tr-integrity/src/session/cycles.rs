//! Tool cycles: the intent before the tool starts, use and result together at its end.
use super::{
    CycleId, CycleMode, CycleState, Done, Operation, Session, ToolCycleResult,
    ToolCycleTransaction, ToolResult, ToolUse,
};
use crate::{
    format::{Asked, OUTCOME_UNKNOWN},
    message::{Kind, Message},
};
use std::mem;
use tr_core::{Answer, CycleRef, Ran};

/// Cycles that ended and whose ends a session remembers.
const KEPT_ENDS: usize = 1_000;

impl Session {
    /// Records the intent to run a tool, with a checkpoint before it. Nothing of it is seen in
    /// the transcript.
    pub fn begin_cycle(&mut self, cycle: &CycleRef<'_>, now: u64) -> CycleId {
        let checkpoint = self.checkpoint(Operation::ToolCycle, now).id;
        let tool_use = ToolUse::of(cycle);
        // It is tried again: what was refused before is of no interest any more.
        self.drop_cycles(|other| {
            let was_refused = other.refused || other.state == CycleState::RolledBack;
            was_refused && other.tool_use.id == tool_use.id
        });
        self.cycles_begun += 1;
        let id = CycleId(self.cycles_begun);
        self.keep_cycle(ToolCycleTransaction {
            id,
            checkpoint,
            in_transcript: self.is_pending(&tool_use.id),
            tool_use,
            state: CycleState::Pending,
            abandoned: false,
            held: None,
            refused: false,
            starts_once_written: false,
            driver: self.driver,
        });
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

    /// How far a cycle is, or how it ended. `None` if it was never begun, or ended before the last
    /// thousand, or before the session was loaded.
    #[must_use]
    pub fn cycle_state(&self, id: CycleId) -> Option<CycleState> {
        let on_its_way = self.cycles.iter().find(|cycle| cycle.id == id);
        let ended = || self.ended.iter().rfind(|(ended, _)| *ended == id).map(|(_, state)| *state);
        on_its_way.map(|cycle| cycle.state).or_else(ended)
    }

    /// The tool answered: use and result become part of the transcript together.
    ///
    /// If the agent has put the use there already, the result follows with those of the same
    /// step, once all of them are here.
    pub fn finish_cycle(&mut self, id: CycleId, answer: &Answer<'_>, now: u64) -> ToolCycleResult {
        let content = answer.content.as_ref().into();
        self.end_cycle(id, content, answer.is_error, None, now)
    }

    /// The call failed. Where the agent has put the use into the transcript, it is answered there
    /// with the error: a use without a result would have every further call of the model refused.
    /// Elsewhere the cycle is rolled back or recorded with the error, by the session's mode. An
    /// unknown outcome is recorded as such.
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

    /// The cycles on their way.
    #[must_use]
    pub fn cycles(&self) -> &[ToolCycleTransaction] {
        &self.cycles
    }

    /// Whether the transcript has the cycle's use: it waits for its result, or the session went on
    /// and something stands in the result's place.
    pub(super) fn has_use_of(&self, id: CycleId) -> bool {
        self.cycles.iter().find(|cycle| cycle.id == id).is_some_and(|cycle| {
            let id = &cycle.tool_use.id;
            self.is_pending(id) || cycle.in_transcript && self.validator.last_use_of(id).is_some()
        })
    }

    /// Whether a tool may still run whose result the live tail waits for.
    pub(crate) fn tail_is_driven(&self) -> bool {
        let runs = |cycle: &&ToolCycleTransaction| cycle.held.is_none() && !cycle.abandoned;
        self.cycles.iter().filter(runs).any(|cycle| self.is_pending(&cycle.tool_use.id))
    }

    /// The cycles stay in the order in which they were begun.
    pub(super) fn keep_cycle(&mut self, cycle: ToolCycleTransaction) {
        let at = self.cycles.partition_point(|other| other.id < cycle.id);
        self.cycles.insert(at, cycle);
    }

    /// A cycle is recorded.
    fn done(&mut self, done: Done) {
        self.ended(done.id, CycleState::Committed);
        let place = self.done.partition_point(|other| other.id < done.id);
        self.done.insert(place, done);
    }

    /// Remembers how a cycle ended.
    fn ended(&mut self, id: CycleId, state: CycleState) {
        if self.ended.len() == KEPT_ENDS {
            self.ended.pop_front();
        }
        self.ended.push_back((id, state));
    }

    /// These are rolled back: nothing of them is recorded.
    pub(super) fn drop_cycles(&mut self, goes: impl Fn(&ToolCycleTransaction) -> bool) {
        let (gone, stay) = mem::take(&mut self.cycles).into_iter().partition(goes);
        self.cycles = stay;
        let gone: Vec<ToolCycleTransaction> = gone;
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
        self.note_verbose("cycle_recorded", &checkpoint, now);
        // A rollback in between has taken the checkpoint with it; the cycle stands without it.
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

    /// Gives a result its place in the transcript, or keeps it until the step is complete.
    fn place(&mut self, mut cycle: ToolCycleTransaction, result: ToolResult) {
        let id = cycle.tool_use.id.clone();
        if self.is_pending(&id) {
            if self.makes_way_for(&cycle, &result) {
                (cycle.state, cycle.held, cycle.abandoned) =
                    (CycleState::Recording, Some(result), false);
                self.keep_cycle(cycle);
            } else {
                self.ended(cycle.id, CycleState::RolledBack);
            }
            return self.flush_tail();
        }
        let used_before = self.validator.last_use_of(&id);
        match used_before.filter(|_| cycle.in_transcript) {
            // The session went on without it: it takes the place that was kept for it.
            Some(step) => {
                let late = self.hold(&[(&cycle.tool_use, &result)]);
                let at = self.validator.live_step().unwrap_or(self.transcript.len());
                self.insert(at, late);
                self.mend(step);
                let at = self.validator.result_of(&id).unwrap_or(step + 1);
                let ToolCycleTransaction { id, tool_use, refused, .. } = cycle;
                self.done(Done { id, at, tool_use, result, refused });
            }
            None => self.append_pair(cycle.id, cycle.tool_use, result, cycle.refused),
        }
    }

    /// Whether a result of a use that waits is kept: one result for each use. Where the use was called
    /// more than once, an answer beats an error, and that beats a refusal; of equals the later counts.
    fn makes_way_for(&mut self, cycle: &ToolCycleTransaction, result: &ToolResult) -> bool {
        let id = &cycle.tool_use.id;
        let uses = self.validator.pending().filter(|pending| *pending == &**id).count();
        let worth = |refused: bool, result: &ToolResult| (!refused, !result.is_error);
        let rivals = self.cycles.iter().filter(|other| other.tool_use.id == *id);
        let held: Vec<_> = rivals
            .filter_map(|other| Some((worth(other.refused, other.held.as_ref()?), other.id)))
            .collect();
        let Some(&(least, loser)) = held.iter().min().filter(|_| held.len() >= uses) else {
            return true;
        };
        let is_kept = worth(cycle.refused, result) >= least;
        if is_kept {
            self.drop_cycles(|other| other.id == loser);
        }
        is_kept
    }

    /// Records a cycle that is over: in the step that waits for it, else as a pair of messages.
    pub(super) fn record(&mut self, tool_use: ToolUse, result: ToolResult, refused: bool) {
        self.cycles_begun += 1;
        let id = CycleId(self.cycles_begun);
        if !self.is_pending(&tool_use.id) {
            return self.append_pair(id, tool_use, result, refused);
        }
        self.keep_cycle(ToolCycleTransaction {
            id,
            checkpoint: Box::default(),
            tool_use,
            state: CycleState::Recording,
            abandoned: false,
            in_transcript: true,
            held: Some(result),
            refused,
            starts_once_written: false,
            driver: self.driver,
        });
        self.flush_tail();
    }

    /// Use and result as two messages, before a live tail if there is one.
    fn append_pair(&mut self, id: CycleId, tool_use: ToolUse, result: ToolResult, refused: bool) {
        let format = self.transcript.format();
        let used_before = self.validator.last_use_of(&tool_use.id);
        let mut pair = format.write_uses(&[tool_use.to_write()]);
        pair.extend(self.hold(&[(&tool_use, &result)]));
        let at = self.validator.live_step().unwrap_or(self.transcript.len());
        let was_valid = self.validator.is_valid();
        self.insert(at, pair);
        let repeats = used_before.filter(|_| format.refuses_repeated_ids());
        match repeats.map(|step| step.min(at)) {
            Some(step) => self.mend(step),
            // It may not stand there, or may not begin a session.
            None if was_valid && !self.validator.is_valid() => self.mend(at),
            None => {}
        }
        self.done(Done { id, at, tool_use, result, refused });
    }

    /// Adds the results of the live tail once all of them are here.
    pub(super) fn flush_tail(&mut self) {
        let mut waiting: Vec<&ToolCycleTransaction> =
            self.cycles.iter().filter(|cycle| cycle.held.is_some()).collect();
        for id in self.validator.pending() {
            let Some(at) = waiting.iter().position(|cycle| *cycle.tool_use.id == *id) else {
                return;
            };
            waiting.swap_remove(at);
        }
        let results = self.release_held();
        results.into_iter().for_each(|message| self.append(message));
    }

    /// The messages with all results that wait, in the order of their uses.
    pub(super) fn release_held(&mut self) -> Vec<Message> {
        let (mut held, rest): (Vec<_>, Vec<_>) =
            mem::take(&mut self.cycles).into_iter().partition(|cycle| cycle.held.is_some());
        self.cycles = rest;
        let order: Vec<&str> = self.validator.pending().collect();
        held.sort_by_key(|cycle| order.iter().position(|id| *id == &*cycle.tool_use.id));
        let at = self.transcript.len();
        let held = held.into_iter().filter_map(|cycle| {
            let ToolCycleTransaction { id, tool_use, held, refused, .. } = cycle;
            Some(Done { id, at, tool_use, result: held?, refused })
        });
        let held: Vec<Done> = held.collect();
        let results: Vec<_> = held.iter().map(|done| (&done.tool_use, &done.result)).collect();
        let messages = self.hold(&results);
        held.into_iter().for_each(|done| self.done(done));
        messages
    }

    fn hold(&self, results: &[(&ToolUse, &ToolResult)]) -> Vec<Message> {
        if results.is_empty() {
            return Vec::new();
        }
        let format = self.transcript.format();
        let write = |(used, result): &(&ToolUse, &ToolResult)| {
            let asked = self.asked(used);
            format.form().write_result(&asked, &result.content, result.is_error)
        };
        format.hold_results(&results.iter().map(write).collect::<Vec<_>>())
    }

    /// A use, as it stands in the transcript if it is there.
    fn asked<'s>(&'s self, used: &'s ToolUse) -> Asked<'s> {
        let message = self.validator.last_use_of(&used.id);
        let message = message.map(|at| &self.transcript.messages()[at]);
        let text = message.and_then(|message| {
            let is_meant = |kind: &Kind| matches!(kind, Kind::Use { id, .. } if *id == used.id);
            let block = message.blocks().iter().find(|block| is_meant(&block.kind))?;
            Some(message.text(&block.span))
        });
        Asked { id: &used.id, name: &used.name, text: text.unwrap_or_default() }
    }

    pub(crate) fn is_pending(&self, id: &str) -> bool {
        self.validator.pending().any(|pending| pending == id)
    }

    pub(super) fn tail_has_cycles(&self) -> bool {
        self.cycles.iter().any(|cycle| self.is_pending(&cycle.tool_use.id))
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
    use crate::format::Format;

    #[test]
    fn a_call_is_never_recorded_in_the_cycle_of_another() {
        let mut session = Session::new("s", Format::AnthropicMessages);
        let call = |id| CycleRef { session: "s", tool_use_id: id, name: "pay", input: "{}" };
        let answer =
            |text: &'static str| Answer { content: text.into(), is_error: false, ran: Ran::Yes };
        let other = session.begin_cycle(&call("other"), 0);
        session.start_cycle(other);
        // Begun as of this number in a copy of the session that nobody has any more.
        let resumed = session.resume_cycle(other, &call("mine"), 0);
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
