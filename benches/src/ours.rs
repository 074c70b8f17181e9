//! Our layers at the work that is measured.
use crate::{
    call,
    run::{Comes, Run, runtime},
    small::{self, Small, SmallPolicy},
};
use std::time::Duration;
use tokio::time::Instant;
use tool_reliability::{Guarded, ToolStack};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tr_breaker::{Breaker, BreakerLayer, Builder};
use tr_core::{
    BoxError,
    canonical::{Digest, Key, KeyParts, KeyScope, KeySource, Rules},
    internal::CoarseInstant,
};
use tr_idempotency::{Idempotency, IdempotencyLayer};
use tr_loopguard::{LoopGuardLayer, Signals};
use tr_retry::{Budget, Retry, RetryLayer};
use tr_timeout::AttemptTimeoutLayer;

/// Records that are kept, ours and the peers'.
pub const RECORDS: usize = 10_000;

const HOUR: Duration = Duration::from_secs(3600);

/// The leaf alone, with a [`Small`].
#[must_use]
pub fn floor_small() -> Run {
    Run::service(Comes::Through, small::Leaf, Small::same)
}

/// The leaf alone, with a tool call.
#[must_use]
pub fn floor_call() -> Run {
    Run::service(Comes::Through, call::Leaf, call::same())
}

/// A closed breaker with its usual rules: failures in a row, and the rate of the last 100 calls.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn breaker() -> Breaker<small::Leaf, SmallPolicy> {
    let layer = BreakerLayer::builder().window(100).policy(SmallPolicy).build();
    layer.expect("good settings").layer(small::Leaf)
}

/// The same with a breaker for each [`id`](Small::id).
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn breakers() -> Breaker<small::Leaf, small::KeyedById> {
    let layer = BreakerLayer::builder().window(100).policy(small::KeyedById).build();
    layer.expect("good settings").layer(small::Leaf)
}

/// [`breaker`], closed.
#[must_use]
pub fn breaker_closed() -> Run {
    Run::service(Comes::Through, breaker(), Small::same)
}

/// A closed breaker with a window by number of calls alone.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn breaker_by_number() -> Run {
    let layer = BreakerLayer::builder().window(100).rolling(None).policy(SmallPolicy).build();
    let service = layer.expect("good settings").layer(small::Leaf);
    Run::service(Comes::Through, service, Small::same)
}

/// A closed breaker that counts failures in a row only.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn breaker_consecutive() -> Run {
    let layer = BreakerLayer::builder().failure_rate(None).policy(SmallPolicy).build();
    let service = layer.expect("good settings").layer(small::Leaf);
    Run::service(Comes::Through, service, Small::same)
}

/// A breaker that failures opened, for an hour.
///
/// # Panics
/// If five failures don't open it.
#[must_use]
pub fn breaker_open() -> Run {
    let service = opened(&slow_to_probe().policy(SmallPolicy).build().expect("good settings"));
    Run::service(Comes::Refused, service, Small::same)
}

/// The same with requests that carry the time, as inside the stack.
///
/// # Panics
/// If five failures don't open it.
#[must_use]
pub fn breaker_open_stamped() -> Run {
    let policy = small::Stamped(CoarseInstant::at(Instant::now().into_std() + HOUR / 2));
    let service = opened(&slow_to_probe().policy(policy).build().expect("good settings"));
    Run::service(Comes::Refused, service, Small::same)
}

fn opened<A>(layer: &BreakerLayer<A>) -> Breaker<small::Leaf, A>
where
    Breaker<small::Leaf, A>: Service<Small, Error = BoxError>,
    A: Clone,
    <Breaker<small::Leaf, A> as Service<Small>>::Response: std::fmt::Debug,
{
    let mut service = layer.layer(small::Leaf);
    runtime().block_on(async {
        for _ in 0..5 {
            let failed = service.ready().await.expect("ready").call(Small::failing()).await;
            failed.expect_err("the leaf fails");
        }
    });
    service
}

/// [`breaker_open_stamped`] with tool calls.
///
/// # Panics
/// If five failures don't open it.
#[must_use]
pub fn breaker_open_stamped_call() -> Run {
    let layer = slow_to_probe().build().expect("good settings");
    let mut failing = layer.layer(tower::service_fn(|_| async {
        Err::<tr_core::ToolOutcome, BoxError>("connection reset".into())
    }));
    let mut call = call::plain();
    runtime().block_on(async {
        for _ in 0..5 {
            let failed = failing.ready().await.expect("ready").call(call.clone()).await;
            failed.expect_err("the leaf fails");
        }
    });
    call.set_stamp(Some(CoarseInstant::at(Instant::now().into_std())));
    Run::service(Comes::Refused, layer.layer(call::Leaf), move || call.clone())
}

fn slow_to_probe() -> Builder {
    BreakerLayer::builder().cooldown(HOUR).consecutive_failures(5)
}

/// Retry where the first attempt succeeds.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn retry() -> Run {
    let layer = RetryLayer::builder().policy(SmallPolicy).build().expect("good settings");
    Run::service(Comes::Through, layer.layer(small::Leaf), Small::same)
}

