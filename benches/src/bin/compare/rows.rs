//! The rows: what is compared with what, and what is aimed at.
use crate::{
    Options, files,
    measure::{Effort, allocations, side_by_side},
    proxy,
    scaling::{self, Shared, two_by_one},
    servers, sessions,
};
use benches::{ours, peers, peers::telemetry, run::Make};
use tr_core::BoxError;

/// One comparison.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    /// Whom ours is measured against, if anybody.
    pub(crate) peer: &'static str,
    pub(crate) target: Target,
    how: How,
}

/// What is aimed at.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// Ours ÷ the peer's.
    Ratio(f64),
    /// Two threads ÷ one.
    Scale(f64),
    /// Ours alone.
    Most(f64),
    /// Nothing: it stands there to be compared with.
    Nothing,
}

/// What is measured.
#[derive(Clone, Copy)]
enum How {
    /// Nanoseconds of both.
    Time(Make, Make),
    /// Nanoseconds of ours alone.
    OwnTime(Make),
    /// Allocations of both.
    Allocations(Make, Make),
    /// Allocations of ours alone.
    OwnAllocations(Make),
    /// Instructions of a case of the gate.
    Instructions(&'static str),
    /// Two threads ÷ one.
    Scaling(fn() -> Shared),
    /// Syncs of a SQLite file per call.
    Syncs,
    /// Real nanoseconds per call on a SQLite file.
    BesideBlocking,
    /// Real nanoseconds of both, with programs of their own.
    Real(fn(Effort) -> Result<Option<[f64; 2]>, BoxError>),
    /// Real nanoseconds of ours alone.
    OwnReal(fn(Effort) -> Result<f64, BoxError>),
    /// Nothing: its subject, or its measurement, is not there yet.
    NotYet,
}

/// What came of a row.
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) ours: Option<f64>,
    pub(crate) peer: Option<f64>,
    pub(crate) unit: &'static str,
}

impl Row {
    pub(crate) fn measure(self, options: &Options) -> Result<Measured, BoxError> {
        let effort = options.effort();
        let (ours, peer, unit) = match self.how {
            How::Time(ours, peer) => {
                let [ours, peer] = side_by_side([ours(), peer()], effort);
                (Some(ours), Some(peer), "ns")
            }
            How::OwnTime(ours) => {
                let [ours] = side_by_side([ours()], effort);
                (Some(ours), None, "ns")
            }
            How::Allocations(ours, peer) => {
                (Some(allocations(ours())), Some(allocations(peer())), "allocations")
            }
            How::OwnAllocations(ours) => (Some(allocations(ours())), None, "allocations"),
            How::Instructions(case) => (options.instructions_of(case), None, "Ir"),
            How::Scaling(shared) => (two_by_one(&shared(), effort), None, "×"),
            How::Syncs => (Some(files::syncs_a_cycle(effort)?), None, "syncs"),
            How::BesideBlocking => {
                let [ours, peer] = files::beside_blocking(effort)?;
                (Some(ours), Some(peer), "ns")
            }
            How::Real(both) => match both(effort)? {
                Some([ours, peer]) => (Some(ours), Some(peer), "ns"),
                None => (None, None, "ns"),
            },
            How::OwnReal(ours) => (Some(ours(effort)?), None, "ns"),
            How::NotYet => (None, None, ""),
        };
        Ok(Measured { row: self, ours, peer, unit })
    }
}

impl Measured {
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (ours, peer) = (self.ours?, self.peer?);
        // Nothing ÷ something is told by the figures themselves.
        (peer > 0.0).then_some(ours / peer)
    }

    /// Whether the target is met; `None` without a figure or a target.
    pub(crate) fn is_met(&self) -> Option<bool> {
        match self.row.target {
            Target::Ratio(most) => self.ratio().map(|ratio| ratio <= most),
            Target::Scale(least) => self.ours.map(|scale| scale >= least),
            Target::Most(most) => self.ours.map(|ours| ours <= most),
            Target::Nothing => None,
        }
    }
}

const fn row(
    id: &'static str,
    what: &'static str,
    peer: &'static str,
    target: Target,
    how: How,
) -> Row {
    Row { id, what, peer, target, how }
}

const fn not_yet(id: &'static str, what: &'static str) -> Row {
    row(id, what, "", Target::Nothing, How::NotYet)
}

