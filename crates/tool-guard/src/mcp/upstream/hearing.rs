//! What is heard after a message was posted.
use super::{
    heard::{Heard, Posted},
    posting::Exchange,
    shared::Shared,
};
use futures_util::{Stream, stream};
use hyper::Uri;
use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

/// What is heard after a message was posted.
pub(crate) struct Hearing {
    heard: Pin<Box<dyn Stream<Item = Heard> + Send>>,
    is_sent: Arc<AtomicBool>,
}

impl Hearing {
    pub(super) fn of(shared: Arc<Shared>, uri: Uri, posted: Posted) -> Self {
        let exchange = Exchange::new(shared, uri, posted);
        let is_sent = exchange.is_sent.clone();
        let heard = stream::unfold(exchange, |mut exchange| async move {
            Some((exchange.next().await?, exchange))
        });
        Self { heard: Box::pin(heard), is_sent }
    }

    /// Whether the first byte of the message may have left: not during its preflight.
    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent.load(Ordering::Relaxed)
    }
}

impl Stream for Hearing {
    type Item = Heard;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Heard>> {
        self.heard.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Hearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hearing").finish_non_exhaustive()
    }
}
