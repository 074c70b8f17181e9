//! A process that shares its breakers, or what would be one: a layer, its tool and its own connection.
use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_breaker::{
    BreakerHandle, BreakerLayer, CircuitOpen,
    share::{Builder, Health, Sharing, Status},
};
use tr_core::{BoxError, BreakerState, KeyRef, Params, ToolCall, ToolOutcome};

/// Failures in a row that open a breaker here.
pub(crate) const FAILURES: u32 = 3;

pub(crate) struct Peer {
    pub(crate) layer: BreakerLayer,
    pub(crate) health: Health,
    task: JoinHandle<()>,
    tool_works: Arc<AtomicBool>,
}

impl Peer {
    /// One with a cooldown of 30 s.
    pub(crate) fn new(url: &str) -> Self {
        Self::with(url, Duration::from_secs(30), Duration::from_millis(500))
    }

    pub(crate) fn with(url: &str, cooldown: Duration, every: Duration) -> Self {
        Self::of(Self::layer(cooldown), url, every)
    }

    fn layer(cooldown: Duration) -> BreakerLayer {
        let layer = BreakerLayer::builder().consecutive_failures(FAILURES).cooldown(cooldown);
        layer.successes_to_close(1).build().unwrap()
    }

    pub(crate) fn of(layer: BreakerLayer, url: &str, every: Duration) -> Self {
        Self::built(layer, Sharing::builder(url).namespace("tests").every(every))
    }

    /// A peer with these sharing settings, and a cooldown of 30 s.
    pub(crate) fn sharing(sharing: Builder) -> Self {
        Self::built(Self::layer(Duration::from_secs(30)), sharing)
    }

    fn built(layer: BreakerLayer, sharing: Builder) -> Self {
        let sharing = sharing.build(layer.registry()).unwrap();
        let health = sharing.health();
        let task = tokio::spawn(sharing.run());
        Self { layer, health, task, tool_works: Arc::default() }
    }

    pub(crate) async fn connected(self) -> Self {
        self.status_when(|status| status.connected).await;
        self
    }

    pub(crate) async fn status_when(&self, is_right: impl Fn(&Status) -> bool) -> Status {
        let what = || format!("{:?}", self.health.status());
        until(what, || Some(self.health.status()).filter(&is_right)).await
    }

    pub(crate) fn breaker(&self, tool: &str) -> BreakerHandle {
        self.layer.registry().breaker(KeyRef::new(tool))
    }

    pub(crate) async fn state_becomes(&self, tool: &str, state: BreakerState) {
        let breaker = self.breaker(tool);
        let what = || format!("{breaker:?} to be {state:?}, {:?}", self.health.status());
        until(what, || (breaker.state() == state).then_some(())).await;
    }

    pub(crate) fn mend_tool(&self) {
        self.tool_works.store(true, Relaxed);
    }

    /// One call; whether the tool was called.
    pub(crate) async fn call(&self, tool: &str) -> bool {
        let works = self.tool_works.clone();
        let inner = service_fn(move |_: ToolCall| {
            ready(match works.load(Relaxed) {
                true => Ok(ToolOutcome::success(serde_json::Value::Null)),
                false => Err::<_, BoxError>("connection refused".into()),
            })
        });
        let mut service = self.layer.layer(inner);
        let call = ToolCall::new(tool, Params::empty_object());
        match service.ready().await.unwrap().call(call).await {
            Ok(_) => true,
            Err(error) => !error.is::<CircuitOpen>(),
        }
    }

    /// Fails until its breaker opens.
    pub(crate) async fn trip(&self, tool: &str) {
        for _ in 0..FAILURES {
            assert!(self.call(tool).await, "{tool} is closed");
        }
        assert_eq!(self.breaker(tool).state(), BreakerState::Open);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What `look` finds, under a deadline.
pub(crate) async fn until<T>(what: impl Fn() -> String, look: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "waited for {}", what());
        sleep(Duration::from_millis(1)).await;
    }
}
