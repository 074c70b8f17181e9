//! Writes an open session's changes to its log.
use crate::{
    session::{Session, Sessions, Slot},
    store::StoreError,
};

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
        sessions.work_on_cycle(&self.session, note);
    }

    /// Whether a lost copy held no changes except those that its calls make again.
    pub(super) fn is_alone(&self) -> bool {
        let lost = self.log.as_ref().and_then(|log| log.lost.get());
        lost.is_some_and(|lost| !lost.with_more)
    }
}
