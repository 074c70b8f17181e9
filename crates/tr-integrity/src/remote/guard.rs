//! Calls of the model over a store: the checkpoint is there before the model is called, and what
//! became of it before the caller has its answer.
use super::{TRIES, lock};
use crate::{
    cycle::WhenStoreFails,
    guard::{Watch, watch},
    session::Sessions,
    store::{StoreError, StoreFuture},
};
use std::sync::Arc;
use tr_core::{Observer, SessionAction};

impl Watch {
    /// Makes a checkpoint in the session of this id; once it is written, the model may be called.
    /// `None` if the session cannot be had, and the model is to be called all the same.
    pub(crate) fn begin_durably(
        sessions: Sessions,
        session: Box<str>,
        when: WhenStoreFails,
        observer: Option<Arc<dyn Observer>>,
        told: bool,
    ) -> StoreFuture<'static, Option<Self>> {
        Box::pin(async move {
            let mut tries = 1;
            loop {
                let slot = match sessions.opened(&session).await {
                    Ok(slot) => slot,
                    Err(error) => {
                        let action = SessionAction::NotRecorded;
                        watch::tell(observer.as_ref(), Some(&session), action, 0);
                        return if when == WhenStoreFails::Run { Ok(None) } else { Err(error) };
                    }
                };
                let watch = Self::begin_in(&sessions, slot, &session, observer.as_ref(), told);
                let Err(error) = watch.slot().flush().await else { return Ok(Some(watch)) };
                // Nothing else was lost: the session as it is now may do as well.
                if error.is_conflict() && tries < TRIES && watch.slot().is_alone() {
                    tries += 1;
                    watch.give_up();
                    continue;
                }
                watch.tell(SessionAction::NotRecorded, 0);
                watch.slot().not_recorded(&sessions);
                // It is made here, and written as soon as the store is back.
                if !error.is_conflict() && when == WhenStoreFails::Run {
                    return Ok(Some(watch));
                }
                watch.give_up();
                return Err(error);
            }
        })
    }

    /// Writes how the call ended. If another writer was first, the session is as that has left it,
    /// and who lost changes of their own with it is told at their next.
    pub(crate) fn recorded(self) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            let recorded = self.record().await;
            if recorded.is_err() {
                self.tell(SessionAction::NotRecorded, 0);
                self.slot().not_recorded(self.sessions());
            }
            recorded
        })
    }

    async fn record(&self) -> Result<(), StoreError> {
        let Some(log) = &self.slot().log else { return Ok(()) };
        let Err(error) = log.write(&self.slot().session).await else { return Ok(()) };
        if !error.is_conflict() {
            return Err(error);
        }
        let head = log.lost.get().and_then(|lost| lost.head);
        if let Some(owed) = log.owes(error)
            && let Some(log) = &self.sessions().opened(self.session()).await?.log
        {
            *lock(&log.owed) = Some(owed);
        }
        Err(StoreError::conflict(head))
    }
}
