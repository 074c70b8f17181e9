//! `[idempotency]`.
use crate::catalog::shape::RECORDED;
use std::time::Duration;
use tr_idempotency::ConflictPolicy;
use tr_wire::read::{Lenient, Size, Span, Word, object, words};

/// The most bytes that a bound of records can be set to: 1 GiB.
const MAX_BYTES: u32 = 1 << 30;

object! { strict
    /// Changes to how repeats are recognized, and how long they are remembered.
    pub struct IdempotencyConfig sets tr_idempotency::Builder {
        /// How keys are derived for calls without one.
        "derived_keys" => derived_keys: Option<tr_idempotency::DerivedKeys>, Lenient<Word<DerivedKeys>> = "step";
        /// What happens if a key comes with other params.
        "conflicts" => conflicts: Option<ConflictPolicy>, Lenient<Word<Conflicts>> = "reject";
        /// How many records are kept in memory.
        "capacity" => capacity: Option<usize>, Lenient<Size<16_777_216>> = 25_000;
        /// How many callers may wait for one call.
        "max_waiters" => max_waiters: Option<usize>, Lenient<Size<1_048_576>> = 1_024;
        /// How long a duplicate waits for the running call, in milliseconds.
        "max_wait_ms" => max_wait: Option<Duration>, Lenient<Span<1, RECORDED>> = 30_000;
        /// The bytes of one answer. A duplicate of a call with a larger answer gets an error that says that
        /// the call has ended.
        "max_record_bytes" => max_record_bytes: Option<usize>, Lenient<Size<MAX_BYTES>> = 1_048_576;
        /// The bytes of all answers in memory.
        "max_kept_bytes" => max_kept_bytes: Option<usize>, Lenient<Size<MAX_BYTES>> = 67_108_864;
        /// How long successes are replayed, in milliseconds.
        "done_ttl_ms" => done_ttl: Option<Duration>, Lenient<Span<1, RECORDED>> = 86_400_000;
        /// How long failures are replayed, in milliseconds; in `tool-guard` 0. A mutating call that may have
        /// run is kept like a success.
        "failed_ttl_ms" => failed_ttl: Option<Duration>, Lenient<Span<0, RECORDED>> = 300_000;
        /// The lease of a call in flight, in milliseconds; in `tool-guard` 30 s.
        "inflight_ttl_ms" => inflight_ttl: Option<Duration>, Lenient<Span<1, RECORDED>> = 120_000;
        /// How long a mutating call of unknown outcome blocks repeats, in milliseconds; in `tool-guard` 30
        /// days.
        "unknown_ttl_ms" => unknown_ttl: Option<Duration>, Lenient<Span<1, RECORDED>> = 86_400_000;
        /// How long the answer of a cut-off call waits for its repeat, in milliseconds.
        "cut_off_grace_ms" => cut_off_grace: Option<Duration>, Lenient<Span<1, RECORDED>> = 60_000;
        /// The limit of a request to the store, in milliseconds; a claim is sent up to three times.
        "store_timeout_ms" => store_timeout: Option<Duration>, Lenient<Span<1, RECORDED>> = 1_000;
        /// How long successes of a store are replayed from memory, in milliseconds. Default: 0.
        "replay_from_memory_ms" => replay_from_memory: Option<Duration>, Lenient<Span<1, RECORDED>>;
        /// The limit of the program's probe, in milliseconds.
        "probe_timeout_ms" => probe_timeout: Option<Duration>, Lenient<Span<1, RECORDED>> = 30_000;
        beside {
            /// What becomes of calls while the store of records cannot be used.
            "when_store_fails" => when_store_fails: Option<StoreFailures>, Lenient<StoreFailures>;
        }
    }
}

object! { strict
    /// By effect, what becomes of calls while the store of records cannot be used.
    pub struct StoreFailures {
        /// Calls of read-only tools while the store fails.
        "read_only" => read_only: Option<tr_idempotency::store::WhenStoreFails>, Lenient<Word<WhenStoreFails>> = "run";
        /// Calls of idempotent tools while the store fails.
        "idempotent" => idempotent: Option<tr_idempotency::store::WhenStoreFails>, Lenient<Word<WhenStoreFails>> = "run";
        /// Calls of all other tools while the store fails. With `run`, a payment may run twice.
        "mutating" => mutating: Option<tr_idempotency::store::WhenStoreFails>, Lenient<Word<WhenStoreFails>> = "refuse";
    }
}

words! {
    DerivedKeys for tr_idempotency::DerivedKeys { Off = "off", CutOff = "cut_off", Step = "step", Session = "session" }
    Conflicts for ConflictPolicy { Reject = "reject", Independent = "independent" }
    WhenStoreFails for tr_idempotency::store::WhenStoreFails { Run = "run", Refuse = "refuse" }
}
