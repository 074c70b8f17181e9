//! Tool cycles: the intent before the tool starts, use and result together at its end.
use super::{
    CycleId, CycleMode, CycleState, Done, Operation, Session, ToolCycleResult,
    ToolCycleTransaction, ToolResult, ToolUse,
};
use crate::{
    format::{Asked, OUTCOME_UNKNOWN},
    message::{Kind, Message},
    repair,
};
use std::mem;
use tr_core::{Answer, CycleRef, Ran};

impl Session {
    /// Records the intent to run a tool, with a checkpoint before it. Nothing of it is seen in
    /// the transcript.
    pub fn begin_cycle(&mut self, cycle: &CycleRef<'_>, now: u64) -> CycleId {
        let checkpoint = self.checkpoint(Operation::ToolCycle, now).id;
        let tool_use = ToolUse::of(cycle);
        // It is tried again: what was rolled back before is of no interest any more.
        self.cycles.retain(|other| {
            other.state != CycleState::RolledBack || other.tool_use.id != tool_use.id
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
            driver: self.driver,
        });
        id
    }

    /// The tool starts now.
    pub fn start_cycle(&mut self, id: CycleId) {
        if let Some(cycle) = self.cycles.iter_mut().find(|cycle| cycle.id == id) {
            cycle.state = CycleState::Executing;
        }
    }

    /// The tool answered: use and result become part of the transcript together.
    ///
    /// If the agent has put the use there already, the result follows with those of the same
    /// step, once all of them are here.
    pub fn finish_cycle(&mut self, id: CycleId, answer: &Answer<'_>, now: u64) -> ToolCycleResult {
        let content = answer.content.as_ref().into();
        self.end_cycle(id, content, answer.is_error, None, now)
    }

    /// The call failed: by the session's mode the cycle is rolled back, or recorded with the
    /// error, or recorded as unknown.
    pub fn fail_cycle(&mut self, id: CycleId, answer: &Answer<'_>, now: u64) -> ToolCycleResult {
        let error = answer.content.as_ref();
        let content = match (self.mode, answer.ran) {
            // The session went on and kept its place: that can only be told the truth.
            (_, Ran::No) if self.keeps_place_of(id) => error.into(),
            (CycleMode::Rollback, _) | (CycleMode::Preserve, Ran::No) => {
                return self.roll_back_cycle(id, error, now);
            }
            (CycleMode::Preserve, Ran::Yes) => error.into(),
            (CycleMode::Preserve, Ran::Unknown) if error == OUTCOME_UNKNOWN => error.into(),
            (CycleMode::Preserve, Ran::Unknown) => format!("{error} ({OUTCOME_UNKNOWN})").into(),
        };
        self.end_cycle(id, content, true, Some(error), now)
    }

    /// Nobody drives the cycle any more. One whose tool was not started leaves nothing; another
    /// is settled by [`recover`](Self::recover).
    pub fn abandon_cycle(&mut self, id: CycleId, now: u64) {
        let Some(cycle) = self.cycles.iter_mut().find(|cycle| cycle.id == id) else { return };
        if cycle.state == CycleState::Pending {
            self.roll_back_cycle(id, "abandoned", now);
        } else {
            cycle.abandoned = true;
        }
    }

    /// Settles the cycles that nobody drives any more, says how many, and takes uses whose tools
    /// did not run out of the live tail. Cycles that are running are left alone.
    pub fn recover(&mut self, now: u64) -> usize {
        let abandoned = self.cycles.iter().filter(|cycle| cycle.abandoned && cycle.held.is_none());
        let abandoned: Vec<CycleId> = abandoned.map(|cycle| cycle.id).collect();
        let unknown = Answer { content: OUTCOME_UNKNOWN.into(), is_error: true, ran: Ran::Unknown };
        for &id in &abandoned {
            self.fail_cycle(id, &unknown, now);
            self.note("outcome_unknown", None, None, now);
        }
        self.take_back_from_tail(|_| false);
        self.flush_tail();
        abandoned.len()
    }

    /// Gives up the cycles whose process died, and settles them.
    pub(crate) fn settle_orphans(
        &mut self,
        is_live: impl Fn(&ToolCycleTransaction) -> bool,
        now: u64,
    ) {
        let orphans = self.cycles.iter().filter(|cycle| cycle.held.is_none() && !is_live(cycle));
        let orphans: Vec<CycleId> = orphans.map(|cycle| cycle.id).collect();
        if !orphans.is_empty() {
            orphans.into_iter().for_each(|id| self.abandon_cycle(id, now));
            self.recover(now);
        }
    }

