//! Each layer alone, several together, and tower's own beside those that it has too.
use benches::{
    call::Leaf as Call,
    criterion::group,
    http::Leaf as Http,
    kind::Kind,
    kinds,
    ours::{
        bare, breaker, idempotency, integrity, keys, loopguard, retry, stack, telemetry, timeout,
    },
    small::Leaf as Small,
    tower,
};
use criterion::{Criterion, criterion_group, criterion_main};

const MESSAGES: &str = "1,000 messages";

fn all(criterion: &mut Criterion) {
    let mut group = |name, works: &[_]| group(criterion, name, works);
    group("no layer", &[("leaf", kinds!(bare: Small, Call, Http))]);
    group(
        "breaker",
        &[
            ("closed", kinds!(breaker::closed: Small, Call, Http)),
            ("closed, window by number", kinds!(breaker::by_number: Small, Call, Http)),
            ("closed, consecutive failures", kinds!(breaker::consecutive: Small, Call, Http)),
            ("open", kinds!(breaker::open: Small, Call, Http)),
        ],
    );
    group(
        "retry",
        &[
            ("success", kinds!(retry::success: Small, Call, Http)),
            ("success, tower", kinds!(tower::retry: Small, Call, Http)),
            ("success, budget", kinds!(retry::budget: Small, Call, Http)),
            ("success, budget, tower", kinds!(tower::budget: Small, Call, Http)),
        ],
    );
    group(
        "timeout",
        &[
            ("attempt timeout", kinds!(timeout::attempt: Small, Call, Http)),
            ("timeout, tower", kinds!(tower::timeout: Small, Call, Http)),
            ("deadline", &[(Call::NAME, timeout::deadline)]),
        ],
    );
    group(
        "idempotency",
        &[
            ("first call", kinds!(idempotency::first: Small, Call)),
            ("replay", kinds!(idempotency::replay: Small, Call)),
            ("replay, with a janitor", kinds!(idempotency::replay_kept: Small, Call)),
        ],
    );
    group("keys", &[("key", &[("1 KiB of params", keys::key)])]);
    group(
        "loop guard",
        &[
            ("success", &[(Call::NAME, loopguard::success)]),
            ("success, with signals", &[(Call::NAME, loopguard::signals)]),
        ],
    );
    group(
        "integrity",
        &[
            ("call that no model made", &[(Call::NAME, integrity::passed)]),
            ("use and result recorded", &[(Call::NAME, integrity::cycle)]),
            ("validation", &[(MESSAGES, integrity::validate)]),
            ("plan of a repair", &[(MESSAGES, integrity::plan)]),
        ],
    );
    group(
        "telemetry",
        &[
            ("events, no subscriber", kinds!(telemetry::events: Small, Call, Http)),
            ("redaction", &[("1 KiB of text", telemetry::redaction)]),
        ],
    );
    group(
        "stack",
        &[
            ("idempotency, retry, breaker, first call", &[(Small::NAME, stack::trio_first)]),
            ("idempotency, retry, breaker, replay", &[(Small::NAME, stack::trio_replay)]),
            ("timeout, retry, limit of tower", &[(Call::NAME, tower::stack)]),
            ("ToolStack, first call", &[(Call::NAME, stack::first)]),
            ("ToolStack, first call, key to be hashed", &[(Call::NAME, stack::new_key)]),
            ("ToolStack behind envelopes", &[(Call::NAME, stack::envelopes)]),
            ("ToolStack, replay", &[(Call::NAME, stack::replay)]),
            ("ToolStack, without a key", &[(Call::NAME, stack::without_key)]),
            ("ToolStack, with signals of loops", &[(Call::NAME, stack::signals)]),
        ],
    );
}

criterion_group!(benches, all);
criterion_main!(benches);
