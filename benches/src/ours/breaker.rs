//! The breaker.
use super::GOOD;
use crate::{
    call,
    kind::Kind,
    run::{Comes, Run, runtime},
    small::{self, SmallPolicy},
};
use std::time::Duration;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_breaker::{Breaker, BreakerLayer, Builder};
use tr_core::{BoxError, RequestPolicy, ResponsePolicy, internal::CoarseInstant};

const HOUR: Duration = Duration::from_secs(3600);

/// A closed breaker with its usual rules: failures in a row, and the rate of the last 100 calls.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn breaker() -> Breaker<small::Leaf, SmallPolicy> {
    usual::<small::Leaf, _>(SmallPolicy)
}

/// The same with a breaker for each [`id`](small::Small::id).
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn breakers() -> Breaker<small::Leaf, small::KeyedById> {
    usual::<small::Leaf, _>(small::KeyedById)
}

fn usual<K: Kind, A: Clone>(policy: A) -> Breaker<K::Leaf, A> {
    BreakerLayer::builder()
        .window(100)
        .policy(policy)
        .build()
        .expect(GOOD)
        .layer(K::Leaf::default())
}

/// [`breaker`], closed.
#[must_use]
pub fn closed<K: Kind>() -> Run {
    Run::service(Comes::Through, usual::<K, _>(K::Policy::default()), K::same())
}

/// A closed breaker with a window by number of calls alone.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn by_number<K: Kind>() -> Run {
    closed_by::<K>(BreakerLayer::builder().window(100).rolling(None))
}

/// A closed breaker that counts failures in a row only.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn consecutive<K: Kind>() -> Run {
    closed_by::<K>(BreakerLayer::builder().failure_rate(None))
}

fn closed_by<K: Kind>(rules: Builder) -> Run {
    let layer = rules.policy(K::Policy::default()).build().expect(GOOD);
    Run::service(Comes::Through, layer.layer(K::Leaf::default()), K::same())
}

/// A breaker that failures opened, for an hour.
///
/// # Panics
/// If five failures don't open it.
#[must_use]
pub fn open<K: Kind>() -> Run {
    Run::service(Comes::Refused, opened::<K, _>(K::Policy::default()), K::same())
}

/// The same with requests that carry the time, as inside the stack.
///
/// # Panics
/// If five failures don't open it.
#[must_use]
pub fn open_stamped() -> Run {
    let policy = small::Stamped(CoarseInstant::at(Instant::now().into_std() + HOUR / 2));
    Run::service(Comes::Refused, opened::<small::Leaf, _>(policy), small::Leaf::same())
}

/// [`open_stamped`] with tool calls.
///
/// # Panics
/// If five failures don't open it.
#[must_use]
pub fn open_stamped_call() -> Run {
    let mut call = call::plain();
    call.set_stamp(Some(CoarseInstant::at(Instant::now().into_std())));
    let service = opened::<call::Leaf, _>(tr_core::DefaultPolicy);
    Run::service(Comes::Refused, service, move || call.clone())
}

fn opened<K, A>(policy: A) -> Breaker<K::Leaf, A>
where
    K: Kind,
    A: RequestPolicy<K::Request> + ResponsePolicy<K::Answer> + Clone,
{
    let rules = BreakerLayer::builder().cooldown(HOUR).consecutive_failures(5);
    let layer = rules.policy(policy).build().expect(GOOD);
    let fails = |_: K::Request| async { Err::<K::Answer, BoxError>("connection reset".into()) };
    let (mut failing, mut request) = (layer.layer(service_fn(fails)), K::same());
    runtime().block_on(async {
        for _ in 0..5 {
            let end = failing.ready().await.expect("ready").call(request()).await;
            assert!(end.is_err(), "the service fails");
        }
    });
    layer.layer(K::Leaf::default())
}
