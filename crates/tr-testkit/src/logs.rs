//! Captures the logs of one test while other tests run.
use std::{
    io::{self, Write},
    sync::{Arc, Mutex, OnceLock},
};
use tr_core::internal::lock;
use tracing::{Dispatch, dispatcher, subscriber::DefaultGuard};
use tracing_subscriber::Registry;

/// The output of a subscriber of this thread.
///
/// # Example
///
/// ```
/// use tr_testkit::logs::Logs;
/// use tracing_subscriber::fmt;
///
/// let (logs, _listening) = Logs::listen(|logs| fmt().with_writer(move || logs.clone()).finish());
/// tracing::warn!("the store is away");
/// assert!(logs.text().contains("the store is away"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Sets the subscriber that `around` makes for this thread, with a writer to these logs, until
    /// the guard is dropped.
    ///
    /// `tracing` caches for each callsite whether a subscriber is interested; with a single
    /// subscriber, it asks on the first thread that reaches the callsite. That thread may belong to
    /// another test without a subscriber, which would disable the callsite for this test too. So
    /// two more subscribers are kept, which are interested in everything and write nothing.
    pub fn listen<S: Into<Dispatch>>(around: impl FnOnce(Self) -> S) -> (Self, DefaultGuard) {
        static KEPT: OnceLock<[Dispatch; 2]> = OnceLock::new();
        KEPT.get_or_init(|| [(); 2].map(|()| Dispatch::new(Registry::default())));
        let logs = Self::default();
        let guard = dispatcher::set_default(&around(logs.clone()).into());
        (logs, guard)
    }

    /// All of it so far.
    ///
    /// # Panics
    ///
    /// If it is not UTF-8.
    pub fn text(&self) -> String {
        let bytes = lock(&self.0);
        String::from_utf8(bytes.clone()).expect("logs are UTF-8")
    }
}

impl Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
