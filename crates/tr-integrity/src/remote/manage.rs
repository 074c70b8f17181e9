//! What is done with sessions that have a store, beside calls.
use super::lock;
use crate::{
    session::{Session, Sessions},
    store::{SessionStore, StoreError},
    validate::ValidationResult,
};
use std::sync::Arc;

impl Sessions {
    /// The store, if there is one.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<dyn SessionStore>> {
        self.remote().map(|remote| &remote.store)
    }

    /// Opens a session as its store has it, if it is not open yet, or if another writer was first;
    /// without a store, or where it has none of this id, a new one.
    ///
    /// Cycles whose process died are settled: nothing is left of those whose tool was not started,
    /// others are recorded as "outcome unknown, may have run", by the
    /// [`mode`](crate::SessionsBuilder::mode). With [`auto_repair`](crate::Layer0Config::auto_repair)
    /// what validation finds is repaired. Both are written with the session's next change, and told
    /// to the [observers](Self::observe).
    ///
    /// Gives the validation of the session as it is open then. A fault does not keep it from
    /// loading: [`Session::plan`] offers the repair.
    ///
    /// # Errors
    /// The store's; [`Unreadable`](crate::store::StoreErrorKind::Unreadable) names the entry.
    ///
    /// # Cancellation
    /// Dropped, it leaves the session as it was.
    pub async fn load(&self, id: &str) -> Result<ValidationResult, StoreError> {
        let slot = self.opened(id).await?;
        let validation = lock(&slot.session).validate();
        Ok(validation)
    }

    /// Opens a session, does something with it as [`with`](Self::with) does, and writes it.
    ///
    /// # Errors
    /// The store's. After a [`Conflict`](crate::store::StoreErrorKind::Conflict) nothing was done:
    /// do it again, and it is done to the session as it is now. After others it is done here, and
    /// written by the next call that writes.
    ///
    /// # Cancellation
    /// Dropped, it has done its work or not; what was done is written by the next call that writes.
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
        let done = self.work(&slot.session, work);
        slot.flush().await?;
        Ok(done)
    }

    /// Writes what was done to a session and is not written yet: by [`with`](Self::with), or while
    /// the store was away. Ends at once if that is nothing, or there is no store.
    ///
    /// # Errors
    /// The store's. A [`Conflict`](crate::store::StoreErrorKind::Conflict) says once that what was
    /// done here since the last success is gone; [`load`](Self::load) the session then.
    ///
    /// # Cancellation
    /// What was sent is sent again by the next call that writes.
    pub async fn flush(&self, id: &str) -> Result<(), StoreError> {
        match self.slot(id) {
            Some(slot) => slot.flush().await,
            None => Ok(()),
        }
    }

    /// Takes from the store what a session's rollbacks have left behind, and gathers its changes
    /// in one entry, so that it loads as fast as its length allows. Never done by itself.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancellation
    /// It is done or not.
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

    /// Forgets a session, here and in the store; whether the store had it. Calls that are on their
    /// way in it find a conflict.
    ///
    /// # Errors
    /// The store's; it is forgotten here even then.
    ///
    /// # Cancellation
    /// It is done or not.
    pub async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let was_open = self.forget(id);
        match self.store() {
            Some(store) => store.delete(id).await,
            None => Ok(was_open),
        }
    }
}
