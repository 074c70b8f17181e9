//! Their records, each set up by its own means.
use super::{Asked, CAPACITY, Runner, Tool};
use ::agent_effects::{EffectFailure, EffectKind, EffectOutcome, Runtime};
use agent_effects_memory::MemoryStore;
use futures_util::TryFutureExt as _;
use std::{fmt::Display, sync::Arc, time::Duration};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_resilience::{cache::CacheLayer, coalesce::CoalesceLayer};

const LONG: Duration = Duration::from_secs(300);

fn cache() -> Result<CacheLayer<Asked, u64>, &'static str> {
    let builder = CacheLayer::builder().name("suite").max_size(CAPACITY.into()).ttl(LONG);
    builder.key_extractor(|asked: &Asked| asked.key).build().map_err(|_| "refuses these settings")
}

pub(super) fn cached() -> Result<Runner, &'static str> {
    Ok(of(cache()?.layer(service_fn(|asked: Asked| (asked.tool)()))))
}

/// As its documentation protects a cache from a stampede.
pub(super) fn coalesced() -> Result<Runner, &'static str> {
    let coalesce = CoalesceLayer::new(|asked: &Asked| asked.key);
    let tool = service_fn(|asked: Asked| (asked.tool)());
    Ok(of(ServiceBuilder::new().layer(cache()?).layer(coalesce).service(tool)))
}

fn of<S>(service: S) -> Runner
where
    S: Service<Asked, Response = u64> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Display,
{
    Arc::new(move |key, tool| {
        let answer = service.clone().oneshot(Asked { key, tool });
        Box::pin(answer.map_err(|error| error.to_string()))
    })
}

pub(super) fn moka() -> Result<Runner, &'static str> {
    let cache =
        ::moka::future::Cache::builder().max_capacity(CAPACITY.into()).time_to_live(LONG).build();
    Ok(Arc::new(move |key: u64, tool: Tool| {
        let cache = cache.clone();
        Box::pin(async move {
            let run = async move { tool().await };
            cache.try_get_with(key, run).await.map_err(|error| error.to_string())
        })
    }))
}

pub(super) fn quick_cache() -> Result<Runner, &'static str> {
    let cache = Arc::new(::quick_cache::sync::Cache::<u64, u64>::new(CAPACITY.into()));
    Ok(Arc::new(move |key, tool: Tool| {
        let cache = cache.clone();
        Box::pin(async move {
            let run = async move { tool().await };
            cache.get_or_insert_async(&key, run).await.map_err(|error| error.to_string())
        })
    }))
}

/// A caller that finds a call in progress waits for it, which is a call of its own there.
pub(super) fn agent_effects() -> Result<Runner, &'static str> {
    let runtime = Runtime::new(MemoryStore::new());
    Ok(Arc::new(move |key, tool: Tool| {
        let runtime = runtime.clone();
        Box::pin(async move {
            let effect = runtime.effect("pay", key.to_string());
            let run = effect.kind(EffectKind::IrreversibleWrite).run(move |_| {
                let running = tool();
                async move { running.await.map_err(EffectFailure::permanent) }
            });
            let mut outcome = run.await.map_err(|error| error.to_string())?;
            if let EffectOutcome::InProgress { id } = outcome {
                outcome = runtime.wait(id, LONG).await.map_err(|error| error.to_string())?;
            }
            match outcome {
                EffectOutcome::Committed(answer) => Ok(answer),
                other => Err(format!("{other:?}")),
            }
        })
    }))
}
