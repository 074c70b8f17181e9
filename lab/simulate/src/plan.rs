//! The numbers that every rule is simulated under.
use std::{ops::Range, time::Duration};

/// The numbers of one simulation. All but the outage's end are the same in all of ours.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) clients: u32,
    /// The clients of one process share its breaker, tokens and budget.
    pub(crate) processes: u32,
    /// Calls per second of all clients together.
    pub(crate) calls_per_second: f64,
    /// Attempts that the backend can serve in a second.
    pub(crate) capacity: u32,
    /// Attempts that may wait; the backend refuses further ones.
    pub(crate) queue: u32,
    /// How long an attempt is served, once it has waited.
    pub(crate) service: Duration,
    /// How long it takes to be refused.
    pub(crate) refusal: Duration,
    /// When a caller gives an attempt up. The backend serves it all the same.
    pub(crate) timeout: Duration,
    /// The share of attempts in the outage that get no answer; the others are refused.
    pub(crate) hanging: f64,
    /// Whole seconds, like the end.
    pub(crate) outage: Range<Duration>,
    /// Until then the run is watched. Calls go on for [`TAIL`](Self::TAIL), so that the last ones are no quieter.
    pub(crate) end: Duration,
}

impl Plan {
    /// Longer than any call takes.
    pub(crate) const TAIL: Duration = Duration::from_secs(10);

    /// 10,000 clients that each call every 25 s, 80 % load, an outage from 60 s to 120 s, watched for 90 s more.
    pub(crate) const fn full() -> Self {
        Self {
            clients: 10_000,
            processes: 100,
            calls_per_second: 400.0,
            capacity: 500,
            queue: 1_000,
            service: Duration::from_millis(50),
            refusal: Duration::from_millis(5),
            timeout: Duration::from_secs(1),
            hanging: 0.2,
            outage: Duration::from_secs(60)..Duration::from_secs(120),
            end: Duration::from_secs(210),
        }
    }

    /// The same, but the outage lasts this long.
    pub(crate) fn lasting(mut self, outage: Duration) -> Self {
        let watched = self.end - self.outage.end;
        self.outage.end = self.outage.start + outage;
        self.end = self.outage.end + watched;
        self
    }

    /// The second that begins when the outage ends.
    pub(crate) fn recovery(&self) -> usize {
        index(self.outage.end)
    }
}

/// Which second a moment is in.
pub(crate) const fn index(at: Duration) -> usize {
    at.as_secs() as usize
}

#[cfg(test)]
impl Plan {
    /// Few clients and a short outage.
    pub(crate) const fn tiny() -> Self {
        Self {
            clients: 200,
            processes: 4,
            calls_per_second: 75.0,
            capacity: 100,
            queue: 200,
            outage: Duration::from_secs(10)..Duration::from_secs(20),
            end: Duration::from_secs(50),
            ..Self::full()
        }
    }
}
