//! The timeouts.
use super::GOOD;
use crate::{
    call,
    kind::Kind,
    run::{Comes, Run},
};
use std::time::Duration;
use tower::{Layer, ServiceBuilder};
use tr_timeout::{AttemptTimeoutLayer, DeadlineLayer, DefaultDeadlineLayer};

/// The attempt timeout around a service that answers at once.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn attempt<K: Kind>() -> Run {
    let layer = AttemptTimeoutLayer::builder().policy(K::Policy::default()).build().expect(GOOD);
    Run::service(Comes::Through, layer.layer(K::Leaf::default()), K::same())
}

/// A deadline for tool calls that have none, and the layer that keeps it.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn deadline() -> Run {
    let default = DefaultDeadlineLayer::new(Duration::from_secs(10));
    let service = ServiceBuilder::new()
        .layer(default.expect(GOOD))
        .layer(DeadlineLayer::builder().build().expect(GOOD))
        .service(call::Leaf);
    Run::service(Comes::Through, service, call::same())
}
