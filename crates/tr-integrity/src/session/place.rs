//! Puts the result of a cycle at the use that it answers, and not at another one with the same id.
use super::{
    CycleId, CycleState, Session, ToolCycleTransaction, ToolResult, ToolUse,
    cycle::{RecordedCycle, UsePosition},
};
use std::{collections::HashMap, slice};
use tr_transcript::{
    Message,
    internal::{self, Answer, NewResult},
};

impl ToolCycleTransaction {
    /// As recorded, with its result at this index.
    pub(super) fn recorded(self, at: usize, result: ToolResult) -> RecordedCycle {
        let Self { id, used, tool_use, refused, .. } = self;
        RecordedCycle { id: id.0, at, used: used.at(), tool_use, result, refused }
    }
}

impl Session {
    /// Puts a result into the transcript, or holds it until the step is complete.
    pub(super) fn place(&mut self, mut cycle: ToolCycleTransaction, result: ToolResult) {
        if self.is_awaited(&cycle) {
            if self.makes_way_for(&cycle, &result) {
                (cycle.state, cycle.held, cycle.abandoned) =
                    (CycleState::Recording, Some(result), false);
                self.keep_cycle(cycle);
            } else {
                self.ended(cycle.id, CycleState::RolledBack);
            }
            return self.flush_tail();
        }
        let done = cycle.recorded(0, result);
        let Some(used) = done.used else { return self.append_pair(done) };
        // Messages were added after the use.
        let at = self.place_late(used, &done);
        self.done(RecordedCycle { at, ..done });
    }

    /// Puts a result at the use in the message `used`, in place of the placeholder; returns its
    /// index. If the use has a real result, the second one is kept as text.
    fn place_late(&mut self, used: usize, done: &RecordedCycle) -> usize {
        let format = self.transcript.format();
        let text = self.written(done);
        let Some(answer) = self.answer(used, &done.tool_use.id) else {
            self.insert(used + 1, format.hold_results(&[text]));
            self.repair_step(self.step_of(used));
            return used + 1;
        };
        if !answer.is_placeholder {
            return self.keep_as_text(answer.at, &text);
        }
        let message = internal::with_answer(&self.transcript, answer, &text);
        self.exchange(answer.at, message);
        // Messages that were added meanwhile may be invalid there.
        if !self.validator.is_valid() {
            self.repair_step(self.step_of(used));
        }
        answer.at
    }

    /// The index where the step of the message at `used` begins.
    fn step_of(&self, used: usize) -> usize {
        self.transcript.format().last_step(&self.transcript.messages()[..=used])
    }

    /// Keeps a second result as text, unless the first has the same content; returns the index.
    fn keep_as_text(&mut self, answer: usize, result: &str) -> usize {
        let format = self.transcript.format();
        if internal::is_said(format, &self.transcript.messages()[answer], result) {
            return answer;
        }
        let at = self.validator.live_step().unwrap_or(self.transcript.len());
        self.insert(at, internal::as_text(format, result));
        at
    }

    /// The result of the use of `id` in a message: a placeholder, if there is one.
    pub(super) fn answer(&self, used: usize, id: &str) -> Option<Answer> {
        internal::answer(&self.transcript, &self.validator, used, id)
    }

    /// Whether a result of a waiting use is held. Each use holds one result. If the use was called
    /// several times, an answer has priority over an error, and an error over a refusal; of equals,
    /// the later one is held.
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

    /// Records an ended cycle: in the step that waits for it, else as a pair of messages.
    pub(super) fn record(&mut self, done: RecordedCycle) {
        self.cycles_begun += 1;
        let id = self.cycles_begun;
        let Some(at) = done.used.filter(|at| self.waits(*at, &done.tool_use.id)) else {
            return self.append_pair(RecordedCycle { id, ..done });
        };
        let RecordedCycle { tool_use, result, refused, .. } = done;
        let cycle = ToolCycleTransaction::new(CycleId(id), Box::default(), tool_use, self.driver);
        let (state, held, used) = (CycleState::Recording, Some(result), UsePosition::At(at));
        self.keep_cycle(ToolCycleTransaction { state, used, held, refused, ..cycle });
        self.flush_tail();
    }

