//! The laws by name.

use std::fmt;

/// A law of `Service`, of `Future`, or of layers at large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Law {
    /// Once `poll_ready` returned `Ready`, it does so again until `call`, whatever other instances do.
    ReadyStaysReady,
    /// `call` reaches an inner instance whose own `poll_ready` returned `Ready`, a second call and a retry included.
    CallsWhatIsReady,
    /// What `poll_ready` reserved comes back when the service is dropped without a call, and wakes who waits for it.
    ReleasesOnDrop,
    /// A clone is unready whatever its original was, and both work.
    ClonesEarnReadiness,
    /// The inner service's error of readiness reaches the caller, from `poll_ready` or from the response.
    SurfacesReadinessErrors,
    /// The inner service's error is an error of the layer too, found by walking `source()`.
    KeepsTheSource,
    /// A call dropped at any await point leaves nothing behind: nothing in flight, no capacity, no waker.
    DropsCleanly,
    /// A future that was polled and not woken again gets on as soon as it can; the last waker counts.
    WakesUp,
    /// It polls and is polled because something happened, not in circles.
    DoesNotSpin,
    /// No future is polled after it ended.
    PollsNothingAfterItsEnd,
    /// After a panic in the inner `call` or its future, clones go on working.
    SurvivesPanics,
    /// Calls at the same time each get their own answer.
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

/// A law that a layer broke.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// Which.
    pub law: Law,
    /// What was seen.
    pub observed: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law {:?}: {}", self.law, self.observed)
    }
}
