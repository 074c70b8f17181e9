//! Losses that happen once: armed by the test, triggered by the matching reply.

use std::{
    future::Future,
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll},
};
use tokio::sync::oneshot;
use tr_core::internal::lock;

/// What a connection does after it lost a part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Then {
    /// It is reset: the client gets an error at once.
    Reset,
    /// Requests still arrive, no reply does; it is reset when the proxy is healed.
    Silence,
}

/// Resolves when the loss has happened. Dropping it changes nothing.
///
/// # Panics
///
/// If that never happens, because the proxy was healed or dropped before.
#[derive(Debug)]
#[must_use = "await it to know that the loss has happened, or drop it"]
pub struct Fired(oneshot::Receiver<()>);

impl Future for Fired {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(|fired| fired.expect("the loss still may happen"))
    }
}

/// The losses that have not happened yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct Losses(Mutex<Vec<Armed>>);

/// The loss of a reply: all bytes after the first `kept`.
#[derive(Debug)]
pub(super) struct Armed {
    /// The command whose reply it waits for; any reply if `None`.
    name: Option<String>,
    pub(super) kept: usize,
    pub(super) then: Then,
    /// Reports that it has happened.
    pub(super) fired: oneshot::Sender<()>,
}

impl Losses {
    pub(super) fn arm(&self, name: Option<&str>, kept: usize, then: Then) -> Fired {
        let (fired, happened) = oneshot::channel();
        let name = name.map(str::to_owned);
        lock(&self.0).push(Armed { name, kept, then, fired });
        Fired(happened)
    }

    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// The loss for the reply to a command of this name, if there is one.
    pub(super) fn take(&self, command: Option<&str>) -> Option<Armed> {
        let mut armed = lock(&self.0);
        let fits = |armed: &Armed| match (&armed.name, command) {
            (None, _) => true,
            (Some(name), Some(command)) => name.eq_ignore_ascii_case(command),
            (Some(_), None) => false,
        };
        let at = armed.iter().position(fits)?;
        Some(armed.remove(at))
    }
}
