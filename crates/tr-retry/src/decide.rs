//! The decision about a failed attempt: a pure function.
use crate::{
    RetryConfig,
    config::{Anchor, MOST_ATTEMPTS, nanos},
    rng::Rng,
};
use std::time::Duration;
use tr_policy::{Classification, Effect, Ran, Verdict, code};

/// An attempt that failed. All times are nanoseconds since the first attempt started.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'r> {
    /// Which attempt, from 0.
    pub attempt: u32,
    /// When it started.
    pub started: u64,
    /// When it ended: now.
    pub now: u64,
    /// The call's deadline.
    pub deadline: Option<u64>,
    /// How it ended.
    pub end: Classification<'r>,
    /// Whether the tool ran in this attempt or an earlier one.
    pub ran: Ran,
    /// The tool's effect.
    pub effect: Effect,
    /// Whether the call or the manifest declares a repeat safe or unsafe; `None` if neither does.
    pub repeat_safe: Option<bool>,
}

/// What to do after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Try again after this delay.
    Retry {
        /// From now on.
        delay: Duration,
    },
    /// Do not try again.
    Stop(RetryStop),
}

/// Why a call is not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryStop {
    /// The failure is permanent, or the attempt did not fail.
    Permanent,
    /// The caller cancelled the call.
    Cancelled,
    /// An inner layer has retried it already, or the failure forbids retries.
    Exhausted,
    /// A breaker refused the attempt.
    CircuitOpen,
    /// `only_codes` excludes failures with this code.
    Code,
    /// The tool may have run, and a repeat may do harm.
    Effect,
    /// No attempts are left.
    Attempts,
    /// The next attempt would start past the call's deadline.
    Deadline,
    /// The next attempt would start after `max_elapsed`.
    Elapsed,
    /// The retry budget is used up.
    Budget,
    /// The tool retries by itself.
    OwnRetries,
    /// The call is itself a retry by an outer layer, which retries further if needed.
    RetriedOutside,
    /// Retrying is opt-in, and the caller did not ask for it.
    OptedOut,
    /// A part of the answer was sent: another attempt would begin it again.
    Streamed,
    /// The request cannot be copied.
    NotRepeatable,
    /// The inner service will never be ready again.
    Unready,
}

impl RetryStop {
    /// Its name, and the reason in words.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Permanent => ("permanent", "the failure is permanent"),
            Self::Cancelled => ("cancelled", "the caller cancelled the call"),
            Self::Exhausted => ("exhausted", "it has been retried already"),
            Self::CircuitOpen => ("circuit_open", "the circuit breaker refused the next attempt"),
            Self::Code => ("code", "failures with this code are not retried"),
            Self::Effect => ("effect", "a repeat may do harm"),
            Self::Attempts => ("attempts", "no more are allowed"),
            Self::Deadline => ("deadline", "the next attempt would start after the deadline"),
            Self::Elapsed => ("elapsed", "the time for retries is used up"),
            Self::Budget => ("budget", "the retry budget is used up"),
            Self::OwnRetries => ("own_retries", "the tool retries by itself"),
            Self::RetriedOutside => ("retried_outside", "the caller retries"),
            Self::OptedOut => ("opted_out", "the caller did not ask for retries"),
            Self::Streamed => ("streamed", "a part of the answer was sent"),
            Self::NotRepeatable => ("not_repeatable", "the request cannot be copied"),
            Self::Unready => ("unready", "the tool accepts no more calls"),
        }
    }

    /// The name used in events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.words().0
    }

    /// The reason in words, for the error.
    pub(crate) const fn reason(self) -> &'static str {
        self.words().1
    }

    /// Whether attempts, time or budget are used up: the code is `retry_exhausted` then.
    #[must_use]
    pub const fn is_used_up(self) -> bool {
        matches!(self, Self::Attempts | Self::Deadline | Self::Elapsed | Self::Budget)
    }
}

/// Decides about a failed attempt.
///
/// Out-of-range numbers cause no error here, only fewer attempts (1,000 at most) or shorter delays:
/// overrides of a call or a manifest are not validated by the builder.
pub fn decide(config: &RetryConfig, failed: &Failed<'_>, rng: &mut Rng) -> Decision {
    let Verdict::Transient { retry_after } = failed.end.verdict else {
        let withdrawn = failed.end.verdict == Verdict::Cancelled;
        return Decision::Stop(if withdrawn { RetryStop::Cancelled } else { RetryStop::Permanent });
    };
    if let Some(why) = forbidden(config, failed) {
        return Decision::Stop(why);
    }
    let drawn = config.draw(failed.attempt, rng);
    let delay = match config.anchor {
        Anchor::AttemptStart => failed.started.saturating_add(drawn).saturating_sub(failed.now),
        Anchor::AttemptEnd => drawn,
    };
    // Added to the hint, so that clients with the same hint do not retry at the same time.
    let delay = delay.saturating_add(retry_after.map_or(0, nanos));
    match too_late(config, failed.deadline, failed.now.saturating_add(delay)) {
        Some(why) => Decision::Stop(why),
        None => Decision::Retry { delay: Duration::from_nanos(delay) },
    }
}

/// What forbids an attempt that would start at `at`.
pub(crate) fn too_late(config: &RetryConfig, deadline: Option<u64>, at: u64) -> Option<RetryStop> {
    if deadline.is_some_and(|deadline| at >= deadline) {
        Some(RetryStop::Deadline)
    } else if config.max_elapsed.is_some_and(|most| at > nanos(most)) {
        Some(RetryStop::Elapsed)
    } else {
        None
    }
}

fn forbidden(config: &RetryConfig, failed: &Failed<'_>) -> Option<RetryStop> {
    // Checked first: breakers mark their refusals as exhausted, too.
    if failed.end.code == code::CIRCUIT_OPEN {
        Some(RetryStop::CircuitOpen)
    } else if failed.end.exhausted {
        Some(RetryStop::Exhausted)
    } else if !config.allows_code(failed.end.code) {
        Some(RetryStop::Code)
    } else if !failed.effect.may_repeat(failed.ran, failed.repeat_safe) {
        Some(RetryStop::Effect)
    } else if failed.attempt.saturating_add(1) >= config.attempts.min(MOST_ATTEMPTS) {
        Some(RetryStop::Attempts)
    } else {
        None
    }
}