    /// The tool of a cycle that was begun here has answered. If somebody has settled the cycle
    /// meanwhile, it is begun anew, to be recorded in the place that it has.
    pub(crate) fn resume_cycle(&mut self, id: CycleId, cycle: &CycleRef<'_>, now: u64) -> CycleId {
        let is_it = |other: &ToolCycleTransaction| {
            // The number alone may be another call's by now: what was begun anew in a copy that
            // was lost in its turn was never written.
            let is_same = other.id == id && *other.tool_use.id == *cycle.tool_use_id;
            is_same && other.driver == self.driver
        };
        if self.cycles.iter().any(is_it) {
            return id;
        }
        let id = self.begin_cycle(cycle, now);
        self.start_cycle(id);
        let has_place = self.validator.last_use_of(cycle.tool_use_id).is_some();
        if let Some(cycle) = self.cycles.iter_mut().find(|cycle| cycle.id == id) {
            cycle.in_transcript |= has_place;
        }
        id
    }

    /// The cycles on their way.
    #[must_use]
    pub fn cycles(&self) -> &[ToolCycleTransaction] {
        &self.cycles
    }

    /// Whether the transcript has the cycle's use, and something in the place of its result.
    fn keeps_place_of(&self, id: CycleId) -> bool {
        self.cycles.iter().find(|cycle| cycle.id == id).is_some_and(|cycle| {
            let id = &cycle.tool_use.id;
            cycle.in_transcript && !self.is_pending(id) && self.validator.last_use_of(id).is_some()
        })
    }

    /// The cycles stay in the order in which they were begun.
    pub(super) fn keep_cycle(&mut self, cycle: ToolCycleTransaction) {
        let at = self.cycles.partition_point(|other| other.id < cycle.id);
        self.cycles.insert(at, cycle);
    }

    fn done(&mut self, id: CycleId, at: usize, tool_use: ToolUse, result: ToolResult) {
        let place = self.done.partition_point(|other| other.id < id);
        self.done.insert(place, Done { id, at, tool_use, result });
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
        if let Some(mut cycle) = self.take_cycle(id) {
            self.checkpoints.retain(|checkpoint| checkpoint.id != cycle.checkpoint);
            self.note("tool_cycle", Some(&cycle.checkpoint), Some(0), now);
            if self.is_pending(&cycle.tool_use.id) {
                // The agent's own message names it: it goes when the step is closed.
                (cycle.state, cycle.abandoned) = (CycleState::RolledBack, false);
                self.keep_cycle(cycle);
            }
        }
        ToolCycleResult::rolled_back(error)
    }

    /// Gives a result its place in the transcript, or keeps it until the step is complete.
    fn place(&mut self, mut cycle: ToolCycleTransaction, result: ToolResult) {
        let id = cycle.tool_use.id.clone();
        if self.is_pending(&id) {
            (cycle.state, cycle.held, cycle.abandoned) =
                (CycleState::Recording, Some(result), false);
            self.keep_cycle(cycle);
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
                self.done(cycle.id, at, cycle.tool_use, result);
            }
            None => self.append_pair(cycle.id, cycle.tool_use, result),
        }
    }

    /// Records a cycle that is over: in the step that waits for it, else as a pair of messages.
    pub(super) fn record(&mut self, tool_use: ToolUse, result: ToolResult) {
        self.cycles_begun += 1;
        let id = CycleId(self.cycles_begun);
        if !self.is_pending(&tool_use.id) {
            return self.append_pair(id, tool_use, result);
        }
        self.keep_cycle(ToolCycleTransaction {
            id,
            checkpoint: Box::default(),
            tool_use,
            state: CycleState::Recording,
            abandoned: false,
            in_transcript: true,
            held: Some(result),
            driver: self.driver,
        });
        self.flush_tail();
    }

    /// Use and result as two messages, before a live tail if there is one.
    fn append_pair(&mut self, id: CycleId, tool_use: ToolUse, result: ToolResult) {
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
        self.done(id, at, tool_use, result);
    }

    /// Adds the results of the live tail once all of them are here.
    fn flush_tail(&mut self) {
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
        let held: Vec<_> = held
            .into_iter()
            .filter_map(|cycle| Some((cycle.id, cycle.tool_use, cycle.held?)))
            .collect();
        let results: Vec<_> = held.iter().map(|(_, used, result)| (used, result)).collect();
        let messages = self.hold(&results);
        for (id, tool_use, result) in held {
            self.done(id, at, tool_use, result);
        }
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

    /// Takes the uses that were rolled back out of the live tail, but for those to `keep`.
    pub(super) fn take_back_from_tail(&mut self, keep: impl Fn(&str) -> bool) {
        let gone: Vec<Box<str>> = self
            .cycles
            .iter()
            .filter(|cycle| cycle.state == CycleState::RolledBack && !keep(&cycle.tool_use.id))
            .map(|cycle| cycle.tool_use.id.clone())
            .filter(|id| self.is_pending(id))
            .collect();
        self.cycles.retain(|cycle| cycle.state != CycleState::RolledBack);
        let Some(step) = self.validator.live_step().filter(|_| !gone.is_empty()) else { return };
        let tail = &self.transcript.messages()[step..];
        let rest = repair::without_uses(self.transcript.format(), tail, &gone);
        self.replace(step, rest);
    }

    pub(super) fn is_pending(&self, id: &str) -> bool {
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
