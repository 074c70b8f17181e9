//! Losses that happen once: armed by the test, triggered by the matching reply.

use std::sync::Mutex;
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
    /// The future resolves when the loss has happened.
    pub(super) fn arm(
        &self,
        name: Option<&str>,
        kept: usize,
        then: Then,
    ) -> impl Future<Output = ()> + use<> {
        let (fired, happened) = oneshot::channel();
        let name = name.map(str::to_owned);
        lock(&self.0).push(Armed { name, kept, then, fired });
        async { happened.await.expect("the loss still may happen") }
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
