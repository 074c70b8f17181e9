//! Calls of the model with a store: the checkpoint is stored before the model is called, and the
//! end of the call before the caller gets the answer.
use super::{Unwritten, lock, slot::begun};
use crate::{
    guard::{Watch, watch},
    session::Sessions,
    store::{StoreError, StoreFuture},
};
use std::sync::Arc;
use tr_core::{Observer, SessionAction, WhenStoreFails};

impl Watch {
    /// Makes a checkpoint in the session with this id; once it is written, the model may be called.
    /// `None` if the session cannot be loaded and the model is to be called nevertheless.
    pub(crate) fn begin_durably(
        sessions: Sessions,
        session: Box<str>,
        when: WhenStoreFails,
        observer: Option<Arc<dyn Observer>>,
        told: bool,
    ) -> StoreFuture<'static, Option<Self>> {
        Box::pin(async move {
            let tell = || {
                watch::tell(observer.as_ref(), Some(&session), SessionAction::NotRecorded, 0);
            };
            let begin = |slot| Self::begin_in(&sessions, slot, &session, observer.as_ref(), told);
            let begun = begun(&sessions, &session, when, begin, Self::give_up, tell).await;
            begun.map_err(|(watch, error)| {
                watch.into_iter().for_each(Self::give_up);
                error
            })
        })
    }

    /// Writes how the call ended. After another writer's change, the session stays as that writer
    /// left it; if other changes were lost with it, the next write reports that.
    pub(crate) fn recorded(self) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            let recorded = self.record().await;
            if recorded.is_err() {
                self.tell(SessionAction::NotRecorded, 0);
                self.slot.not_recorded(&self.sessions);
            }
            recorded
        })
    }

    async fn record(&self) -> Result<(), StoreError> {
        let Some(log) = &self.slot.log else { return Ok(()) };
        let batch = lock(&self.slot.session).next_batch();
        let Err(Unwritten { error, .. }) = log.write(&self.slot.session, batch).await else {
            return Ok(());
        };
        if !error.is_conflict() {
            return Err(error);
        }
        let head = log.lost.get().and_then(|lost| lost.head);
        if let Some(owed) = log.owes(error)
            && let Some(log) = &self.sessions.opened(&self.name).await?.log
        {
            *lock(&log.owed) = Some(owed);
        }
        Err(StoreError::conflict(head))
    }
}
