//! Caches and single flight: tower-resilience, moka, `quick_cache`.
use benches::{
    kind::Keyed,
    ours::RECORDS,
    run::{Comes, Run},
};
use std::{convert::Infallible, hint::black_box, sync::Arc, time::Duration};
use tower::{Layer, Service as _, ServiceBuilder};
use tower_resilience::{cache::CacheLayer, coalesce::CoalesceLayer};

const TTL: Duration = Duration::from_secs(300);

pub(super) type Key = [u8; 32];

pub(super) fn cache<K: Keyed>() -> CacheLayer<K::Request, Key> {
    CacheLayer::builder()
        .name("bench")
        .max_size(RECORDS)
        .ttl(TTL)
        .key_extractor(K::key)
        .build()
        .expect("good settings")
}

/// tower-resilience: a hit in its cache.
#[must_use]
pub fn tower_resilience_hit<K: Keyed>() -> Run {
    Run::service(Comes::Replayed, cache::<K>().layer(K::Leaf::default()), K::same())
}

/// tower-resilience: a miss in its cache, coalesced.
#[must_use]
pub fn tower_resilience_miss<K: Keyed>() -> Run {
    let coalesce = CoalesceLayer::new(K::key as fn(&K::Request) -> Key);
    let service =
        ServiceBuilder::new().layer(cache::<K>()).layer(coalesce).service(K::Leaf::default());
    Run::service(Comes::Through, service, K::unique())
}

/// moka: a hit of `get_with`.
#[must_use]
pub fn moka_hit<K: Keyed>() -> Run {
    let cache =
        moka::future::Cache::builder().max_capacity(RECORDS as u64).time_to_live(TTL).build();
    let mut same = K::same();
    Run::futures(Comes::Replayed, move || {
        let (cache, request) = (cache.clone(), black_box(same()));
        async move {
            let key = K::key(&request);
            let answer = async move { K::Leaf::default().call(request).await.expect("succeeds") };
            Ok::<K::Answer, Infallible>(cache.get_with(key, answer).await)
        }
    })
}

/// `quick_cache`: a miss of `get_or_insert_async`.
#[must_use]
pub fn quick_cache_miss<K: Keyed>() -> Run {
    let cache = Arc::new(quick_cache::sync::Cache::<Key, K::Answer>::new(RECORDS));
    let mut next = K::unique();
    Run::futures(Comes::Through, move || {
        let (cache, request) = (cache.clone(), black_box(next()));
        async move {
            let key = K::key(&request);
            cache
                .get_or_insert_async(&key, async move { K::Leaf::default().call(request).await })
                .await
        }
    })
}
