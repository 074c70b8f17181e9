//! A breaker by failure rate, as resilience4j and tower-resilience have it.
use std::{collections::VecDeque, time::Duration};

/// What a closed breaker looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// The last calls.
    Sliding,
    /// All calls since it last changed its state.
    Growing,
}

/// Opens when half of the calls it looks at have failed; ends of calls that it admitted in another state count too.
#[derive(Debug)]
pub(super) struct RateBreaker {
    window: Window,
    /// Calls without which there is no rate.
    size: usize,
    open_for: Duration,
    /// Calls that pass while it is half open; when all have ended, their rate decides.
    permitted: usize,
    state: State,
    /// Whether each call failed.
    calls: VecDeque<bool>,
    failures: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open { since: Duration },
    HalfOpen { admitted: usize },
}

impl RateBreaker {
    pub(super) fn new(window: Window, size: usize, open_for: Duration, permitted: usize) -> Self {
        let (state, calls) = (State::Closed, VecDeque::new());
        Self { window, size, open_for, permitted, state, calls, failures: 0 }
    }

    pub(super) fn admit(&mut self, now: Duration) -> bool {
        match &mut self.state {
            State::Closed => true,
            State::Open { since } if now - *since < self.open_for => false,
            State::Open { .. } => {
                self.step(State::HalfOpen { admitted: 1 });
                true
            }
            State::HalfOpen { admitted } => {
                *admitted += 1;
                *admitted <= self.permitted
            }
        }
    }

    pub(super) fn ended(&mut self, failed: bool, now: Duration) {
        let size = match self.state {
            State::Open { .. } => return,
            State::Closed => self.size,
            State::HalfOpen { .. } => self.permitted,
        };
        self.calls.push_back(failed);
        self.failures += usize::from(failed);
        if self.window == Window::Sliding && self.calls.len() > size {
            self.failures -= usize::from(self.calls.pop_front() == Some(true));
        }
        let is_bad = self.failures * 2 >= self.calls.len();
        match self.state {
            _ if self.calls.len() < size => {}
            _ if is_bad => self.step(State::Open { since: now }),
            State::HalfOpen { .. } => self.step(State::Closed),
            State::Closed | State::Open { .. } => {}
        }
    }

    fn step(&mut self, state: State) {
        self.state = state;
        self.calls.clear();
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn after_successes(window: Window, successes: u32, permitted: usize) -> RateBreaker {
        let mut breaker = RateBreaker::new(window, 100, at(30), permitted);
        (0..successes).for_each(|_| breaker.ended(false, at(0)));
        breaker
    }

    /// Failures until it is open.
    fn to_open(breaker: &mut RateBreaker) -> usize {
        (0..)
            .take_while(|_| {
                breaker.admit(at(1)) && {
                    breaker.ended(true, at(1));
                    true
                }
            })
            .count()
    }

    #[test]
    fn a_sliding_window_forgets_successes_and_a_growing_one_does_not() {
        assert_eq!(to_open(&mut after_successes(Window::Sliding, 400, 1)), 50);
        assert_eq!(to_open(&mut after_successes(Window::Growing, 400, 1)), 400);
        assert_eq!(to_open(&mut after_successes(Window::Sliding, 0, 1)), 100);
    }

    #[test]
    fn open_it_waits_and_half_open_the_permitted_calls_decide() {
        let mut breaker = after_successes(Window::Sliding, 100, 10);
        to_open(&mut breaker);
        assert!(!breaker.admit(at(30)));
        let admitted =
            |breaker: &mut RateBreaker, now| (0..20).filter(|_| breaker.admit(now)).count();
        assert_eq!(admitted(&mut breaker, at(31)), 10);
        (0..10).for_each(|n| breaker.ended(n < 5, at(32)));
        assert!(!breaker.admit(at(33)));
        assert_eq!(admitted(&mut breaker, at(62)), 10);
        (0..10).for_each(|n| breaker.ended(n < 4, at(63)));
        assert_eq!(admitted(&mut breaker, at(63)), 20);
    }
}
