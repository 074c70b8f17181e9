//! A running call of the model: however it ends, its checkpoint is settled.
use super::error::ContentFiltered;
use crate::{
    session::{ErrorRecovery, Operation, RecoveryAction, Sessions, Slot},
    store::StoreFuture,
};
use std::{fmt, sync::Arc};
use tr_core::{BoxError, CallInfo, Event, Observer, SessionAction};
use tr_transcript::ModelEnd;

/// A running call of the model; if it is dropped early, it is rolled back.
pub(crate) struct Watch {
    sessions: Sessions,
    slot: Slot,
    name: Box<str>,
    checkpoint: Option<Box<str>>,
    observer: Option<Arc<dyn Observer>>,
}

/// The result of settling a call.
#[derive(Default)]
pub(super) struct Settled {
    /// What was done about a failed call.
    pub(super) recovery: Option<ErrorRecovery>,
    /// Writes the result to the store, if there is one.
    pub(super) record: Option<StoreFuture<'static, ()>>,
}

impl Watch {
    /// Settles abandoned cycles, repairs the session where that is allowed, and makes a checkpoint.
    /// `told` says that the observer already knows of the repair.
    pub(super) fn begin(
        sessions: &Sessions,
        name: &str,
        observer: Option<&Arc<dyn Observer>>,
        told: bool,
    ) -> Self {
        Self::begin_in(sessions, sessions.open_slot(name), name, observer, told)
    }

    pub(crate) fn begin_in(
        sessions: &Sessions,
        slot: Slot,
        name: &str,
        observer: Option<&Arc<dyn Observer>>,
        told: bool,
    ) -> Self {
        let validates = sessions.config().validate_before_call;
        let (checkpoint, repaired) = sessions.work_on_cycle(&slot.session, |session, now| {
            session.recover(now);
            let repaired = validates && session.auto_repair(now);
            (session.checkpoint(Operation::ApiCall, now).id, repaired)
        });
        let watch = Self {
            sessions: sessions.clone(),
            slot,
            name: name.into(),
            checkpoint: Some(checkpoint),
            observer: observer.filter(|observer| observer.enabled()).cloned(),
        };
        if repaired && !told {
            watch.tell(SessionAction::Repaired, 0);
        }
        watch
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(crate) fn session(&self) -> &str {
        &self.name
    }

    /// The model was not called: removes the checkpoint.
    pub(crate) fn give_up(mut self) {
        if let Some(checkpoint) = self.checkpoint.take() {
            self.sessions.work_on_cycle(&self.slot.session, |session, _| {
                session.forget(&checkpoint);
            });
        }
    }

    /// The call has ended.
    pub(super) fn settle(mut self, end: ModelEnd) -> Settled {
        let recovery = if end == ModelEnd::Answered {
            self.commit();
            None
        } else {
            Some(self.fail(end))
        };
        let record = self.slot.log.is_some().then(|| self.recorded());
        Settled { recovery, record }
    }

    fn commit(&mut self) {
        if let Some(checkpoint) = self.checkpoint.take() {
            self.sessions.work_on_cycle(&self.slot.session, |session, now| {
                // A rollback to an earlier checkpoint may have removed this one.
                let _ = session.commit(&checkpoint, now);
            });
        }
    }

    fn fail(&mut self, end: ModelEnd) -> ErrorRecovery {
        let checkpoint = self.checkpoint.take();
        let (recovery, removed) =
            self.sessions.work_on_cycle(&self.slot.session, |session, now| {
                let before = session.transcript().len();
                let recovery = session.handle_error(end, checkpoint.as_deref(), now);
                (recovery, before.saturating_sub(session.transcript().len()))
            });
        self.tell(recovery.action.told(), removed as u64);
        recovery
    }

    pub(crate) fn tell(&self, action: SessionAction, removed: u64) {
        tell(self.observer.as_ref(), Some(&self.name), action, removed);
    }
}

/// Notifies the observer of a change in a session, if it is enabled.
pub(crate) fn tell(
    observer: Option<&Arc<dyn Observer>>,
    session: Option<&str>,
    action: SessionAction,
    removed: u64,
) {
    if let Some(observer) = observer.filter(|observer| observer.enabled()) {
        let mut call = CallInfo::of("model");
        call.session = session;
        observer.on_event(&call, &Event::Session { action, removed });
    }
}

/// If there is a store, the rollback is written with the session's next change.
impl Drop for Watch {
    fn drop(&mut self) {
        if self.checkpoint.is_some() {
            self.fail(ModelEnd::Failed);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("checkpoint", &self.checkpoint).finish_non_exhaustive()
    }
}

/// A call of the model whose answer is being taken.
#[derive(Debug)]
pub struct Guarded {
    is_on: bool,
    /// `None` for a call without a session.
    watch: Option<Watch>,
}

impl Guarded {
    /// The guard is off.
    pub(super) const OFF: Self = Self { is_on: false, watch: None };

    pub(super) const fn on(watch: Option<Watch>) -> Self {
        Self { is_on: true, watch }
    }

    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The call has ended.
    pub(super) fn settle(self, end: ModelEnd) -> Settled {
        self.watch.map_or_else(Settled::default, |watch| watch.settle(end))
    }
}

pub(super) fn filtered(recovery: Option<ErrorRecovery>, cause: Option<BoxError>) -> BoxError {
    // A filter stopped a call without a session.
    let recovery = recovery.unwrap_or_else(|| ErrorRecovery {
        action: RecoveryAction::Escalate,
        message: "Content filter triggered.".into(),
        checkpoint: None,
        details: None,
    });
    ContentFiltered::new(recovery, cause).into()
}
