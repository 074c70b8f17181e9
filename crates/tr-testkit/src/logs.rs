//! What one test logs, while the tests beside it log too.
use std::{
    io::{self, Write},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use tracing::{Dispatch, dispatcher, subscriber::DefaultGuard};
use tracing_subscriber::Registry;

/// What a subscriber of this thread has written.
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
    /// Gives a writer to the subscriber that `around` makes, which then listens on this thread until the guard goes.
    ///
    /// `tracing` asks once for each place in the code whether anybody listens to it, and of one subscriber alone it
    /// asks on the thread that comes by first. That may be another test's, where nobody listens, and the place would be
    /// silent in this test too. So two more are kept that want all and write nothing.
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
    /// If it is no UTF-8.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8(bytes.clone()).expect("logs are UTF-8")
    }
}

impl Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
