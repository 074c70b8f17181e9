//! The wait for the readiness of the inner service, before there is a request.
use crate::future::Limit;
use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    task::coop,
    time::{Instant, Sleep, sleep},
};

/// How long the inner service was not ready, since the last call.
#[derive(Debug)]
pub(crate) enum Wait {
    /// It is not ready yet.
    Since(Instant, Pin<Box<Sleep>>),
    /// It became ready after this long.
    Took(Duration),
    /// It took too long.
    Over,
}

impl Wait {
    /// Ready once the wait takes longer than `after`; without that, at once.
    #[cold]
    pub(crate) fn poll(
        wait: &mut Option<Box<Self>>,
        after: Option<Duration>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let Some(after) = after else { return Poll::Ready(()) };
        let wait = wait
            .get_or_insert_with(|| Box::new(Self::Since(Instant::now(), Box::pin(sleep(after)))));
        match &mut **wait {
            Self::Since(_, timer) => {
                let timer = Pin::new(&mut coop::unconstrained(timer.as_mut())).poll(cx);
                timer.map(|()| **wait = Self::Over)
            }
            // What is ready stays so until it is called.
            Self::Took(_) | Self::Over => Poll::Ready(()),
        }
    }

    /// The inner service is ready: what counts for the next call.
    #[cold]
    pub(crate) fn ended(mut self: Box<Self>) -> Option<Box<Self>> {
        match *self {
            Self::Since(since, _) => *self = Self::Took(since.elapsed()),
            Self::Took(_) => {}
            Self::Over => return None,
        }
        Some(self)
    }

    /// The limit of an attempt that may take `after`, this wait included.
    #[cold]
    pub(crate) fn limit(&self, after: Option<Duration>) -> Limit {
        match (self, after) {
            (_, None) => Limit::None,
            (Self::Took(took), Some(after)) => {
                Limit::At(Instant::now() + after.saturating_sub(*took), after)
            }
            (Self::Over, Some(after)) => Limit::Over(after),
            (Self::Since(..), Some(after)) => Limit::After(after),
        }
    }
}
