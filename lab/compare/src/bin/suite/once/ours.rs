//! Our records, in memory.
use super::{Asked, CAPACITY, Runner, Tool};
use benches::small::nth_key;
use futures_util::TryFutureExt as _;
use std::sync::Arc;
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{
    Classification, DedupeKey, Effect, End, InvalidKey, KeyRef, Ran, Replay, RequestPolicy,
    ResponsePolicy, StoreResponse, Verdict,
    canonical::{Digest, Key},
};
use tr_idempotency::IdempotencyLayer;

/// What the layer wants to know: a payment, say, that must not be made twice.
#[derive(Clone, Copy, Debug)]
struct SmallPolicy;

impl RequestPolicy<Asked> for SmallPolicy {
    fn key<'r>(&self, _: &'r Asked) -> KeyRef<'r> {
        KeyRef::new("pay")
    }

    fn effect(&self, _: &Asked) -> Effect {
        Effect::Mutating
    }

    fn idempotency_key(&self, asked: &Asked) -> Result<Option<DedupeKey>, InvalidKey> {
        let bytes = nth_key(asked.key);
        Ok(Some(DedupeKey { key: Key::from_bytes(bytes), digest: Digest::from_bytes(bytes) }))
    }
}

impl ResponsePolicy<u64> for SmallPolicy {
    fn classify<'r>(&self, end: End<'r, u64>) -> Classification<'r> {
        match end {
            Ok(_) => Classification::SUCCESS,
            Err(_) => Classification::new(Verdict::Permanent, Ran::Yes, "failed"),
        }
    }
}

impl StoreResponse<u64> for SmallPolicy {
    type Stored = u64;

    fn store(&self, answer: &u64) -> Option<u64> {
        Some(*answer)
    }

    fn load(&self, stored: u64, _: Replay) -> u64 {
        stored
    }
}

pub(super) fn runner() -> Result<Runner, &'static str> {
    let layer =
        IdempotencyLayer::builder_for().capacity(CAPACITY.into()).policy(SmallPolicy).build();
    let layer = layer.map_err(|_| "refuses these settings")?;
    let service = layer.layer(service_fn(|asked: Asked| (asked.tool)()));
    Ok(Arc::new(move |key, tool: Tool| {
        let answer = service.clone().oneshot(Asked { key, tool });
        Box::pin(answer.map_err(|error| error.to_string()))
    }))
}