/// The same with tool calls.
#[must_use]
pub fn retry_call() -> Run {
    let service = RetryLayer::default().layer(call::Leaf);
    Run::service(Comes::Through, service, call::same())
}

/// Retry with a budget.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn budgeted() -> Retry<small::Leaf, SmallPolicy> {
    let budget = Budget::builder().build().expect("good settings");
    let layer = RetryLayer::builder().budget(budget).policy(SmallPolicy).build();
    layer.expect("good settings").layer(small::Leaf)
}

/// [`budgeted`], where the first attempt succeeds.
#[must_use]
pub fn retry_budget() -> Run {
    Run::service(Comes::Through, budgeted(), Small::same)
}

/// The attempt timeout around a tool that answers at once.
#[must_use]
pub fn timeout() -> Run {
    let service = AttemptTimeoutLayer::default().layer(call::Leaf);
    Run::service(Comes::Through, service, call::same())
}

/// The loop guard around a success.
#[must_use]
pub fn loop_guard() -> Run {
    Run::service(Comes::Through, LoopGuardLayer::default().layer(call::Leaf), call::same())
}

/// A loop guard that looks at each answer, late in a turn of tens of thousands of calls.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn loop_signals() -> Run {
    let layer = LoopGuardLayer::builder().signals(Signals::default()).build();
    let guard = layer.expect("good settings").layer(call::Leaf);
    Run::service(Comes::Through, guard, call::various())
}

/// The same early in a turn.
#[must_use]
pub fn loop_signals_early() -> Run {
    loop_signals().warm_after(128)
}

/// Records in memory.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn records() -> Idempotency<small::Leaf, SmallPolicy, u64> {
    let layer = IdempotencyLayer::builder_for().capacity(RECORDS).policy(SmallPolicy).build();
    layer.expect("good settings").layer(small::Leaf)
}

/// A replay.
#[must_use]
pub fn replay() -> Run {
    Run::service(Comes::Replayed, records(), Small::same)
}

/// A replay while a janitor keeps the clock.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn replay_kept() -> Run {
    let layer = IdempotencyLayer::builder_for().capacity(RECORDS).policy(SmallPolicy).build();
    let layer = layer.expect("good settings");
    let runtime = runtime();
    let janitor = {
        let _inside = runtime.enter();
        layer.handle().spawn_janitor()
    };
    Run::service_on(runtime, Comes::Replayed, layer.layer(small::Leaf), move || {
        let _here_as_long_as_the_run = &janitor;
        Small::same()
    })
}

/// A first call: claimed, run, recorded.
#[must_use]
pub fn first() -> Run {
    Run::service(Comes::Through, records(), small::unique())
}

/// Key and digest of a call with 1 KiB of params.
///
/// # Panics
/// Never: the params are JSON.
#[must_use]
pub fn key() -> Run {
    let (params, rules) = (call::params(), Rules::default());
    Run::function(move || {
        let digest = Digest::of_params(&params, &rules).expect("JSON");
        Key::derive(&KeyParts {
            scope: KeyScope::Instance("bench"),
            namespace: None,
            tool: "flight_search",
            action: None,
            source: KeySource::Derived(&digest),
            step: None,
        })
    })
}

/// Idempotency around retry around a breaker.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn trio() -> Idempotency<Retry<Breaker<small::Leaf, SmallPolicy>, SmallPolicy>, SmallPolicy, u64>
{
    let good = "good settings";
    ServiceBuilder::new()
        .layer(
            IdempotencyLayer::builder_for()
                .capacity(RECORDS)
                .policy(SmallPolicy)
                .build()
                .expect(good),
        )
        .layer(RetryLayer::builder().policy(SmallPolicy).build().expect(good))
        .layer(BreakerLayer::builder().window(100).policy(SmallPolicy).build().expect(good))
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
    stack.expect("good settings").service(call::Leaf)
}

/// A first call with a key through the whole stack, whose loop guard looks at each answer.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn stack_signals() -> Run {
    let stack = ToolStack::builder()
        .idempotency(|records| records.capacity(RECORDS))
        .loop_guard(|guard| guard.signals(Signals::default()))
        .build();
    let stack = stack.expect("good settings").service(call::Leaf);
    Run::service(Comes::Through, stack, call::various())
}

/// The same calls through the stack without signals.
#[must_use]
pub fn stack_various() -> Run {
    Run::service(Comes::Through, stack(), call::various())
}

/// A first call with a key through [`stack`].
#[must_use]
pub fn stack_first() -> Run {
    Run::service(Comes::Through, stack(), call::unique(0))
}

/// A call without a key through [`stack`].
#[must_use]
pub fn stack_without_key() -> Run {
    let call = call::plain();
    Run::service(Comes::Through, stack(), move || call.clone())
}

/// A replay through [`stack`].
#[must_use]
pub fn stack_replay() -> Run {
    Run::service(Comes::Replayed, stack(), call::same())
}
