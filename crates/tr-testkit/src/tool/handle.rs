//! The handle to inspect a scripted tool.

use super::state::{Attempt, Breach, Handle, State};
use std::time::Duration;

impl<Req> Handle<Req> {
    fn ask<T>(&self, question: impl FnOnce(&State<Req>) -> T) -> T {
        question(&self.lock())
    }

    /// Calls so far.
    pub fn calls(&self) -> usize {
        self.ask(|s| s.calls)
    }

    /// Calls whose future has neither ended nor been dropped.
    pub fn in_flight(&self) -> usize {
        self.ask(|s| s.in_flight)
    }

    /// The most calls that were in flight at the same time.
    pub fn max_in_flight(&self) -> usize {
        self.ask(|s| s.max_in_flight)
    }

    /// Calls that answered or failed.
    pub fn completed(&self) -> usize {
        self.ask(|s| s.completed)
    }

    /// Calls that were dropped in flight.
    pub fn cancelled(&self) -> usize {
        self.ask(|s| s.cancelled)
    }

    /// Instances that are ready and have neither called nor been dropped.
    pub fn reserved(&self) -> usize {
        self.ask(|s| s.seats - s.in_flight)
    }

    /// Instances that wait for readiness.
    pub fn waiting(&self) -> usize {
        self.ask(|s| s.waiters.len())
    }

    /// The rules that the tool's caller broke.
    pub fn breaches(&self) -> Vec<Breach> {
        self.ask(|s| s.breaches.clone())
    }

    /// Every attempt, in the order of the calls.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.ask(|s| s.attempts.clone())
    }

    /// When each attempt started, since the tool was created.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tower::{Service, ServiceExt};
    /// # use tr_testkit::tool::{Scripted, Step};
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// let mut tool = Scripted::script([Step::Ok("hi")]).then_repeat_last();
    /// let asked = tool.handle();
    /// tool.ready().await.unwrap().call("a").await.unwrap();
    /// tokio::time::sleep(Duration::from_millis(600)).await;
    /// tool.ready().await.unwrap().call("b").await.unwrap();
    /// assert_eq!(asked.starts(), [0, 600].map(Duration::from_millis));
    /// # }
    /// ```
    pub fn starts(&self) -> Vec<Duration> {
        self.ask(|s| s.attempts.iter().map(|a| a.started - s.born).collect())
    }

    /// When each ended attempt ended, since the tool was created.
    pub fn ends(&self) -> Vec<Duration> {
        self.ask(|s| s.attempts.iter().filter_map(|a| Some(a.ended?.0 - s.born)).collect())
    }

    /// Allows `n` instances to be ready or in flight at once from now on, and wakes waiting
    /// instances.
    pub fn set_capacity(&self, n: usize) {
        self.lock().capacity = n;
        self.wake_waiters();
    }
}

impl<Req: Clone> Handle<Req> {
    /// Every request, in the order of the calls.
    pub fn requests(&self) -> Vec<Req> {
        self.ask(|s| s.requests.clone())
    }
}

tr_core::debug_parts! { Handle<Req>, |it|
    calls = it.calls(), in_flight = it.in_flight(), completed = it.completed(), cancelled = it.cancelled(),
}
