//! `[retry]` and `[retry_opt_in]`.
use super::limit::OrNone;
use crate::catalog::{
    form::Retry,
    shape::{DAY, Jitter, JitterPercent},
};
use std::time::Duration;
use tr_core::RetryOverride;
use tr_wire::read::{
    AnySpan, Count, Factor, Flag, Lenient, List, Name, Span, Word, object, shape, words,
};

object! { strict
    /// Changes to the retry policy of the preset.
    pub struct RetrySettings sets tr_retry::Builder {
        /// Attempts in all, the first included.
        "attempts" => attempts: Option<u32>, Lenient<Count<1000>> = 4;
        /// Ceiling of the first delay, in milliseconds.
        "base_ms" => base: Option<Duration>, Lenient<Span<1, DAY>> = 200;
        /// Factor from one ceiling to the next.
        "multiplier" => multiplier: Option<f64>, Lenient<Factor> = 2;
        /// No delay is longer than this, in milliseconds; or `none`. At least `base_ms`.
        "cap_ms" => cap: Option<Option<Duration>>, Lenient<OrNone<AnySpan<1>>> = 4_000;
        /// The shares of the ceiling between which a delay is drawn. `[0, 1]`: full jitter.
        "jitter" => jitter: Option<(f64, f64)>, Lenient<Jitter> = [0, 1];
        /// Where a delay begins.
        "anchor" => anchor: Option<tr_retry::Anchor>, Lenient<Word<Anchor>> = "attempt_end";
        /// No attempt starts later than this after the first, in milliseconds; or `none`.
        "max_elapsed_ms" => max_elapsed: Option<Option<Duration>>, Lenient<OrNone<AnySpan<1>>> = 30_000;
        /// The codes to retry. Empty: all transient ones.
        "only_codes" => only_codes: Option<Vec<Box<str>>>, Lenient<List<Name>> = [];
        beside {
            /// Bounds the retries of all tools as a share of successes; no bound where it is absent.
            "budget" => budget: Option<BudgetConfig>, Lenient<BudgetConfig>;
            /// For tools that only read.
            "read_only" => read_only: Option<RetryOverride>, Lenient<Retry>;
            /// For idempotent tools.
            "idempotent" => idempotent: Option<RetryOverride>, Lenient<Retry>;
            /// For all other tools.
            "mutating" => mutating: Option<RetryOverride>, Lenient<Retry>;
        }
        also {
            /// The same, as a deviation to either side.
            "jitter_percent" => jitter, Lenient<JitterPercent>;
        }
    }
}

object! { strict
    /// A bound on retries as a share of successes: a bucket that starts full.
    pub struct BudgetConfig sets tr_retry::BudgetBuilder {
        /// How many retries each success pays for.
        "per_success" => per_success: Option<f64>, Lenient<Tokens> = 0.1;
        /// How many retries the bucket holds at most.
        "capacity" => capacity: Option<u32>, Lenient<Count<1_000_000>> = 20;
    }
}

shape! {
    Tokens => f64, "a number from 0 to 10",
    |source| source.number().and_then(|number| number.between(0.0, 10.0)),
    { "type": "number", "minimum": 0, "maximum": 10 }
}

words! {
    Anchor for tr_retry::Anchor { AttemptStart = "attempt_start", AttemptEnd = "attempt_end" }
}

object! { strict
    /// Restricts retries to the calls and agents that opt in.
    pub struct RetryOptIn {
        /// The agents whose calls are retried.
        "agents" => agents: Option<Vec<Box<str>>>, Lenient<Agents>;
        /// Retry calls with a retry policy of their own.
        "calls" => calls: Option<bool>, Lenient<Flag> = false;
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
