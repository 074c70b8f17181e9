//! The backend: a rate that it can serve, a queue, an outage. Pure: it takes the time as an argument.
use crate::plan::Plan;
use std::time::Duration;

/// Serves attempts in the order in which they come, a fixed number in a second.
#[derive(Debug)]
pub(crate) struct Backend {
    plan: Plan,
    /// When the next attempt can begin to be served.
    free: Duration,
}

/// What becomes of an attempt, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Served { at: Duration },
    Failed { at: Duration, fault: Fault },
    Hangs,
}

/// What an attempt fails with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing listens, or the connection is gone.
    Refused,
    /// The queue is full.
    Busy,
    /// The caller has waited long enough.
    Timeout,
}

impl Backend {
    pub(crate) const fn new(plan: Plan) -> Self {
        Self { plan, free: Duration::ZERO }
    }

    /// An attempt arrives; `draw`, between 0 and 1, decides how it fails in the outage.
    pub(crate) fn arrive(&mut self, now: Duration, draw: f64) -> Fate {
        let Plan { outage, hanging, refusal, .. } = &self.plan;
        if outage.contains(&now) {
            let refused = Fate::Failed { at: now + *refusal, fault: Fault::Refused };
            return if draw < *hanging { Fate::Hangs } else { refused };
        }
        let each = Duration::from_secs(1) / self.plan.capacity;
        let begin = self.free.max(now);
        if begin - now > each * self.plan.queue {
            return Fate::Failed { at: now + *refusal, fault: Fault::Busy };
        }
        self.free = begin + each;
        let at = begin + self.plan.service;
        if now < outage.start && at >= outage.start {
            return Fate::Failed { at: outage.start.max(now), fault: Fault::Refused };
        }
        Fate::Served { at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Serves 100 per second, 50 ms each; 200 may wait.
    fn backend() -> Backend {
        Backend::new(Plan::tiny())
    }

    #[test]
    fn alone_it_takes_the_time_of_service_and_in_a_crowd_its_turn() {
        let mut backend = backend();
        assert_eq!(backend.arrive(ms(0), 0.5), Fate::Served { at: ms(50) });
        assert_eq!(backend.arrive(ms(0), 0.5), Fate::Served { at: ms(60) });
        assert_eq!(backend.arrive(ms(500), 0.5), Fate::Served { at: ms(550) });
    }

    #[test]
    fn a_full_queue_refuses_and_costs_nobody_a_turn() {
        let mut backend = backend();
        let fates: Vec<_> = (0..300).map(|_| backend.arrive(ms(0), 0.5)).collect();
        let busy = Fate::Failed { at: ms(5), fault: Fault::Busy };
        assert_eq!(fates.iter().filter(|fate| **fate == busy).count(), 99);
        assert_eq!(fates[200], Fate::Served { at: ms(2_050) });
        assert_eq!(backend.arrive(ms(10), 0.5), Fate::Served { at: ms(2_060) });
    }

    #[test]
    fn the_outage_fails_what_comes_and_what_is_not_finished() {
        let mut backend = backend();
        let lost = Fate::Failed { at: ms(10_000), fault: Fault::Refused };
        assert_eq!(backend.arrive(ms(9_949), 0.5), Fate::Served { at: ms(9_999) });
        assert_eq!(backend.arrive(ms(9_960), 0.5), lost);
        let refused = Fate::Failed { at: ms(10_005), fault: Fault::Refused };
        assert_eq!(backend.arrive(ms(10_000), 0.2), refused);
        assert_eq!(backend.arrive(ms(10_000), 0.19), Fate::Hangs);
        assert_eq!(backend.arrive(ms(20_000), 0.0), Fate::Served { at: ms(20_050) });
    }
}
