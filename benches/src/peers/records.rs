//! Caches and single flight: tower-resilience, moka, `quick_cache`.
use crate::{
    ours::RECORDS,
    run::{Comes, Run},
    small::{Leaf, Small, unique},
};
use std::{convert::Infallible, hint::black_box, time::Duration};
use tower::{Layer, ServiceBuilder};
use tower_resilience::{cache::CacheLayer, coalesce::CoalesceLayer};

const TTL: Duration = Duration::from_secs(300);

pub(super) type Key = [u8; 32];

pub(super) fn key(request: &Small) -> Key {
    request.key
}

pub(super) fn cache<Q: 'static>(key: fn(&Q) -> Key) -> CacheLayer<Q, Key> {
    CacheLayer::builder()
        .name("bench")
        .max_size(RECORDS)
        .ttl(TTL)
        .key_extractor(key)
        .build()
        .expect("good settings")
}

/// tower-resilience: a hit in its cache.
#[must_use]
pub fn tower_resilience_hit() -> Run {
    Run::service(Comes::Replayed, cache(key).layer(Leaf), Small::same)
}

/// tower-resilience: a miss in its cache, coalesced.
#[must_use]
pub fn tower_resilience_miss() -> Run {
    let coalesce = CoalesceLayer::new(key);
    let service = ServiceBuilder::new().layer(cache(key)).layer(coalesce).service(Leaf);
    Run::service(Comes::Through, service, unique())
}

/// moka: a hit of `get_with`.
#[must_use]
pub fn moka_hit() -> Run {
    let cache =
        moka::future::Cache::builder().max_capacity(RECORDS as u64).time_to_live(TTL).build();
    Run::futures(Comes::Replayed, move || {
        let (cache, request) = (cache.clone(), black_box(Small::same()));
        async move {
            let answer = async move { Leaf.answer(request).expect("succeeds") };
            Ok::<u64, Infallible>(cache.get_with(request.key, answer).await)
        }
    })
}

/// `quick_cache`: a miss of `get_or_insert_async`.
#[must_use]
pub fn quick_cache_miss() -> Run {
    let cache = std::sync::Arc::new(quick_cache::sync::Cache::<Key, u64>::new(RECORDS));
    let mut next = unique();
    Run::futures(Comes::Through, move || {
        let (cache, request) = (cache.clone(), black_box(next()));
        async move {
            let answer = async move { Leaf.answer(request) };
            cache.get_or_insert_async(&request.key, answer).await
        }
    })
}