    /// Adds use and result as two messages, before a live tail if there is one.
    fn append_pair(&mut self, mut done: RecordedCycle) {
        done.used = None;
        let format = self.transcript.format();
        let ToolUse { id, name, input } = &done.tool_use;
        let used_before = self.validator.last_use_of(id);
        let mut pair = format.write_uses(&[(id, name, input)]);
        pair.extend(self.hold(slice::from_ref(&done)));
        let at = self.validator.live_step().unwrap_or(self.transcript.len());
        let was_valid = self.validator.is_valid();
        self.insert(at, pair);
        let repeats = used_before.filter(|_| format.refuses_repeated_ids());
        match repeats.map(|step| step.min(at)) {
            Some(step) => self.repair_step(step),
            // The pair may be invalid there, or at the beginning of a session.
            None if was_valid && !self.validator.is_valid() => self.repair_step(at),
            None => {}
        }
        self.done(RecordedCycle { at, ..done });
    }

    /// Adds the results of the live tail once all of them are known.
    pub(super) fn flush_tail(&mut self) {
        let mut held: HashMap<&str, usize> = HashMap::new();
        for cycle in self.cycles.iter().filter(|cycle| cycle.held.is_some()) {
            *held.entry(&cycle.tool_use.id).or_default() += 1;
        }
        for id in self.validator.pending() {
            match held.get_mut(id) {
                Some(left) if *left > 0 => *left -= 1,
                _ => return,
            }
        }
        let results = self.release_held();
        results.into_iter().for_each(|message| self.append(message));
    }

    /// Takes the cycles with held results whose step is no longer the live tail.
    fn take_unawaited(&mut self) -> Vec<ToolCycleTransaction> {
        let (gone, stay) = self
            .cycles
            .iter()
            .cloned()
            .partition(|cycle| cycle.held.is_some() && !self.is_awaited(cycle));
        self.cycles = stay;
        gone
    }

    /// Drops held results whose uses were removed.
    pub(super) fn drop_unawaited(&mut self) {
        let gone = self.take_unawaited();
        gone.into_iter().for_each(|cycle| self.ended(cycle.id, CycleState::RolledBack));
    }

    /// Places held results whose uses are in other messages now.
    pub(super) fn place_unawaited(&mut self) {
        for mut cycle in self.take_unawaited() {
            if let Some(result) = cycle.held.take() {
                self.place(cycle, result);
            }
        }
    }

    /// Takes all held results as messages, in the order of their uses.
    pub(super) fn release_held(&mut self) -> Vec<Message> {
        let held = self.cycles.extract_if(.., |cycle| cycle.held.is_some());
        let mut held: Vec<_> = held.collect();
        let mut order: HashMap<&str, usize> = HashMap::new();
        for (at, id) in self.validator.pending().enumerate() {
            order.entry(id).or_insert(at);
        }
        held.sort_by_key(|cycle| order.get(&*cycle.tool_use.id).copied());
        let at = self.transcript.len();
        let held = held.into_iter().filter_map(|mut cycle| {
            let result = cycle.held.take()?;
            Some(cycle.recorded(at, result))
        });
        let held: Vec<RecordedCycle> = held.collect();
        let messages = self.hold(&held);
        held.into_iter().for_each(|done| self.done(done));
        messages
    }

    fn hold(&self, done: &[RecordedCycle]) -> Vec<Message> {
        if done.is_empty() {
            return Vec::new();
        }
        let written: Vec<_> = done.iter().map(|done| self.written(done)).collect();
        self.transcript.format().hold_results(&written)
    }

    /// The result of a use as the transcript's format writes it.
    fn written(&self, done: &RecordedCycle) -> String {
        let message = done.used.map(|at| &self.transcript.messages()[at]);
        let ToolUse { id, name, .. } = &done.tool_use;
        let ToolResult { content, is_error, .. } = &done.result;
        let result = NewResult { id, name, content, is_error: *is_error };
        internal::write_result(self.transcript.format(), message, result)
    }
}
