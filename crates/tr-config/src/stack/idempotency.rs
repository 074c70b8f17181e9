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
        /// From what keys are derived for calls that have none.
        "derived_keys" => derived_keys: Option<tr_idempotency::DerivedKeys>, Lenient<Word<DerivedKeys>> = "step";
        /// What becomes of a key that comes again with other params.
        "conflicts" => conflicts: Option<ConflictPolicy>, Lenient<Word<Conflicts>> = "reject";
        /// How many records are kept in memory.
        "capacity" => capacity: Option<usize>, Lenient<Size<16_777_216>> = 25_000;
        /// How many callers may wait for one call.
        "max_waiters" => max_waiters: Option<usize>, Lenient<Size<1_048_576>> = 1_024;
        /// How long a call waits for another's run with its key, in milliseconds.
        "max_wait_ms" => max_wait: Option<Duration>, Lenient<Span<1, RECORDED>> = 30_000;
        /// How many bytes of one answer are kept. A duplicate of a call with a larger one gets
        /// an error that says that the call has ended.
        "max_record_bytes" => max_record_bytes: Option<usize>, Lenient<Size<MAX_BYTES>> = 1_048_576;
        /// How many bytes of answers all records in memory keep together.
        "max_kept_bytes" => max_kept_bytes: Option<usize>, Lenient<Size<MAX_BYTES>> = 67_108_864;
        /// How long successes are replayed, in milliseconds.
        "done_ttl_ms" => done_ttl: Option<Duration>, Lenient<Span<1, RECORDED>> = 86_400_000;
        /// How long failures are replayed, in milliseconds; in `tool-guard` not at all. A failure of a
        /// mutating call that may have run is kept as a success is.
        "failed_ttl_ms" => failed_ttl: Option<Duration>, Lenient<Span<0, RECORDED>> = 300_000;
        /// The lease of a call in flight, in milliseconds; in `tool-guard` 30 s.
        "inflight_ttl_ms" => inflight_ttl: Option<Duration>, Lenient<Span<1, RECORDED>> = 120_000;
        /// How long a mutating call of unknown outcome bars a repeat, in milliseconds; in
        /// `tool-guard` 30 days.
        "unknown_ttl_ms" => unknown_ttl: Option<Duration>, Lenient<Span<1, RECORDED>> = 86_400_000;
        /// How long the end of a call that was cut off waits for its repeat, in milliseconds.
        "cut_off_grace_ms" => cut_off_grace: Option<Duration>, Lenient<Span<1, RECORDED>> = 60_000;
        /// How long one request to the store may take, in milliseconds; a claim is sent up to three times.
        "store_timeout_ms" => store_timeout: Option<Duration>, Lenient<Span<1, RECORDED>> = 1_000;
        /// How long successes that a store has are replayed from memory, without asking the store, in
        /// milliseconds; not at all where it is absent.
        "replay_from_memory_ms" => replay_from_memory: Option<Duration>, Lenient<Span<1, RECORDED>>;
        /// How long the program's probe may take to find out how a call ended, in milliseconds.
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
        /// Of tools that only read.
        "read_only" => read_only: Option<tr_idempotency::store::WhenStoreFails>, Lenient<Word<WhenStoreFails>> = "run";
        /// Of tools that a repeat changes nothing with.
        "idempotent" => idempotent: Option<tr_idempotency::store::WhenStoreFails>, Lenient<Word<WhenStoreFails>> = "run";
        /// Of all other tools. With `run`, a payment may run twice.
        "mutating" => mutating: Option<tr_idempotency::store::WhenStoreFails>, Lenient<Word<WhenStoreFails>> = "refuse";
    }
}

words! {
    DerivedKeys for tr_idempotency::DerivedKeys { Off = "off", CutOff = "cut_off", Step = "step", Session = "session" }
    Conflicts for ConflictPolicy { Reject = "reject", Independent = "independent" }
    WhenStoreFails for tr_idempotency::store::WhenStoreFails { Run = "run", Refuse = "refuse" }
}
