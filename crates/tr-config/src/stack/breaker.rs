//! `[breaker]`.
use super::limit::OrNone;
use crate::catalog::shape::{COUNTED, Share as Rate};
use std::time::Duration;
use tr_core::manifest::BreakerOverride;
use tr_wire::read::{Count, Flag, Lenient, Size, Span, Word, object, words};

object! { strict
    /// Changes to all breakers. A tool's own settings win over those of its effect, and these over the
    /// general ones; what is said nowhere stays as the stack has it.
    pub struct BreakerConfig sets tr_breaker::Builder {
        /// Failures in a row that open one, or `none`.
        "consecutive" => consecutive_failures: Option<Option<u32>>, Lenient<OrNone<Count<10_000>>> = 5;
        /// The share of failures that opens one, or `none`.
        "failure_rate" => failure_rate: Option<Option<f64>>, Lenient<OrNone<Rate>> = 0.5;
        /// The number of most recent calls from which rates are computed.
        "window" => window: Option<u32>, Lenient<Count<10_000>> = 20;
        /// Fewer calls than this have no rate; at most `window`.
        "min_calls" => min_calls: Option<u32>, Lenient<Count<10_000>> = 10;
        /// The length of the window, in milliseconds; or `none`. Older results are ignored.
        "rolling_ms" => rolling: Option<Option<Duration>>, Lenient<OrNone<Span<1, COUNTED>>> = 120_000;
        /// How long one stays open, in milliseconds.
        "cooldown_ms" => cooldown: Option<Duration>, Lenient<Span<1, COUNTED>> = 30_000;
        /// Adds up to this share of random jitter to each cooldown. Default: 0.
        "cooldown_jitter" => cooldown_jitter: Option<f64>, Lenient<Rate>;
        /// Probes in flight at once.
        "max_probes" => max_probes: Option<u32>, Lenient<Count<10_000>> = 1;
        /// After this time a probe counts as hung and the breaker opens again, in milliseconds; longer than
        /// an attempt may take. Default: the cooldown.
        "probe_lease_ms" => probe_lease: Option<Duration>, Lenient<Span<1, COUNTED>>;
        /// Probes that must succeed for one to close.
        "successes_to_close" => successes_to_close: Option<u32>, Lenient<Count<10_000>> = 2;
        /// After closing, the share of calls that pass grows from a tenth to all within this time, in
        /// milliseconds. Default: at once.
        "ramp_ms" => ramp: Option<Duration>, Lenient<Span<1, COUNTED>>;
        /// Count rate limits, such as a 429, as failures.
        "count_rate_limits" => count_rate_limits: Option<bool>, Lenient<Flag> = true;
        /// What breakers do with their decisions.
        "mode" => mode: Option<tr_breaker::Mode>, Lenient<Word<Mode>> = "enforce";
        /// Start breakers in FORCED_OPEN; not with the mode `disabled`.
        "forced_open" => forced_open: Option<bool>, Lenient<Flag> = false;
        /// How many breakers are kept.
        "capacity" => capacity: Option<usize>, Lenient<Size<1_000_000>> = 10_000;
        beside {
            /// Opens one by calls that take long, too; not where it is absent.
            "slow_calls" => slow_calls: Option<SlowCalls>, Lenient<SlowCalls>;
            /// For tools that only read.
            "read_only" => read_only: Option<BreakerOverride>, Lenient<BreakerRules> = { "consecutive": 8, "cooldown_ms": 20_000 };
            /// For idempotent tools.
            "idempotent" => idempotent: Option<BreakerOverride>, Lenient<BreakerRules>;
            /// For tools that are declared mutating. Tools of undeclared effect use the general settings.
            "mutating" => mutating: Option<BreakerOverride>, Lenient<BreakerRules> = { "failure_rate": 0.3, "cooldown_ms": 15_000 };
        }
    }
}

object! { strict
    /// When breakers open for calls of one declared effect, and for how long.
    struct BreakerRules for BreakerOverride {
        /// Failures in a row that open one.
        "consecutive" => consecutive: Option<u32>, Lenient<Count<10_000>>;
        /// The share of failures that opens one.
        "failure_rate" => failure_rate: Option<f64>, Lenient<Rate>;
        /// How long one stays open, in milliseconds.
        "cooldown_ms" => cooldown: Option<Duration>, Lenient<Span<1, COUNTED>>;
    }
}

object! { strict
    /// When calls are too slow.
    pub struct SlowCalls {
        /// The time above which a call is slow, in milliseconds.
        "longer_than_ms" => longer_than: Duration, Span<1, COUNTED>;
        /// The share of slow calls in the window that opens a breaker.
        "rate" => rate: f64, Rate;
    }
}

words! {
    Mode for tr_breaker::Mode { Enforce = "enforce", Shadow = "shadow", Disabled = "disabled" }
}
