//! Running things beside each other, and runtimes to do it on.
use std::time::Duration;
use tokio::{
    runtime::{Builder, Runtime},
    task::{JoinHandle, yield_now},
    time::timeout,
};

/// After this long, real time, whatever is waited for does not come.
const PATIENCE: Duration = Duration::from_secs(10);

/// A runtime by the real clock, which all subjects know.
pub(crate) fn real() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

/// A runtime whose clock stands still until there is nothing else to do.
pub(crate) fn paused() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_time().start_paused(true).build()
}

/// Starts something, and lets it get as far as it can.
pub(crate) async fn start<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let task = tokio::spawn(work);
    settle().await;
    task
}

/// Lets every task get as far as it can without time passing.
pub(crate) async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// What the task came to, or `None` if it panicked or never ends.
pub(crate) async fn end<T>(task: JoinHandle<T>) -> Option<T> {
    timeout(PATIENCE, task).await.ok()?.ok()
}
