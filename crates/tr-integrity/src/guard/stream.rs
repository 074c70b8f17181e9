//! Streams of chunks (feature `stream`).
use super::{
    model::BodyOf,
    watch::{BodyWatch, WatchedBody},
};
use futures_core::Stream;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tr_core::{BoxError, DefaultPolicy};

/// A response that is a stream of an answer's chunks, and nothing else: with the feature `stream`,
/// [`DefaultPolicy`] supports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunks<S>(
    /// The stream: of `Result<T, E>`, where `T` is a chunk's bytes.
    pub S,
);

impl<S> BodyOf<Chunks<S>> for DefaultPolicy {
    type Watched = WatchedBody<S>;

    fn watched(&self, response: Chunks<S>, watch: BodyWatch) -> WatchedBody<S> {
        watch.around(response.0)
    }
}

impl<S, T, E> Stream for WatchedBody<S>
where
    S: Stream<Item = Result<T, E>>,
    T: AsRef<[u8]>,
    E: Into<BoxError>,
{
    type Item = Result<T, BoxError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_piece(cx, S::poll_next, |chunk| Some(chunk.as_ref()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.body.size_hint();
        // The last item may be an added error.
        (least, most.and_then(|most| most.checked_add(1)))
    }
}
