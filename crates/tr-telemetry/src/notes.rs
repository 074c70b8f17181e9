//! Collects the events of inner layers for a call while it is polled.
//!
//! Layers report their events to an observer on the thread that polls the call, within that poll.
//! So the observer finds the call's notes in a thread-local that is set during the poll, and no
//! layer has to know another. Work that a layer moves to another task is not seen.
use std::cell::Cell;
use tr_core::{BreakerState, canonical::Fingerprint};

/// What the events of inner layers add to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// The hash of its idempotency key.
    pub(crate) key_hash: Option<Fingerprint>,
    /// Attempts that ended or were dropped.
    pub(crate) attempts: u32,
    /// An attempt was refused before it got as far as the tool.
    pub(crate) was_refused: bool,
    /// Retries that were announced.
    pub(crate) retries: u32,
    /// Of the breaker that refused an attempt or changed its state.
    pub(crate) breaker: Option<BreakerState>,
    /// The state of the record that answered.
    pub(crate) replayed: Option<&'static str>,
}

thread_local! {
    static CURRENT: Cell<Option<Notes>> = const { Cell::new(None) };
}

impl Notes {
    /// How many attempts the call had: counted, or else guessed from the retries.
    pub(crate) const fn attempts(&self) -> u32 {
        match (self.attempts, self.retries) {
            (0, retries) if !self.was_refused => retries + 1,
            (attempts, _) => attempts,
        }
    }
}

/// Notes what happens until the guard goes.
pub(crate) fn enter(notes: &mut Notes) -> NotesScope<'_> {
    let outer = CURRENT.replace(Some(*notes));
    NotesScope { notes, outer }
}

/// The notes of the call that is being polled here.
pub(crate) fn current() -> Option<Notes> {
    CURRENT.get()
}

/// Whether a call is being polled here that takes notes.
#[inline]
pub(crate) fn are_taken() -> bool {
    CURRENT.get().is_some()
}

/// Adds to the notes of the call that is being polled here, if there is one.
pub(crate) fn note(add: impl FnOnce(&mut Notes)) {
    if let Some(mut notes) = CURRENT.get() {
        add(&mut notes);
        CURRENT.set(Some(notes));
    }
}

pub(crate) struct NotesScope<'n> {
    notes: &'n mut Notes,
    outer: Option<Notes>,
}

impl Drop for NotesScope<'_> {
    fn drop(&mut self) {
        *self.notes = CURRENT.replace(self.outer).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_inside_a_call_has_notes_of_its_own() {
        note(|notes| notes.attempts = 99);
        assert_eq!(current(), None);
        let (mut outer, mut inner) = (Notes::default(), Notes::default());
        {
            let _outer = enter(&mut outer);
            note(|notes| notes.attempts += 1);
            {
                let _inner = enter(&mut inner);
                note(|notes| notes.attempts += 5);
            }
            note(|notes| notes.attempts += 1);
        }
        assert_eq!((outer.attempts, inner.attempts, current()), (2, 5, None));
    }
}
