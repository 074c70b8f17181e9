//! Which use a cycle answers: sessions of some providers reuse ids, so an id alone may also match
//! the use of another turn.
use super::{CycleId, Session, cycle::UsePosition};
use blake3::Hash;
use tr_transcript::{Message, internal};

/// Identifies a cycle's use in another copy of the session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occurrence {
    /// How many uses with its id are before it.
    nth: usize,
    /// The hash of the messages up to its own, if the agent has put the use into the transcript.
    prefix: Option<Hash>,
}

impl Session {
    /// Whether the use in the message `at` is in the live tail and a use with its id waits for a result.
    pub(super) fn waits(&self, at: usize, id: &str) -> bool {
        self.validator.live_step().is_some_and(|step| step <= at)
            && self.validator.pending_at(id).is_some()
    }

    /// Assigns the uses in the message at `at`, which the agent has pushed, to the cycles begun for
    /// them.
    pub(super) fn adopt(&mut self, at: usize) {
        let message = &self.transcript.messages()[at];
        let waiting = self.cycles.iter_mut().filter(|cycle| cycle.used == UsePosition::Absent);
        for cycle in waiting.filter(|cycle| message.tool_uses().any(|id| *id == *cycle.tool_use.id))
        {
            cycle.used = UsePosition::At(at);
        }
    }

    /// Updates positions after the messages from `len` on were removed.
    pub(super) fn lose_uses(&mut self, len: usize) {
        self.move_uses(|at| if at < len { UsePosition::At(at) } else { UsePosition::Removed });
    }

    /// Updates positions after `by` messages were inserted at `from`.
    pub(super) fn shift_uses(&mut self, from: usize, by: usize) {
        self.move_uses(|at| UsePosition::At(if at < from { at } else { at + by }));
    }

    /// Updates positions after the messages from `from` on were replaced by `after`. Uses with
    /// equal text are matched in order; if their number changed, their positions are unknown.
    pub(super) fn follow_uses(&mut self, from: usize, after: &[Message]) {
        let before = &self.transcript.messages()[from..];
        let follow = |id: &str, at: usize| {
            let Some(at) = at.checked_sub(from) else { return UsePosition::At(at) };
            let text = internal::text_of(&before[at], id);
            let places = |messages: &[Message]| -> Vec<usize> {
                let uses = |(at, message)| vec![at; uses_of(message, id, text)];
                messages.iter().enumerate().flat_map(uses).collect()
            };
            let (old, new) = (places(before), places(after));
            let nth = old.iter().position(|place| *place == at).filter(|_| old.len() == new.len());
            nth.map_or(UsePosition::Removed, |nth| UsePosition::At(from + new[nth]))
        };
        for cycle in &mut self.cycles {
            cycle.used = cycle.used.then(|at| follow(&cycle.tool_use.id, at));
        }
        for done in &mut self.done {
            done.used = done.used.and_then(|at| follow(&done.tool_use.id, at).at());
        }
    }

    fn move_uses(&mut self, place: impl Fn(usize) -> UsePosition) {
        for cycle in &mut self.cycles {
            cycle.used = cycle.used.then(&place);
        }
        for done in &mut self.done {
            done.used = done.used.and_then(|at| place(at).at());
        }
    }

    /// Identifies a cycle's use for another copy of the session.
    pub(crate) fn occurrence(&self, id: CycleId) -> Option<Occurrence> {
        let cycle = self.cycles.iter().find(|cycle| cycle.id == id)?;
        let uses = self.validator.uses_of(&cycle.tool_use.id);
        Some(match cycle.used {
            UsePosition::At(at) => Occurrence {
                nth: uses.filter(|&used| used < at).count(),
                prefix: Some(self.chain.prefix(at + 1)),
            },
            _ => Occurrence { nth: uses.count(), prefix: None },
        })
    }

    /// Whether that use with this id waits for its result.
    pub(crate) fn is_pending_there(&self, id: &str, occurrence: Occurrence) -> bool {
        self.find_use(id, occurrence).at().is_some_and(|at| self.waits(at, id))
    }

    /// Finds a use that another copy has identified. A use that the agent did not push matches that
    /// of a recorded pair, as long as it has no real result.
    pub(super) fn find_use(&self, id: &str, occurrence: Occurrence) -> UsePosition {
        let mut uses: Vec<usize> = self.validator.uses_of(id).collect();
        uses.reverse();
        let nth = uses.get(occurrence.nth).copied();
        let Some(prefix) = occurrence.prefix else {
            let has_placeholder = |at| self.answer(at, id).is_some_and(|it| it.is_placeholder);
            return UsePosition::pushed(
                nth.filter(|&at| has_placeholder(at) || self.waits(at, id)),
            );
        };
        let same = uses.into_iter().find(|&at| self.chain.prefix(at + 1) == prefix);
        same.or(nth).map_or(UsePosition::Removed, UsePosition::At)
    }
}

fn uses_of(message: &Message, id: &str, text: &str) -> usize {
    internal::texts_of(message, id).filter(|used| *used == text).count()
}
