//! The laws by name.

use std::fmt;

/// A law of `Service`, of `Future`, or of layers in general.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Law {
    /// Once `poll_ready` returned `Ready`, it does so again until `call`, whatever other instances do.
    ReadyStaysReady,
    /// `call` reaches an inner instance whose own `poll_ready` returned `Ready`, also for a second
    /// call and a retry.
    CallsWhatIsReady,
    /// A reservation of `poll_ready` is released when the service is dropped without a call, and
    /// wakes waiting instances.
    ReleasesOnDrop,
    /// A clone starts unready, and both the clone and its original work.
    ClonesEarnReadiness,
    /// The inner service's error of readiness reaches the caller, from `poll_ready` or from the response.
    SurfacesReadinessErrors,
    /// The inner service's error is an error of the layer too, found by walking `source()`.
    KeepsTheSource,
    /// A call dropped at any await point leaves nothing behind: nothing in flight, no capacity, no waker.
    DropsCleanly,
    /// A pending future is woken as soon as it can make progress, through the last waker that it
    /// got.
    WakesUp,
    /// It does not poll in a busy loop, and does not wake itself without a reason.
    DoesNotSpin,
    /// No future is polled after it ended.
    PollsNothingAfterItsEnd,
    /// After a panic in the inner `call` or its future, clones still work.
    SurvivesPanics,
    /// Concurrent calls each get their own response.
    KeepsAnswersApart,
}

impl Law {
    /// Every law.
    pub const ALL: [Self; 12] = [
        Self::ReadyStaysReady,
        Self::CallsWhatIsReady,
        Self::ReleasesOnDrop,
        Self::ClonesEarnReadiness,
        Self::SurfacesReadinessErrors,
        Self::KeepsTheSource,
        Self::DropsCleanly,
        Self::WakesUp,
        Self::DoesNotSpin,
        Self::PollsNothingAfterItsEnd,
        Self::SurvivesPanics,
        Self::KeepsAnswersApart,
    ];
}

/// A broken law.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// The law.
    pub law: Law,
    /// The observation.
    pub observed: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law {:?}: {}", self.law, self.observed)
    }
}
