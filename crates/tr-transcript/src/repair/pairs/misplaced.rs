//! Results outside of their step: which call they certainly answer.
use super::{Fate, Pairs, is_random};
use crate::message::{Message, Role};
use std::collections::HashMap;

/// The uses of an id, each as its step and its place there, in order.
type Uses = HashMap<Box<str>, Vec<(usize, usize)>>;

impl Pairs<'_> {
    /// Pairs each remaining real result with the unanswered use that it certainly answers.
    pub(super) fn bring_home(&mut self, messages: &[&Message]) {
        let mut uses = Uses::new();
        for (number, step) in self.steps.iter().enumerate() {
            for (place, used) in step.uses.iter().enumerate() {
                uses.entry(used.id.clone()).or_default().push((number, place));
            }
        }
        let turns = turns(messages);
        for result in 0..self.found.len() {
            let found = &self.found[result];
            // Without an id, a result outside of its step cannot be assigned to a call.
            if found.fate != Fate::Unpaired || found.is_synthetic || !found.has_own_id {
                continue;
            }
            let Some(uses) = uses.get(&*found.key.id) else { continue };
            let Some((step, place)) = self.certain(result, uses, &turns) else { continue };
            if let Some(synthetic) = self.steps[step].uses[place].answer.replace(result) {
                self.found[synthetic].fate = Fate::Drop;
                self.found[result].instead_of.push(synthetic);
            }
            self.found[result].fate = Fate::Answers;
            self.found[result].is_moved = self.found[result].home != Some(step);
        }
    }

    /// The unanswered use that a result certainly answers: the only one with its random id. An id
    /// that was counted up, or that repeats, may be that of a lost call, too. So it names only a
    /// call of the same turn of the user's whose step waits no longer; of several such calls, one of
    /// the last step before the result.
    fn certain(
        &self,
        result: usize,
        uses: &[(usize, usize)],
        turns: &[usize],
    ) -> Option<(usize, usize)> {
        let found = &self.found[result];
        let waits = |&&(step, place): &&(usize, usize)| {
            let answer = self.steps[step].uses[place].answer;
            answer.is_none_or(|answer| self.found[answer].is_synthetic)
        };
        if let [only] = uses
            && is_random(&found.key.id)
        {
            return Some(only).filter(waits).copied();
        }
        let before = uses.partition_point(|&(step, _)| self.steps[step].at <= found.at);
        let uses = if uses.len() == 1 { uses } else { &uses[..before] };
        let last = uses.last()?.0;
        let step = &self.steps[last];
        if step.is_live || turns[step.at] != turns[found.at] {
            return None;
        }
        // Within a step, uses are answered in order.
        uses.iter().filter(|(step, _)| *step == last).find(waits).copied()
    }
}

/// For each message, how many before it begin a turn of the user's.
fn turns(messages: &[&Message]) -> Vec<usize> {
    let mut turns = 0;
    let before = messages.iter().map(|message| {
        let before = turns;
        turns += usize::from(message.role() == Role::User && !message.has_only_results());
        before
    });
    before.collect()
}
