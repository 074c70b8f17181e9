//! Several layers together.
use super::{GOOD, RECORDS, idempotency};
use crate::{
    call,
    run::{Comes, Run},
    small::{self, Small, SmallPolicy},
};
use std::hint::black_box;
use tool_reliability::{Envelopes, Guarded, ToolStack, envelopes::Answer};
use tower::{ServiceBuilder, ServiceExt};
use tr_breaker::{Breaker, BreakerLayer};
use tr_idempotency::Idempotency;
use tr_loopguard::Signals;
use tr_retry::{Retry, RetryLayer};

/// Idempotency around retry around a breaker.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn trio() -> Idempotency<Retry<Breaker<small::Leaf, SmallPolicy>, SmallPolicy>, SmallPolicy, u64>
{
    ServiceBuilder::new()
        .layer(idempotency::layer::<small::Leaf>())
        .layer(RetryLayer::builder().policy(SmallPolicy).build().expect(GOOD))
        .layer(BreakerLayer::builder().window(100).policy(SmallPolicy).build().expect(GOOD))
        .service(small::Leaf)
}

/// A first call through [`trio`].
#[must_use]
pub fn trio_first() -> Run {
    Run::service(Comes::Through, trio(), small::unique())
}

/// A replay through [`trio`].
#[must_use]
pub fn trio_replay() -> Run {
    Run::service(Comes::Replayed, trio(), Small::same)
}

/// The whole stack around a tool.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn stack() -> Guarded<call::Leaf> {
    let stack = ToolStack::builder().idempotency(|records| records.capacity(RECORDS)).build();
    stack.expect(GOOD).service(call::Leaf)
}

/// A first call with a key through the whole stack, whose loop guard looks at each answer.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn signals() -> Run {
    let stack = ToolStack::builder()
        .idempotency(|records| records.capacity(RECORDS))
        .loop_guard(|guard| guard.signals(Signals::default()))
        .build();
    let stack = stack.expect(GOOD).service(call::Leaf);
    Run::service(Comes::Through, stack, call::various())
}

/// The same calls through the stack without signals.
#[must_use]
pub fn various() -> Run {
    Run::service(Comes::Through, stack(), call::various())
}

/// A first call with a key through [`stack`].
#[must_use]
pub fn first() -> Run {
    Run::service(Comes::Through, stack(), call::unique(0))
}

/// The same call as a request of UTEE through [`Envelopes`] around [`stack`]: read, run, and written.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn envelopes() -> Run {
    let tools = Envelopes::new(stack())
        .map_request(|text: String| text.into())
        .map_response(|answer: Answer| black_box(answer.to_bytes()));
    let params = call::params();
    let mut n = 0_u64;
    let request = move || {
        n += 1;
        format!(
            r#"{{"tool":"flight_search","action":"","params":{params},"requestId":"r-{n}","idempotencyKey":"k-{n}"}}"#
        )
    };
    Run::service(Comes::Through, tools, request)
}

/// A call with a key that has to be hashed, as it comes out of such a request, through [`stack`].
#[must_use]
pub fn new_key() -> Run {
    Run::service(Comes::Through, stack(), call::new())
}

/// A call without a key through [`stack`].
#[must_use]
pub fn without_key() -> Run {
    let call = call::plain();
    Run::service(Comes::Through, stack(), move || call.clone())
}

/// A replay through [`stack`].
#[must_use]
pub fn replay() -> Run {
    Run::service(Comes::Replayed, stack(), call::same())
}