const TR: &str = "tower-resilience 0.13";

use How::{
    Allocations, BesideBlocking, Instructions, OwnAllocations, OwnReal, OwnTime, Real, Scaling,
    Syncs, Time,
};
use Target::{Most, Nothing, Ratio, Scale};

/// All rows, in the order in which they are shown.
pub(crate) const ROWS: &[Row] = &[
    row(
        "P1",
        "breaker closed, the last 100 calls",
        TR,
        Ratio(0.20),
        Time(ours::breaker_by_number, peers::tower_resilience_closed),
    ),
    row(
        "P1",
        "breaker closed, the last 100 calls",
        "recloser async",
        Ratio(1.0),
        Time(ours::breaker_by_number, peers::recloser_closed),
    ),
    row(
        "P1",
        "breaker closed, the last 100 calls within 120 s",
        TR,
        Ratio(0.20),
        Time(ours::breaker_closed, peers::tower_resilience_closed),
    ),
    row(
        "P1",
        "breaker closed, the last 100 calls within 120 s",
        "recloser async, which has no time",
        Nothing,
        Time(ours::breaker_closed, peers::recloser_closed),
    ),
    row(
        "P1",
        "breaker closed",
        TR,
        Most(0.0),
        Allocations(ours::breaker_closed, peers::tower_resilience_closed),
    ),
    row(
        "P2",
        "breaker closed, consecutive failures only",
        "failsafe, consecutive",
        Ratio(0.45),
        Time(ours::breaker_consecutive, peers::failsafe_consecutive),
    ),
    row(
        "P3",
        "breaker open, refusing",
        TR,
        Ratio(0.35),
        Time(ours::breaker_open, peers::tower_resilience_open),
    ),
    row(
        "P3",
        "breaker open, refusing a stamped request",
        TR,
        Ratio(0.15),
        Time(ours::breaker_open_stamped, peers::tower_resilience_open),
    ),
    row(
        "P3",
        "breaker open, refusing a stamped tool call",
        TR,
        Ratio(0.15),
        Time(ours::breaker_open_stamped_call, peers::tower_resilience_open),
    ),
    row("P4", "retry, success at once", "tower", Ratio(1.1), Time(ours::retry, peers::tower_retry)),
    row(
        "P4",
        "retry, success at once",
        TR,
        Ratio(0.20),
        Time(ours::retry, peers::tower_resilience_retry),
    ),
    row("P4", "retry, success at once", "", Most(110.0), Instructions("retry success")),
    row(
        "P4",
        "retry, success of a tool call with 1 KiB of params",
        "",
        Most(0.0),
        OwnAllocations(ours::retry_call),
    ),
    row(
        "P5",
        "retry with a budget, success at once",
        "tower, TpsBudget",
        Ratio(0.33),
        Time(ours::retry_budget, peers::tower_retry_budget),
    ),
    row(
        "P6",
        "idempotency, replay, with a janitor",
        "tower-resilience 0.13, cache hit",
        Ratio(0.40),
        Time(ours::replay_kept, peers::tower_resilience_hit),
    ),
    row(
        "P6",
        "idempotency, replay, with a janitor",
        "moka, hit of get_with",
        Ratio(0.20),
        Time(ours::replay_kept, peers::moka_hit),
    ),
    row(
        "P6",
        "idempotency, replay, without a janitor",
        "tower-resilience 0.13, cache hit",
        Nothing,
        Time(ours::replay, peers::tower_resilience_hit),
    ),
    row(
        "P7",
        "idempotency, first call",
        "tower-resilience 0.13, cache miss + coalesce",
        Ratio(0.25),
        Time(ours::first, peers::tower_resilience_miss),
    ),
    row(
        "P7",
        "idempotency, first call",
        "quick_cache, async miss",
        Ratio(0.6),
        Time(ours::first, peers::quick_cache_miss),
    ),
    row(
        "P7",
        "idempotency, first call",
        "tower-resilience 0.13, cache miss + coalesce",
        Most(0.0),
        Allocations(ours::first, peers::tower_resilience_miss),
    ),
    row(
        "P8",
        "key of 1 KiB nested params",
        "serde_json_canonicalizer + blake3",
        Ratio(0.20),
        Time(ours::key, peers::jcs_and_blake3),
    ),
    row(
        "P8",
        "key of 1 KiB nested params",
        "serde_json_canonicalizer + blake3",
        Most(0.0),
        Allocations(ours::key, peers::jcs_and_blake3),
    ),
    row(
        "P9",
        "idempotency + retry + breaker, first call",
        "tower-resilience 0.13, cache + coalesce + retry + breaker",
        Ratio(0.17),
        Time(ours::trio_first, peers::trio_miss),
    ),
    row(
        "P9",
        "idempotency + retry + breaker, replay",
        "tower-resilience 0.13, cache + coalesce + retry + breaker",
        Ratio(0.40),
        Time(ours::trio_replay, peers::trio_hit),
    ),
    row(
        "P10",
        "whole stack, key given, first call",
        "tower, timeout + concurrency limit + retry",
        Ratio(1.3),
        Time(ours::stack_first, peers::tower_stack),
    ),
    row(
        "P10",
        "whole stack, key given, first call",
        "tower, timeout + concurrency limit + retry",
        Most(0.0),
        Allocations(ours::stack_first, peers::tower_stack),
    ),
    row(
        "P10",
        "whole stack, key given, first call",
        "",
        Most(1_700.0),
        Instructions("full stack first call"),
    ),
    row("P10", "whole stack, replay", "", Most(700.0), Instructions("full stack replay")),
    row("P11", "two threads ÷ one: breaker closed", "", Scale(1.8), Scaling(scaling::breaker)),
    row("P11", "two threads ÷ one: retry with a budget", "", Scale(1.8), Scaling(scaling::budget)),
    row(
        "P11",
        "two threads ÷ one: whole stack, replays of different keys",
        "",
        Scale(1.8),
        Scaling(scaling::replays),
    ),
    row(
        "P11",
        "two threads ÷ one: whole stack, first calls",
        "",
        Scale(1.0),
        Scaling(scaling::first_calls),
    ),
    row(
        "P11",
        "two threads ÷ one: the control, one shared Arc",
        "",
        Nothing,
        Scaling(scaling::one_arc),
    ),
    row(
        "P12",
        "metrics of a successful call",
        "OpenTelemetry SDK, unbound",
        Ratio(0.35),
        Time(telemetry::our_metrics, telemetry::sdk_metrics),
    ),
    row(
        "P12",
        "span of a call that is not sampled",
        "tracing-opentelemetry",
        Ratio(0.10),
        Time(telemetry::our_span, telemetry::tracing_span),
    ),
    row("P13", "SQLite: claim + finalise, 64 tasks", "", Most(0.06), Syncs),
    row(
        "P13",
        "SQLite: claim + finalise, 8 tasks, 1 ms more for each sync",
        "spawn_blocking for each operation",
        Ratio(0.25),
        BesideBlocking,
    ),
    row(
        "P14",
        "Redis: claim + finalise",
        "two plain SETs of the same sizes",
        Ratio(1.3),
        Real(servers::beside_sets),
    ),
    row(
        "P15",
        "Redis: waiter in another process wakes",
        "one in this process, after the same write",
        Ratio(2.0),
        Real(servers::waiter_wakes),
    ),
    not_yet("P16", "transcript of 100,000 messages"),
    row(
        "P17",
        "session in SQLite: a turn of 4 messages",
        "one bare commit of the same bytes",
        Ratio(1.2),
        Real(sessions::beside_a_bare_commit),
    ),
    row(
        "P17",
        "session in SQLite: rollback of 5,000 messages",
        "of 20",
        Ratio(1.5),
        Real(sessions::rollbacks),
    ),
    row(
        "P17",
        "session in SQLite: checkpoint (002: 10 ms)",
        "",
        Most(1e7),
        OwnReal(sessions::checkpoint),
    ),
    row("P17", "session in SQLite: commit (002: 5 ms)", "", Most(5e6), OwnReal(sessions::commit)),
    row(
        "P17",
        "session in SQLite: rollback (002: 20 ms)",
        "",
        Most(2e7),
        OwnReal(sessions::rollback),
    ),
    row(
        "P18",
        "MCP call through the proxy, echo of 16 B",
        "bare line pump",
        Ratio(1.15),
        Real(proxy::round_trips),
    ),
    row(
        "P19",
        "redaction of 1 KiB of clean text",
        "",
        Most(3_000.0),
        OwnTime(telemetry::redaction),
    ),
];
