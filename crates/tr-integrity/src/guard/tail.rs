//! The end of a streamed answer, which is still to come.
use super::{
    error::AnswerCutOff,
    model::of_chain,
    take::{Guarded, filtered},
    watch::Settled,
};
use crate::{
    provider::{AnswerScanner, ModelEnd},
    store::StoreFuture,
};
use pin_project_lite::pin_project;
use std::{
    fmt,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};
use tr_core::BoxError;

pin_project! {
    /// A streamed answer on its way: its pieces pass untouched, and its end settles the session.
    ///
    /// An [`http_body::Body`](https://docs.rs/http-body) with the feature `http`, a
    /// [`futures_core::Stream`](https://docs.rs/futures-core) of chunks with the feature `stream`.
    ///
    /// When the answer ends well, its checkpoint is committed before the end is handed on. When it
    /// does not, the session is back at its checkpoint, and the last item says so:
    /// [`ContentFiltered`](crate::ContentFiltered), or [`AnswerCutOff`](crate::AnswerCutOff) where
    /// nothing else would tell. What was passed on before cannot be called back: whoever shows an
    /// answer as it comes takes it back when this error comes.
    ///
    /// Dropped behind the provider's last event, it settles the call as that event says. Dropped
    /// before, the call was cancelled: the session goes back to its checkpoint.
    #[derive(Debug)]
    pub struct WatchedBody<B> {
        #[pin]
        pub(super) body: B,
        pub(super) watch: BodyWatch,
        // The last item, while the end is written to the store.
        pub(super) last: Option<BoxError>,
        pub(super) is_done: bool,
    }
}

/// Watches a streamed answer's pieces, and settles the call at its end.
///
/// Goes [around](Self::around) a body, or is driven by hand: [`see`](Self::see) each piece, then
/// [`end`](Self::end). Dropped before, it settles the call as a dropped [`WatchedBody`] does.
pub struct BodyWatch {
    scanner: AnswerScanner,
    /// Until it is settled.
    call: Option<Guarded>,
    /// The end, on its way to the store. Never locked: it makes the body `Sync`.
    record: Mutex<Option<StoreFuture<'static, ()>>>,
}

impl BodyWatch {
    pub(super) fn new(scanner: AnswerScanner, call: Guarded) -> Self {
        Self { scanner, call: Some(call), record: Mutex::default() }
    }

    /// The body, watched.
    #[must_use]
    pub fn around<B>(self, body: B) -> WatchedBody<B> {
        WatchedBody { body, watch: self, last: None, is_done: false }
    }

    /// Whether the call is settled: nothing more is handed on.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.call.is_none()
    }

    /// Whether the pieces are watched.
    #[cfg(feature = "http")]
    pub(super) fn is_guarded(&self) -> bool {
        self.call.as_ref().is_some_and(Guarded::is_on)
    }

    /// Looks at what came next.
    pub fn see(&mut self, piece: &[u8]) {
        if self.call.as_ref().is_some_and(Guarded::is_on) {
            self.scanner.push(piece);
        }
    }

    /// Settles the call: the body has come to its end, or failed with `error`. What is to be
    /// handed on as the last item: [`ContentFiltered`](crate::ContentFiltered),
    /// [`AnswerCutOff`](crate::AnswerCutOff), or `error` as it is. Where the sessions have a store,
    /// hand it on once that [has it](Self::poll_recorded).
    pub fn end(&mut self, error: Option<BoxError>) -> Option<BoxError> {
        let Some(call) = self.call.take_if(|call| call.is_on()) else { return error };
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

    /// Writes what [`end`](Self::end) has settled to the sessions' store, if there is one; at once
    /// ready otherwise. If the store fails, an observer is told, and it is written with the
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

impl fmt::Debug for BodyWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyWatch").field("call", &self.call).finish_non_exhaustive()
    }
}

/// The caller is gone. Clients stop at the provider's last event, and so may miss the body's end.
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
