//! Writes an open session's changes to its log.
use super::TRIES;
use crate::{
    session::{Session, Sessions, Slot},
    store::StoreError,
};
use tr_core::WhenStoreFails;

/// Begins a call in its session; once that is written, the call may be made. `None` if the session cannot be loaded and
/// the call is to be made nevertheless. `again` discards what another writer's change has undone. On failure `tell` is
/// called, and what was begun comes back with the error.
pub(super) async fn begun<B>(
    sessions: &Sessions,
    session: &str,
    when: WhenStoreFails,
    begin: impl Fn(Slot) -> B,
    again: impl Fn(B),
    tell: impl Fn(),
) -> Result<Option<B>, (Option<B>, StoreError)> {
    let is_run = when == WhenStoreFails::Run;
    let mut tries = 1;
    loop {
        let slot = match sessions.opened(session).await {
            Ok(slot) => slot,
            Err(error) => {
                tell();
                return if is_run { Ok(None) } else { Err((None, error)) };
            }
        };
        let begun = begin(slot.clone());
        let Err(error) = slot.flush().await else { return Ok(Some(begun)) };
        let is_conflict = error.is_conflict();
        // No other change was lost: retry with the session as it is now.
        if is_conflict && tries < TRIES && slot.is_alone() {
            tries += 1;
            again(begun);
            continue;
        }
        tell();
        slot.not_recorded(sessions);
        // Made in memory; written as soon as the store is back.
        return if is_run && !is_conflict { Ok(Some(begun)) } else { Err((Some(begun), error)) };
    }
}

impl Slot {
    /// Writes pending changes.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        match &self.log {
            Some(log) => log.flush(&self.session).await,
            None => Ok(()),
        }
    }

    /// Notes that the store failed; the changes are written with the next one.
    pub(super) fn not_recorded(&self, sessions: &Sessions) {
        let note = |session: &mut Session, now| session.note("not_recorded", None, None, now);
        sessions.work_on_cycle(self, note);
    }

    /// Whether a lost copy held no changes except those that its calls make again.
    pub(super) fn is_alone(&self) -> bool {
        let lost = self.log.as_ref().and_then(|log| log.lost.get());
        lost.is_some_and(|lost| !lost.with_more)
    }
}
