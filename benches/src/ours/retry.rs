//! Retry.
use super::GOOD;
use crate::{
    kind::Kind,
    run::{Comes, Run},
    small,
};
use tower::Layer;
use tr_retry::{Budget, Retry, RetryLayer};

/// Retry where the first attempt succeeds.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn success<K: Kind>() -> Run {
    let layer = RetryLayer::builder().policy(K::Policy::default()).build().expect(GOOD);
    Run::service(Comes::Through, layer.layer(K::Leaf::default()), K::same())
}

/// The same with a budget.
#[must_use]
pub fn budget<K: Kind>() -> Run {
    Run::service(Comes::Through, with_budget::<K>(), K::same())
}

/// Retry with a budget.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn budgeted() -> Retry<small::Leaf, small::SmallPolicy> {
    with_budget::<small::Leaf>()
}

fn with_budget<K: Kind>() -> Retry<K::Leaf, K::Policy> {
    let budget = Budget::builder().build().expect(GOOD);
    let layer = RetryLayer::builder().budget(budget).policy(K::Policy::default()).build();
    layer.expect(GOOD).layer(K::Leaf::default())
}
