//! Sessions from the store, and what a crash has left in them.
use super::{Log, Remote, lock};
use crate::{
    session::{Session, Sessions, Slot, journal::decode},
    store::{Entry, Revision, StoreError},
};
use std::sync::{Arc, Mutex};

impl Sessions {
    /// A copy of a session as its store has it; `None` if it has none of this id, or there is no
    /// store. Nothing is opened here, nothing is settled, and the copy's changes are kept nowhere.
    ///
    /// # Errors
    /// The store's; [`Unreadable`](crate::store::StoreErrorKind::Unreadable) names the entry.
    ///
    /// # Cancellation
    /// Dropped, it has changed nothing.
    pub async fn stored(&self, id: &str) -> Result<Option<Session>, StoreError> {
        let Some(store) = self.store() else { return Ok(None) };
        let entries = store.load(id).await?;
        if entries.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.set_up(revive(id, &entries)?)))
    }

    /// The session, open: from the store if it is not open here, or if another writer was first.
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
            let slot = self.revived(id, &entries, remote, lost.map(|log| &**log))?;
            let expected = found.as_ref().map(|slot| &slot.session);
            if let Some(opened) = self.put(id, slot, expected) {
                return Ok(opened);
            }
        }
    }

    /// What the entries say, with what a crash has left settled.
    fn revived(
        &self,
        id: &str,
        entries: &[Entry],
        remote: &Arc<Remote>,
        lost: Option<&Log>,
    ) -> Result<Slot, StoreError> {
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
        session.settle_orphans(
            |cycle| cycle.driver() == driver && live.contains(&cycle.id),
            remote.clock.unix_ms(),
        );
        Ok(Slot { session: Arc::new(Mutex::new(session)), log: Some(Arc::new(log)) })
    }
}

/// The session that these entries make.
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
    Session::replay(id, changes).map_err(|error| unreadable(id, last, &error))
}

fn unreadable(id: &str, at: Revision, error: &dyn std::error::Error) -> StoreError {
    StoreError::unreadable(format!("session {id:?}, entry {at}: {error}"))
}
