//! The layer: everything put together.
use crate::{
    builder::Builder,
    claim::Shared,
    clock::{Clock, millis},
    config::Config,
    handle::Handle,
    local::{Store, budget::Budget, table::Common},
    protocol::Ttls,
    remote::{
        client::{Client, Gate},
        probe::Prober,
    },
    service::Idempotency,
};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tower_layer::Layer;
use tr_core::{ConfigError, DefaultPolicy, ToolOutcome, internal::Sharded};

/// Wraps services in [`Idempotency`]; all services of one layer share one set of records.
///
/// `V` is the stored form of a response: a [`ToolOutcome`], or what
/// [`builder_for`](IdempotencyLayer::builder_for) is called for.
pub struct IdempotencyLayer<A = DefaultPolicy, V = ToolOutcome> {
    answers: A,
    shared: Sharded<Shared<V>>,
    handle: Handle<V>,
}

impl IdempotencyLayer {
    /// Starts from the defaults, for records of [`ToolOutcome`]s.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts from the defaults, for records of `V`: what the policy's
    /// [`StoreResponse`](tr_core::StoreResponse) keeps of another type of responses.
    pub fn builder_for<V>() -> Builder<DefaultPolicy, V> {
        Builder::default()
    }
}

impl<A, V: Clone + Send + 'static> Builder<A, V> {
    /// Builds the layer.
    ///
    /// # Errors
    /// If a setting is out of its range; the error lists every such setting.
    pub fn build(self) -> Result<IdempotencyLayer<A, V>, ConfigError> {
        self.check()?;
        Ok(self.build_unchecked())
    }

    /// Builds without the check, for settings that are within their ranges.
    fn build_unchecked(self) -> IdempotencyLayer<A, V> {
        let Self { answers, settings: it } = self;
        let config = Config {
            conflicts: it.conflicts,
            derived: it.derived,
            ttls: Ttls {
                done: millis(it.done),
                failed: millis(it.failed),
                inflight: millis(it.inflight),
                unknown: millis(it.unknown),
            },
            grace: it.grace,
            max_wait: it.max_wait,
        };
        let common = Common {
            clock: Clock::new(&*it.wall),
            fingerprints: it.fingerprints,
            max_waiters: it.max_waiters,
            budget: Budget::new(it.most_kept, it.most_bytes),
        };
        let store = Arc::new(Store::new(it.capacity, common));
        let probe = it.probe.map(|probe| Prober::new(probe, it.probe_patience));
        let remote = it.store.map(|(records, format)| {
            let gate = Gate::new(records, it.frames.seal.clone(), it.patience);
            let (format, observer) = (format(it.most_bytes, it.frames), it.observer.clone());
            Arc::new(Client { gate, format, settings: it.stored, observer, probe: probe.clone() })
        });
        let handle = Handle { store: store.clone(), ttls: config.ttls, remote: remote.clone() };
        let places = it.max_in_flight.map(|calls| Arc::new(Semaphore::new(calls)));
        let shared = Shared { config, store, observer: it.observer, remote, probe, places };
        IdempotencyLayer { answers, shared: Sharded::new(shared), handle }
    }
}

impl Default for IdempotencyLayer {
    /// Records in this process, by the defaults of [`Builder`].
    fn default() -> Self {
        Builder::default().build_unchecked()
    }
}

impl<A, V> IdempotencyLayer<A, V> {
    /// The handle for listing, settling and clearing records.
    #[must_use]
    pub fn handle(&self) -> Handle<V> {
        self.handle.clone()
    }
}

impl<A: Copy, V> Clone for IdempotencyLayer<A, V> {
    fn clone(&self) -> Self {
        let (answers, shared) = (self.answers, self.shared.clone());
        Self { answers, shared, handle: self.handle.clone() }
    }
}

tr_core::debug_parts! { IdempotencyLayer<A, V>, |it| config = it.shared.config }

impl<S, A: Copy, V> Layer<S> for IdempotencyLayer<A, V> {
    type Service = Idempotency<S, A, V>;

    fn layer(&self, inner: S) -> Self::Service {
        Idempotency::new(inner, self.answers, self.shared.shard())
    }
}
