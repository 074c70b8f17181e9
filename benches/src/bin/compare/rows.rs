//! The rows of the layers: what is compared with what, and what is aimed at.
use crate::{
    row::{How, Row, Target},
    scaling,
};
use benches::{ours, peers, peers::telemetry};

pub(crate) const fn row(
    id: &'static str,
    what: &'static str,
    peer: &'static str,
    target: Target,
    how: How,
) -> Row {
    Row { id, what, peer, target, old: None, how }
}

const TR: &str = "tower-resilience 0.13";
const TR_TRIO: &str = "tower-resilience 0.13, cache + coalesce + retry + breaker";
const APART: &str = "two threads that share nothing";

use How::{Allocations, Instructions, OwnAllocations, Scaling, Time};
use Target::{AtLeast, Most, Nothing, Ratio};

/// The layers, alone and together: P1 to P12.
pub(crate) const ROWS: &[Row] = &[
    row(
        "P1",
        "breaker closed, the last 100 calls",
        TR,
        Ratio(0.25),
        Time(ours::breaker_by_number, peers::tower_resilience_closed),
    )
    .was(Ratio(0.20), "plain mutex"),
    row(
        "P1",
        "breaker closed, the last 100 calls",
        "recloser async",
        Nothing,
        Time(ours::breaker_by_number, peers::recloser_closed),
    )
    .was(Ratio(1.0), "knows no time"),
    row(
        "P1",
        "breaker closed, the last 100 calls within 120 s",
        TR,
        Ratio(0.25),
        Time(ours::breaker_closed, peers::tower_resilience_closed),
    )
    .was(Ratio(0.20), "plain mutex"),
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
        Ratio(0.40),
        Time(ours::breaker_open, peers::tower_resilience_open),
    )
    .was(Ratio(0.35), "typed error"),
    row(
        "P3",
        "breaker open, refusing a stamped request",
        TR,
        Ratio(0.40),
        Time(ours::breaker_open_stamped, peers::tower_resilience_open),
    )
    .was(Ratio(0.15), "typed error"),
    row(
        "P3",
        "breaker open, refusing a stamped tool call",
        TR,
        Ratio(0.40),
        Time(ours::breaker_open_stamped_call, peers::tower_resilience_open),
    )
    .was(Ratio(0.15), "typed error"),
    row("P4", "retry, success at once", "tower", Ratio(2.5), Time(ours::retry, peers::tower_retry))
        .was(Ratio(1.1), "classifies, keeps facts"),
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
        Ratio(0.5),
        Time(ours::retry_budget, peers::tower_retry_budget),
    )
    .was(Ratio(0.33), "refunds, by group"),
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
        Ratio(0.5),
        Time(ours::first, peers::tower_resilience_miss),
    )
    .was(Ratio(0.25), "policies, TTLs, fencing"),
    row(
        "P7",
        "idempotency, first call",
        "quick_cache, async miss",
        Ratio(1.5),
        Time(ours::first, peers::quick_cache_miss),
    )
    .was(Ratio(0.6), "runs again after a panic"),
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
        TR_TRIO,
        Ratio(0.45),
        Time(ours::trio_first, peers::trio_miss),
    )
    .was(Ratio(0.17), "policies, TTLs, fencing"),
    row(
        "P9",
        "idempotency + retry + breaker, replay",
        TR_TRIO,
        Ratio(0.80),
        Time(ours::trio_replay, peers::trio_hit),
    )
    .was(Ratio(0.40), "policies, TTLs, fencing"),
    row(
        "P10",
        "whole stack, key given, first call",
        "tower, timeout + concurrency limit + retry",
        Ratio(3.5),
        Time(ours::stack_first, peers::tower_stack),
    )
    .was(Ratio(1.3), "tower's know nothing of the call"),
    row(
        "P10",
        "whole stack, key given, first call",
        TR_TRIO,
        Ratio(1.0),
        Time(ours::stack_first, peers::trio_call_miss),
    ),
    row(
        "P10",
        "whole stack, replay",
        TR_TRIO,
        Nothing,
        Time(ours::stack_replay, peers::trio_call_hit),
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
        Most(5_000.0),
        Instructions("full stack first call"),
    )
    .was(Most(1_700.0), "with the normaliser"),
    row("P10", "whole stack, replay", "", Most(1_500.0), Instructions("full stack replay"))
        .was(Most(700.0), "with the normaliser"),
    row("P10", "whole stack, no key", "", Nothing, Instructions("full stack, no key")),
    row(
        "P10",
        "whole stack, key given, first call, with loop signals",
        "",
        Nothing,
        Instructions("full stack, various params, with signals"),
    ),
    row(
        "P11",
        "two threads ÷ one: breaker closed, a key for each",
        APART,
        AtLeast(0.9),
        Scaling(scaling::breakers),
    )
    .was(AtLeast(1.8), "the host's cores vary"),
    row(
        "P11",
        "two threads ÷ one: breaker closed, one key",
        APART,
        Nothing,
        Scaling(scaling::breaker),
    )
    .was(AtLeast(1.8), "one mutex a key"),
    row(
        "P11",
        "two threads ÷ one: retry with a budget",
        APART,
        AtLeast(0.9),
        Scaling(scaling::budget),
    )
    .was(AtLeast(1.8), "the host's cores vary"),
    row(
        "P11",
        "two threads ÷ one: whole stack, replays of different keys",
        APART,
        AtLeast(0.9),
        Scaling(scaling::replays),
    )
    .was(AtLeast(1.8), "the host's cores vary"),
    row(
        "P11",
        "two threads ÷ one: whole stack, first calls",
        APART,
        AtLeast(0.9),
        Scaling(scaling::first_calls),
    )
    .was(AtLeast(1.0), "the host's cores vary"),
    row(
        "P11",
        "two threads ÷ one: the control, one shared Arc",
        APART,
        Nothing,
        Scaling(scaling::one_arc),
    ),
    row(
        "P12",
        "metrics of a successful call",
        "OpenTelemetry SDK, unbound",
        Ratio(0.60),
        Time(telemetry::our_metrics, telemetry::sdk_metrics),
    )
    .was(Ratio(0.35), "two spans a call"),
    row(
        "P12",
        "span of a call that is not sampled",
        "tracing-opentelemetry",
        Ratio(0.20),
        Time(telemetry::our_span, telemetry::tracing_span),
    )
    .was(Ratio(0.10), "two spans a call"),
];
