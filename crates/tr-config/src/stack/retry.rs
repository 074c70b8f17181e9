//! `[retry]` and `[retry_opt_in]`.
use super::limit::{Limit, OrNone};
use crate::catalog::{
    build,
    form::Retry,
    shape::{At, DAY, Jitter, Lenient, Located},
};
use std::time::Duration;
use tr_core::{Effect, RetryOverride};
use tr_wire::read::{
    Count, Factor, Faults, Flag, List, Millis, Name, Percent, Time, Word, object, shape, words,
};

object! { strict
    /// Changes to the retry policy of the preset.
    struct RetryForm {
        /// Attempts in all, the first included.
        "attempts" => attempts: Option<u32>, Lenient<Count<1000>>;
        /// Ceiling of the first delay, in milliseconds.
        "base_ms" => base_ms: Option<u64>, Lenient<Time<1, DAY>>;
        /// Factor from one ceiling to the next.
        "multiplier" => multiplier: Option<f64>, Lenient<Factor>;
        /// No delay is longer than this, in milliseconds; or `none`. At least `base_ms`.
        "cap_ms" => cap_ms: Option<Limit<u64>>, Lenient<OrNone<Millis<1>>>;
        /// The delay is drawn between these shares of the ceiling: `[0, 1]` is full jitter.
        "jitter" => jitter: Option<(f64, f64)>, Lenient<Jitter>;
        /// The same, as the largest deviation of a delay to either side.
        "jitter_percent" => jitter_percent: Option<At<f64>>, Lenient<Located<Percent>>;
        /// From where a delay counts: the start of the failed attempt, or its end.
        "anchor" => anchor: Option<RetryAnchor>, Lenient<Word<RetryAnchor>>;
        /// No attempt starts later than this after the first, in milliseconds; or `none`.
        "max_elapsed_ms" => max_elapsed_ms: Option<Limit<u64>>, Lenient<OrNone<Millis<1>>>;
        /// Only these codes are retried; empty means all that are transient.
        "only_codes" => only_codes: Option<Vec<Box<str>>>, Lenient<List<Name>>;
        /// Bounds the retries of all tools as a share of successes; no bound where it is absent.
        "budget" => budget: Option<BudgetConfig>, Lenient<BudgetConfig>;
        /// For tools that only read.
        "read_only" => read_only: Option<Retry>, Lenient<Retry>;
        /// For tools that a repeat changes nothing with.
        "idempotent" => idempotent: Option<Retry>, Lenient<Retry>;
        /// For all other tools.
        "mutating" => mutating: Option<Retry>, Lenient<Retry>;
    }
}

object! { strict
    /// A bound on retries as a share of successes: a bucket that starts full.
    pub struct BudgetConfig {
        /// How many retries each success pays for.
        "per_success" => per_success: Option<f64>, Lenient<Tokens>;
        /// How many retries the bucket holds at most.
        "capacity" => capacity: Option<u32>, Lenient<Count<1_000_000>>;
    }
}

shape! {
    Tokens => f64, "a number from 0 to 10",
    |source| source.number().and_then(|number| number.between(0.0, 10.0)),
    { "type": "number", "minimum": 0, "maximum": 10 }
}

/// From where a delay counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAnchor {
    /// The start of the failed attempt: a slow attempt shortens the delay after it.
    AttemptStart,
    /// The end of the failed attempt.
    AttemptEnd,
}

words! {
    RetryAnchor { AttemptStart = "attempt_start", AttemptEnd = "attempt_end" }
}

/// Changes to the retry policy of the preset.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RetrySettings {
    /// Those that tools can make, too.
    pub changes: RetryOverride,
    /// No delay is longer than [`cap`](RetryOverride::cap) of the changes, or there is no such limit.
    pub is_uncapped: bool,
    /// There is no limit for the time of all attempts.
    pub is_unlimited: bool,
    /// From where a delay counts.
    pub anchor: Option<RetryAnchor>,
    /// A bound on the retries of all tools.
    pub budget: Option<BudgetConfig>,
    /// Changes for tools of these effects.
    pub effects: Vec<(Effect, RetryOverride)>,
}

/// The section as the stack takes it.
pub(super) fn settings(form: Option<RetryForm>, faults: &mut Faults) -> RetrySettings {
    let form = form.unwrap_or_default();
    let nothing = || (None, None, None);
    let millis = |limit: Option<Limit<u64>>| limit.and_then(Limit::get);
    let own = Retry {
        attempts: form.attempts,
        base_ms: form.base_ms,
        multiplier: form.multiplier,
        cap_ms: millis(form.cap_ms),
        jitter: form.jitter,
        jitter_percent: form.jitter_percent,
        max_elapsed_ms: millis(form.max_elapsed_ms),
        only_codes: form.only_codes,
    };
    let mut effects = Vec::new();
    for (effect, rules) in [
        (Effect::ReadOnly, form.read_only),
        (Effect::Idempotent, form.idempotent),
        (Effect::Mutating, form.mutating),
    ] {
        effects.extend(build::retry(rules, nothing(), faults).map(|changes| (effect, changes)));
    }
    RetrySettings {
        changes: build::retry(Some(own), nothing(), faults).unwrap_or_default(),
        is_uncapped: form.cap_ms == Some(Limit::None),
        is_unlimited: form.max_elapsed_ms == Some(Limit::None),
        anchor: form.anchor,
        budget: form.budget,
        effects,
    }
}

object! { strict
    /// Restricts retries to the calls and agents that opt in.
    pub struct RetryOptIn {
        /// The agents that have asked for them, by the names that their calls carry.
        "agents" => agents: Option<Vec<Box<str>>>, Lenient<Agents>;
        /// Whether a call asks for them by a retry policy of its own.
        "calls" => calls: Option<bool>, Lenient<Flag>;
    }
}

shape! {
    Agents => Vec<Box<str>>, "an array with one name or more",
    |node, faults| {
        let names = List::<Name>::read(node, faults)?;
        match names.is_empty() {
            true => node.refuse_found(Self::expected(), "none: to retry nothing, write `attempts = 1`", faults),
            false => Some(names),
        }
    },
    { "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1 }
}

/// Times of the section, for what they must be to one another.
pub(super) fn times(form: Option<&RetryForm>) -> (Option<u64>, Option<Limit<u64>>) {
    (form.and_then(|form| form.base_ms), form.and_then(|form| form.cap_ms))
}

impl RetrySettings {
    /// The limit of a delay, if the section sets it.
    #[must_use]
    pub fn cap(&self) -> Option<Limit<Duration>> {
        if self.is_uncapped { Some(Limit::None) } else { self.changes.cap.map(Limit::At) }
    }
}
