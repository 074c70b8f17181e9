//! A running call of the model: however it ends, its checkpoint is settled.
use super::error::{AnswerCutOff, ContentFiltered};
use crate::{
    session::{ErrorRecovery, Operation, RecoveryAction, Sessions, Slot},
    store::StoreFuture,
};
use pin_project_lite::pin_project;
use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};
use tr_core::{BoxError, CallInfo, Event, Observer, SessionAction, debug_parts};
use tr_transcript::{AnswerScanner, ModelEnd};

/// A running call of the model; if it is dropped early, it is rolled back.
pub(crate) struct Watch {
    pub(crate) sessions: Sessions,
    pub(crate) slot: Slot,
    pub(crate) name: Box<str>,
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
    pub(crate) fn begin_in(
        sessions: &Sessions,
        slot: Slot,
        name: &str,
        observer: Option<&Arc<dyn Observer>>,
        told: bool,
    ) -> Self {
        let validates = sessions.config().validate_before_call;
        let (checkpoint, repaired) = sessions.work_on_cycle(&slot, |session, now| {
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

    /// The model was not called: removes the checkpoint.
    pub(crate) fn give_up(mut self) {
        if let Some(checkpoint) = self.checkpoint.take() {
            self.sessions.work_on_cycle(&self.slot, |session, _| {
                session.forget(&checkpoint);
            });
        }
    }

    /// The call has ended.
    pub(super) fn settle(mut self, end: ModelEnd) -> Settled {
        let recovery = if end == ModelEnd::Answered {
            if let Some(checkpoint) = self.checkpoint.take() {
                self.sessions.work_on_cycle(&self.slot, |session, now| {
                    // A rollback to an earlier checkpoint may have removed this one.
                    let _ = session.commit(&checkpoint, now);
                });
            }
            None
        } else {
            Some(self.fail(end))
        };
        let record = self.slot.log.is_some().then(|| self.recorded());
        Settled { recovery, record }
    }

    fn fail(&mut self, end: ModelEnd) -> ErrorRecovery {
        let checkpoint = self.checkpoint.take();
        let (recovery, removed) = self.sessions.work_on_cycle(&self.slot, |session, now| {
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

debug_parts! { Watch, |it| checkpoint = it.checkpoint }

/// A call of the model whose answer is being taken.
#[derive(Debug)]
pub struct Guarded {
    pub(super) is_on: bool,
    /// `None` for a call without a session.
    watch: Option<Watch>,
}

impl Guarded {
    /// The guard is off.
    pub(super) const OFF: Self = Self { is_on: false, watch: None };

    pub(super) const fn on(watch: Option<Watch>) -> Self {
        Self { is_on: true, watch }
    }

    /// The call has ended.
    pub(super) fn settle(self, end: ModelEnd) -> Settled {
        self.watch.map_or_else(Settled::default, |watch| watch.settle(end))
    }
}

pub(super) fn filtered(recovery: Option<ErrorRecovery>, cause: Option<BoxError>) -> BoxError {
    // A filter stopped a call without a session.
    let recovery = recovery.unwrap_or_else(|| {
        ErrorRecovery::new(RecoveryAction::Escalate, "Content filter triggered.")
    });
    ContentFiltered::new(recovery, cause).into()
}

pin_project! {
    /// A streamed answer: its pieces pass unchanged, and its end settles the session.
    ///
    /// An [`http_body::Body`](https://docs.rs/http-body) with the feature `http`, a
    /// [`futures_core::Stream`](https://docs.rs/futures-core) of chunks with the feature `stream`.
    ///
    /// When the answer ends well, its checkpoint is committed before the end is returned. Otherwise
    /// the session is rolled back to its checkpoint, and the last item is an error:
    /// [`ContentFiltered`](crate::ContentFiltered), or [`AnswerCutOff`](crate::AnswerCutOff) if the
    /// body itself reports no error. A user interface that shows pieces as they arrive should
    /// remove them on this error, because they cannot be recalled.
    ///
    /// Dropped after the provider's last event, it settles the call as that event says. Dropped
    /// earlier, the call counts as cancelled: the session is rolled back to its checkpoint.
    #[derive(Debug)]
    pub struct WatchedBody<B> {
        #[pin]
        pub(super) body: B,
        pub(super) watch: BodyWatch,
        // The last item, while the store is writing the end.
        pub(super) last: Option<BoxError>,
        pub(super) is_done: bool,
    }
}

#[cfg(any(feature = "http", feature = "stream"))]
impl<B> WatchedBody<B> {
    /// The `next` piece of the body, or the last item, once the end is recorded. Of a piece, `bytes` are watched.
    pub(super) fn poll_piece<T, E: Into<BoxError>>(
        self: std::pin::Pin<&mut Self>,
        cx: &mut Context<'_>,
        next: impl FnOnce(std::pin::Pin<&mut B>, &mut Context<'_>) -> Poll<Option<Result<T, E>>>,
        bytes: impl FnOnce(&T) -> Option<&[u8]>,
    ) -> Poll<Option<Result<T, BoxError>>> {
        let this = self.project();
        if !this.watch.is_over() {
            let error = match ready!(next(this.body, cx)) {
                Some(Ok(piece)) => {
                    if let Some(bytes) = bytes(&piece) {
                        this.watch.see(bytes);
                    }
                    return Poll::Ready(Some(Ok(piece)));
                }
                end => end.and_then(Result::err).map(Into::into),
            };
            *this.last = this.watch.end(error);
        }
        ready!(this.watch.poll_recorded(cx));
        *this.is_done = true;
        Poll::Ready(this.last.take().map(Err))
    }
}

/// Watches a streamed answer's pieces, and settles the call at its end.
///
/// Wraps a body with [`around`](Self::around), or is called directly: [`see`](Self::see) for each
/// piece, then [`end`](Self::end). Dropped before that, it settles the call as a dropped
/// [`WatchedBody`] does.
pub struct BodyWatch {
    scanner: AnswerScanner,
    /// `None` once it is settled.
    call: Option<Guarded>,
    /// The end, while the store is writing it. The mutex is never locked: it only makes the body
    /// `Sync`.
    record: Mutex<Option<StoreFuture<'static, ()>>>,
}

impl BodyWatch {
    pub(super) fn new(scanner: AnswerScanner, call: Guarded) -> Self {
        Self { scanner, call: Some(call), record: Mutex::default() }
    }

    /// Wraps the body.
    #[must_use]
    pub fn around<B>(self, body: B) -> WatchedBody<B> {
        WatchedBody { body, watch: self, last: None, is_done: false }
    }

    /// Whether the call is settled: no more pieces are returned.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.call.is_none()
    }

    /// Whether the pieces are watched.
    #[cfg(feature = "http")]
    pub(super) fn is_guarded(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.is_on)
    }

    /// Reads the next piece.
    pub fn see(&mut self, piece: &[u8]) {
        if self.call.as_ref().is_some_and(|call| call.is_on) {
            self.scanner.push(piece);
        }
    }

    /// Settles the call: the body has ended, or failed with `error`. Returns the last item for the
    /// caller: [`ContentFiltered`](crate::ContentFiltered), [`AnswerCutOff`](crate::AnswerCutOff),
    /// or `error` unchanged. If the sessions have a store, return that item after
    /// [`poll_recorded`](Self::poll_recorded) is ready.
    pub fn end(&mut self, error: Option<BoxError>) -> Option<BoxError> {
        let Some(call) = self.call.take_if(|call| call.is_on) else { return error };
        let end = match (self.scanner.end(), &error) {
            (ModelEnd::Answered | ModelEnd::Failed, Some(error)) => of_chain(&**error),
            (end, _) => end,
        };
        let Settled { recovery, record } = call.settle(end);
        self.record = Mutex::new(record);
        match error {
            error if end == ModelEnd::Filtered => Some(filtered(recovery, error)),
            None if self.scanner.is_cut() => Some(AnswerCutOff::new(recovery).into()),
            error => error,
        }
    }

    /// Writes the result of [`end`](Self::end) to the sessions' store; ready at once if there is
    /// none. If the store fails, the observer is notified, and the result is written with the
    /// session's next change.
    pub fn poll_recorded(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let record = self.record.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(recording) = record {
            let _ = ready!(recording.as_mut().poll(cx));
            *record = None;
        }
        Poll::Ready(())
    }
}

debug_parts! { BodyWatch, |it| call = it.call }

/// The caller dropped the body. Clients stop at the provider's last event, and so may not read the
/// body's end.
impl Drop for BodyWatch {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let end = match self.scanner.end() {
            ModelEnd::Answered if !self.scanner.is_over() => ModelEnd::Failed,
            end => end,
        };
        drop(call.settle(end)); // Written with the session's next change.
    }
}

/// Judges by the first error of the chain with a known text.
pub(super) fn of_chain(error: &(dyn std::error::Error + 'static)) -> ModelEnd {
    let mut ends = tr_core::causes(error).map(|cause| ModelEnd::of_error(&cause.to_string()));
    ends.find(|end| *end != ModelEnd::Failed).unwrap_or(ModelEnd::Failed)
}
