//! The rows of the layers: what is compared with what, and what is aimed at.
use crate::{
    row::{How, Row, Target},
    scaling,
};
use benches::{
    call,
    ours::{breaker, idempotency, keys, retry, stack},
    small::Leaf as Small,
    tower,
};
use compare::peers;

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
        Time(breaker::by_number::<Small>, peers::breaker::tower_resilience::<Small>),
    )
    .was(Ratio(0.20), "plain mutex"),
    row(
        "P1",
        "breaker closed, the last 100 calls",
        "recloser async",
        Nothing,
        Time(breaker::by_number::<Small>, peers::breaker::recloser::<Small>),
    )
    .was(Ratio(1.0), "knows no time"),
    row(
        "P1",
        "breaker closed, the last 100 calls within 120 s",
        TR,
        Ratio(0.25),
        Time(breaker::closed::<Small>, peers::breaker::tower_resilience::<Small>),
    )
    .was(Ratio(0.20), "plain mutex"),
    row(
        "P1",
        "breaker closed, the last 100 calls within 120 s",
        "recloser async, which has no time",
        Nothing,
        Time(breaker::closed::<Small>, peers::breaker::recloser::<Small>),
    ),
    row(
        "P1",
        "breaker closed",
        TR,
        Most(0.0),
        Allocations(breaker::closed::<Small>, peers::breaker::tower_resilience::<Small>),
    ),
    row(
        "P2",
        "breaker closed, consecutive failures only",
        "failsafe, consecutive",
        Ratio(0.45),
        Time(breaker::consecutive::<Small>, peers::breaker::failsafe::<Small>),
    ),
    row(
        "P3",
        "breaker open, refusing",
        TR,
        Ratio(0.40),
        Time(breaker::open::<Small>, peers::breaker::tower_resilience_open::<Small>),
    )
    .was(Ratio(0.35), "typed error"),
    row(
        "P3",
        "breaker open, refusing a stamped request",
        TR,
        Ratio(0.40),
        Time(breaker::open_stamped, peers::breaker::tower_resilience_open::<Small>),
    )
    .was(Ratio(0.15), "typed error"),
    row(
        "P3",
        "breaker open, refusing a stamped tool call",
        TR,
        Ratio(0.40),
        Time(breaker::open_stamped_call, peers::breaker::tower_resilience_open::<Small>),
    )
    .was(Ratio(0.15), "typed error"),
    row(
        "P4",
        "retry, success at once",
        "tower",
        Ratio(2.5),
        Time(retry::success::<Small>, tower::retry::<Small>),
    )
    .was(Ratio(1.1), "classifies, keeps facts"),
    row(
        "P4",
        "retry, success at once",
        TR,
        Ratio(0.20),
        Time(retry::success::<Small>, peers::retry::tower_resilience::<Small>),
    ),
    row("P4", "retry, success at once", "", Most(110.0), Instructions("retry success")),
    row(
        "P4",
        "retry, success of a tool call with 1 KiB of params",
        "",
        Most(0.0),
        OwnAllocations(retry::success::<call::Leaf>),
    ),
    row(
        "P5",
        "retry with a budget, success at once",
        "tower, TpsBudget",
        Ratio(0.5),
        Time(retry::budget::<Small>, tower::budget::<Small>),
    )
    .was(Ratio(0.33), "refunds, by group"),
    row(
        "P6",
        "idempotency, replay, with a janitor",
        "tower-resilience 0.13, cache hit",
        Ratio(0.40),
        Time(idempotency::replay_kept::<Small>, peers::records::tower_resilience_hit::<Small>),
    ),
    row(
        "P6",
        "idempotency, replay, with a janitor",
        "moka, hit of get_with",
        Ratio(0.20),
        Time(idempotency::replay_kept::<Small>, peers::records::moka_hit::<Small>),
    ),
    row(
        "P6",
        "idempotency, replay, without a janitor",
        "tower-resilience 0.13, cache hit",
        Nothing,
        Time(idempotency::replay::<Small>, peers::records::tower_resilience_hit::<Small>),
    ),
    row(
        "P7",
        "idempotency, first call",
        "tower-resilience 0.13, cache miss + coalesce",
        Ratio(0.5),
        Time(idempotency::first::<Small>, peers::records::tower_resilience_miss::<Small>),
    )
    .was(Ratio(0.25), "policies, TTLs, fencing"),
    row(
        "P7",
        "idempotency, first call",
        "quick_cache, async miss",
        Ratio(1.5),
        Time(idempotency::first::<Small>, peers::records::quick_cache_miss::<Small>),
    )
    .was(Ratio(0.6), "runs again after a panic"),
    row(
        "P7",
        "idempotency, first call",
        "tower-resilience 0.13, cache miss + coalesce",
        Most(0.0),
        Allocations(idempotency::first::<Small>, peers::records::tower_resilience_miss::<Small>),
    ),
    row(
        "P8",
        "key of 1 KiB nested params",
        "serde_json_canonicalizer + blake3",
        Ratio(0.20),
        Time(keys::key, peers::keys::jcs_and_blake3),
    ),
    row(
        "P8",
        "key of 1 KiB nested params",
        "serde_json_canonicalizer + blake3",
        Most(0.0),
        Allocations(keys::key, peers::keys::jcs_and_blake3),
    ),
    row(
        "P9",
        "idempotency + retry + breaker, first call",
        TR_TRIO,
        Ratio(0.45),
        Time(stack::trio_first, peers::stack::trio_miss::<Small>),
    )
    .was(Ratio(0.17), "policies, TTLs, fencing"),
    row(
        "P9",
        "idempotency + retry + breaker, replay",
        TR_TRIO,
        Ratio(0.80),
        Time(stack::trio_replay, peers::stack::trio_hit::<Small>),
    )
    .was(Ratio(0.40), "policies, TTLs, fencing"),
    row(
        "P10",
        "whole stack, key given, first call",
        "tower, timeout + concurrency limit + retry",
        Ratio(3.5),
        Time(stack::first, tower::stack),
    )
    .was(Ratio(1.3), "tower's know nothing of the call"),
    row(
        "P10",
        "whole stack, key given, first call",
        TR_TRIO,
        Ratio(1.0),
        Time(stack::first, peers::stack::trio_miss::<call::Leaf>),
    ),
    row(
        "P10",
        "whole stack, replay",
        TR_TRIO,
        Nothing,
        Time(stack::replay, peers::stack::trio_hit::<call::Leaf>),
    ),
    row(
        "P10",
        "whole stack, key given, first call",
        "tower, timeout + concurrency limit + retry",
        Most(0.0),
        Allocations(stack::first, tower::stack),
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
    row(
        "P10",
        "whole stack behind envelopes, first call with 1 KiB of params",
        "the whole stack alone",
        Nothing,
        Time(stack::envelopes, stack::new_key),
    ),
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
        Time(peers::telemetry::our_metrics, peers::telemetry::sdk_metrics),
    )
    .was(Ratio(0.35), "two spans a call"),
    row(
        "P12",
        "span of a call that is not sampled",
        "tracing-opentelemetry",
        Ratio(0.20),
        Time(peers::telemetry::our_span, peers::telemetry::tracing_span),
    )
    .was(Ratio(0.10), "two spans a call"),
];
