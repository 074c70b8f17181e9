//! Records of calls, in memory.
use super::{GOOD, RECORDS};
use crate::{
    kind::{Keyed, Kind},
    run::{Comes, Run, runtime},
};
use tower::{Layer, Service};
use tr_core::StoreResponse;
use tr_idempotency::{Idempotency, IdempotencyLayer};

/// What is kept of an answer.
type Stored<K> = <<K as Kind>::Policy as StoreResponse<<K as Kind>::Answer>>::Stored;

/// Idempotency around a leaf.
type Recorded<K> = Idempotency<<K as Kind>::Leaf, <K as Kind>::Policy, Stored<K>>;

/// The layer.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn layer<K: Keyed>() -> IdempotencyLayer<K::Policy, Stored<K>> {
    let records = IdempotencyLayer::builder_for().capacity(RECORDS);
    records.policy(K::Policy::default()).build().expect(GOOD)
}

/// A replay.
#[must_use]
pub fn replay<K: Keyed>() -> Run
where
    Recorded<K>: Service<K::Request>,
{
    Run::service(Comes::Replayed, layer::<K>().layer(K::Leaf::default()), K::same())
}

/// A replay while a janitor keeps the clock.
#[must_use]
pub fn replay_kept<K: Keyed>() -> Run
where
    Recorded<K>: Service<K::Request>,
{
    let layer = layer::<K>();
    let runtime = runtime();
    let janitor = {
        let _inside = runtime.enter();
        layer.handle().spawn_janitor()
    };
    Run::service_on(runtime, Comes::Replayed, layer.layer(K::Leaf::default()), K::same())
        .holding(janitor)
}

/// A first call: claimed, run, recorded.
#[must_use]
pub fn first<K: Keyed>() -> Run
where
    Recorded<K>: Service<K::Request>,
{
    Run::service(Comes::Through, layer::<K>().layer(K::Leaf::default()), K::unique())
}
