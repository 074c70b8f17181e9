//! A call of the model on its way: however it ends, its checkpoint is settled.
use crate::{
    provider::ModelEnd,
    session::{ErrorRecovery, Operation, Session, Sessions},
};
use std::{
    fmt,
    sync::{Arc, Mutex},
};
use tr_core::{CallInfo, Event, Observer};

/// A call of the model on its way: dropped before its end, it is rolled back.
pub(super) struct Watch {
    sessions: Sessions,
    session: Arc<Mutex<Session>>,
    name: Box<str>,
    checkpoint: Option<Box<str>>,
    observer: Option<Arc<dyn Observer>>,
}

impl Watch {
    /// Settles what was abandoned before, and makes a checkpoint.
    pub(super) fn begin(
        sessions: &Sessions,
        name: &str,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Self {
        let session = sessions.open(name);
        let checkpoint = sessions.work(&session, |session, now| {
            session.recover(now);
            session.checkpoint(Operation::ApiCall, now).id
        });
        Self {
            sessions: sessions.clone(),
            session,
            name: name.into(),
            checkpoint: Some(checkpoint),
            observer: observer.filter(|observer| observer.enabled()).cloned(),
        }
    }

    pub(super) fn commit(mut self) {
        if let Some(checkpoint) = self.checkpoint.take() {
            self.sessions.work(&self.session, |session, now| {
                // A rollback to an earlier point has taken the checkpoint with it.
                let _ = session.commit(&checkpoint, now);
            });
        }
    }

    pub(super) fn fail(mut self, end: ModelEnd) -> ErrorRecovery {
        self.settle(end)
    }

    fn settle(&mut self, end: ModelEnd) -> ErrorRecovery {
        let checkpoint = self.checkpoint.take();
        let (recovery, removed) = self.sessions.work(&self.session, |session, now| {
            let before = session.transcript().len();
            let recovery = session.handle_error(end, checkpoint.as_deref(), now);
            (recovery, before.saturating_sub(session.transcript().len()))
        });
        if let Some(observer) = &self.observer {
            let call = CallInfo { session: Some(&self.name), ..CallInfo::of("model") };
            let action = recovery.action.name();
            observer.on_event(&call, &Event::Session { action, removed: removed as u64 });
        }
        recovery
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.checkpoint.is_some() {
            self.settle(ModelEnd::Failed);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("checkpoint", &self.checkpoint).finish_non_exhaustive()
    }
}
