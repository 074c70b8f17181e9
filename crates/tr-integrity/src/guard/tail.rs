//! The end of a streamed answer, which is still to come.
use super::{
    error::AnswerCutOff,
    model::of_chain,
    take::{Guarded, filtered},
};
use crate::provider::{AnswerScanner, ModelEnd};
use pin_project_lite::pin_project;
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
    }
}

/// Watches a streamed answer's pieces, and settles the call at its end.
///
/// Goes [around](Self::around) a body, or is driven by hand: [`see`](Self::see) each piece, then
/// [`end`](Self::end). Dropped before, it settles the call as a dropped [`WatchedBody`] does.
#[derive(Debug)]
pub struct BodyWatch {
    scanner: AnswerScanner,
    /// Until it is settled.
    call: Option<Guarded>,
}

impl BodyWatch {
    pub(super) fn new(scanner: AnswerScanner, call: Guarded) -> Self {
        Self { scanner, call: Some(call) }
    }

    /// The body, watched.
    #[must_use]
    pub fn around<B>(self, body: B) -> WatchedBody<B> {
        WatchedBody { body, watch: self }
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
    /// [`AnswerCutOff`](crate::AnswerCutOff), or `error` as it is.
    pub fn end(&mut self, error: Option<BoxError>) -> Option<BoxError> {
        let Some(call) = self.call.take_if(|call| call.is_on()) else { return error };
        let end = match (self.scanner.end(), &error) {
            (ModelEnd::Answered | ModelEnd::Failed, Some(error)) => of_chain(&**error),
            (end, _) => end,
        };
        let recovery = call.settle(end);
        match error {
            error if end == ModelEnd::Filtered => Some(filtered(recovery, error)),
            None if self.scanner.is_cut() => Some(AnswerCutOff::new(recovery).into()),
            error => error,
        }
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
        call.settle(end);
    }
}
