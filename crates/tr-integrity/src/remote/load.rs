//! Loads sessions from the store, and settles cycles that a crash interrupted.
use super::{Log, Remote, lock};
use crate::{
    session::{LoadNote, Session, Sessions, Slot, ToolCycleTransaction, journal::decode},
    store::{Entry, Revision, StoreError},
};
use std::sync::{Arc, Mutex};
use tr_core::SessionAction;

impl Sessions {
    /// A copy of a session as it is stored; `None` if the store does not have it, or there is no
    /// store. Opens and settles nothing, and changes to the copy are not stored.
    ///
    /// # Errors
    /// The store's; [`Unreadable`](crate::store::StoreErrorKind::Unreadable) names the entry.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    pub async fn stored(&self, id: &str) -> Result<Option<Session>, StoreError> {
        let Some(store) = self.store() else { return Ok(None) };
        let entries = store.load(id).await?;
        if entries.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.set_up(revive(id, &entries)?)))
    }

    /// The open session; loads it from the store if it is not open or another writer changed it.
    pub(crate) async fn opened(&self, id: &str) -> Result<Slot, StoreError> {
        loop {
            let found = self.slot(id);
            let lost = match found.as_ref().map(|slot| &slot.log) {
                Some(Some(log)) if log.is_lost() => Some(log),
                Some(_) => return Ok(found.expect("it was found")),
                None => None,
            };
            let Some(remote) = self.remote() else { return Ok(self.open_slot(id)) };
            let entries = remote.store.load(id).await?;
            let (slot, done) = self.revived(id, &entries, remote, lost.map(|log| &**log))?;
            if let Some(opened) = self.put(id, slot, found.as_ref()) {
                self.tell_loaded(id, &done);
                return Ok(opened);
            }
        }
    }

    /// Replays the entries, settles interrupted cycles, and repairs the session where that is
    /// allowed; also returns what was done.
    fn revived(
        &self,
        id: &str,
        entries: &[Entry],
        remote: &Arc<Remote>,
        lost: Option<&Log>,
    ) -> Result<(Slot, Vec<LoadNote>), StoreError> {
        let head = entries.last().map(|last| last.revision);
        let log = Log::new(id, Arc::clone(remote), head);
        let mut session = match head {
            None => self.fresh(id),
            Some(_) => self.set_up(revive(id, entries)?),
        };
        session.keep_changes(head.is_some());
        if let Some(lost) = lost {
            *lock(&log.live) = lock(&lost.live).clone();
        }
        let live = lock(&log.live).clone();
        let driver = remote.driver;
        let now = remote.clock.unix_ms();
        let is_live =
            |cycle: &ToolCycleTransaction| cycle.driver == driver && live.contains(&cycle.id);
        session.note_verbose("load", None, now);
        let mut done = session.settle_orphans(is_live, now);
        if session.auto_repair(now) {
            done.push((None, SessionAction::Repaired));
        }
        let slot = Slot { session: Arc::new(Mutex::new(session)), log: Some(Arc::new(log)) };
        Ok((slot, done))
    }
}

/// Replays these entries.
pub(super) fn revive(id: &str, entries: &[Entry]) -> Result<Session, StoreError> {
    let mut changes = Vec::new();
    let mut next = None;
    for Entry { revision, body, .. } in entries {
        if next.is_some_and(|next| next != revision.number) {
            let gap = format!("session {id:?}: entry {revision} does not follow the one before it");
            return Err(StoreError::unreadable(gap));
        }
        next = Some(revision.number + 1);
        changes.extend(decode(id, *revision, body).map_err(|e| unreadable(id, *revision, &e))?);
    }
    let last = entries[entries.len() - 1].revision;
    let mut session = Session::replay(id, changes).map_err(|error| unreadable(id, last, &error))?;
    entries.iter().for_each(|entry| session.holds_entry(entry.revision));
    Ok(session)
}

fn unreadable(id: &str, at: Revision, error: &str) -> StoreError {
    StoreError::unreadable(format!("session {id:?}, entry {at}: {error}"))
}
