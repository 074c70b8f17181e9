//! Operations on stored sessions outside of calls.
use super::lock;
use crate::{
    session::{Session, Sessions},
    store::{SessionStore, StoreError},
};
use std::sync::Arc;
use tr_transcript::ValidationResult;

impl Sessions {
    /// The store, if there is one.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<dyn SessionStore>> {
        self.remote().map(|remote| &remote.store)
    }

    /// Opens a session from its store, if it is not open yet or another writer changed it. Without
    /// a store, or where the store does not have it, opens a new one.
    ///
    /// Settles cycles whose process died: those whose tool did not start are removed, others are
    /// recorded as "outcome unknown, may have run", according to the
    /// [`mode`](crate::SessionsBuilder::mode). With
    /// [`auto_repair`](crate::Layer0Config::auto_repair) also repairs what validation finds. Both
    /// changes are written with the session's next change, and the [observers](Self::observe) are
    /// notified.
    ///
    /// Returns the validation of the opened session. An invalid session is loaded nevertheless:
    /// [`Session::plan`] offers the repair.
    ///
    /// # Errors
    /// The store's; [`Unreadable`](crate::store::StoreErrorKind::Unreadable) names the entry.
    ///
    /// # Cancellation
    /// Dropping the future leaves the session unchanged.
    pub async fn load(&self, id: &str) -> Result<ValidationResult, StoreError> {
        let slot = self.opened(id).await?;
        let validation = lock(&slot.session).validate();
        Ok(validation)
    }

    /// Opens a session, runs `work` on it as [`with`](Self::with) does, and writes the changes.
    ///
    /// # Errors
    /// The store's. After a [`Conflict`](crate::store::StoreErrorKind::Conflict) no change was made:
    /// call it again to change the current session. After other errors the change is made in memory,
    /// and the next call that writes stores it.
    ///
    /// # Cancellation
    /// A dropped future has run `work` or not; the next call that writes stores its changes.
    ///
    /// ```
    /// use tr_integrity::{Format, Sessions, store::Memory};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tr_core::BoxError> {
    /// let store = Memory::new();
    /// let sessions = Sessions::builder(Format::OpenAiChat).store(store.clone()).build()?;
    /// let message = Format::OpenAiChat.read(r#"{"role":"user","content":"hi"}"#)?;
    /// sessions.change("s-1", |session, _now| session.push(message)).await?;
    ///
    /// // Another process, later:
    /// let sessions = Sessions::builder(Format::OpenAiChat).store(store).build()?;
    /// sessions.load("s-1").await?;
    /// assert_eq!(sessions.with("s-1", |session, _now| session.transcript().len()), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn change<T>(
        &self,
        id: &str,
        work: impl FnOnce(&mut Session, u64) -> T,
    ) -> Result<T, StoreError> {
        let slot = self.opened(id).await?;
        if let Some(log) = &slot.log {
            log.tell()?;
        }
        let done = self.work(&slot, work);
        slot.flush().await?;
        Ok(done)
    }

    /// Writes pending changes of a session: those made by [`with`](Self::with), or while the store
    /// failed. Returns at once if there are none, or no store.
    ///
    /// # Errors
    /// The store's. A [`Conflict`](crate::store::StoreErrorKind::Conflict) is reported once: the
    /// changes in memory since the last success are gone; [`load`](Self::load) the session then.
    ///
    /// # Cancellation
    /// The next call that writes sends unconfirmed changes again.
    pub async fn flush(&self, id: &str) -> Result<(), StoreError> {
        match self.slot(id) {
            Some(slot) => slot.flush().await,
            None => Ok(()),
        }
    }

    /// Rewrites a session's log as one entry without rolled-back changes, so that loading takes
    /// time proportional to the session's length. Never done automatically.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancellation
    /// A dropped future has done all of it or nothing.
    pub async fn compact(&self, id: &str) -> Result<(), StoreError> {
        let slot = self.opened(id).await?;
        let Some(log) = &slot.log else { return Ok(()) };
        let mut writer = log.writer.lock().await;
        loop {
            log.send(&mut writer, &slot.session).await?;
            let base = {
                let session = lock(&slot.session);
                (!session.has_changes()).then(|| session.base())
            };
            match (base, writer.head) {
                (None, _) => drop(log.take(&mut writer, &slot.session)),
                (Some(_), None) => return Ok(()),
                (Some(base), Some(head)) => {
                    let base = log.entry(head, &base);
                    return log.remote.store.compact(id, &base).await;
                }
            }
        }
    }

    /// Deletes a session, in memory and in the store; returns whether the store had it. Running
    /// calls in it get a conflict.
    ///
    /// # Errors
    /// The store's; the session is removed from memory even then.
    ///
    /// # Cancellation
    /// A dropped future has done all of it or nothing.
    pub async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let was_open = self.forget(id);
        match self.store() {
            Some(store) => store.delete(id).await,
            None => Ok(was_open),
        }
    }
}
