//! A process as its callers know it: the layer around a tool that does harm when it runs twice.
use crate::{
    faults::Fault,
    process::{LEASE, PATIENCE, PAUSE, Point, Tool},
    world::World,
};
use std::{
    error::Error,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tower::{ServiceBuilder, ServiceExt as _, service_fn, util::BoxCloneSyncService};
use tr_core::{BoxError, Params, Ran, ToolCall, ToolOutcome, failure_info};
use tr_idempotency::{IdempotencyLayer, redis::Redis};

/// The call that may run once.
pub(crate) const PAY: &str = "pay";

/// Told where a run of [`PAY`] stands.
pub(crate) type Hook = Arc<dyn Fn(Point) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What a caller gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Ran { recorded: bool },
    Replayed,
    Refused { code: String, ran: Ran, why: String },
}

/// A process: its own connection, its own tables.
#[derive(Clone)]
pub(crate) struct Process {
    service: BoxCloneSyncService<ToolCall, ToolOutcome, BoxError>,
    /// It has run [`PAY`].
    ran: Arc<AtomicBool>,
}

impl Process {
    /// `tool` counts the runs of [`PAY`].
    pub(crate) fn new(store: Redis, tool: &Arc<Tool>, at: Option<Hook>) -> Self {
        let (tool, ran) = (tool.clone(), Arc::new(AtomicBool::new(false)));
        let runs = ran.clone();
        let layer = IdempotencyLayer::builder().store(store).inflight_ttl(LEASE).build().unwrap();
        let service =
            ServiceBuilder::new().layer(layer).service(service_fn(move |call: ToolCall| {
                let (tool, at, runs) = (tool.clone(), at.clone(), runs.clone());
                async move {
                    if call.parts().idempotency.key.as_deref() == Some(PAY) {
                        let at = async |point| {
                            if let Some(at) = &at {
                                at(point).await;
                            }
                        };
                        at(Point::AfterClaim).await;
                        runs.store(true, Relaxed);
                        tool.run(call.fencing_token().expect("it runs under a claim").epoch);
                        at(Point::AfterRun).await;
                    }
                    Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!("paid")))
                }
            }));
        Self { service: BoxCloneSyncService::new(service), ran }
    }

    /// Calls, and checks that the reported run is true.
    pub(crate) async fn ask(&self, name: &str) -> Told {
        let params = Params::from_text(r#"{"amount": 5}"#).unwrap();
        let call = ToolCall::new("pay", params).session("s-1").idempotency_key(name);
        let told = match self.service.clone().oneshot(call).await {
            Ok(outcome) if outcome.from_cache() => Told::Replayed,
            Ok(outcome) => Told::Ran { recorded: outcome.recorded() },
            Err(error) => {
                let facts = failure_info(&*error).unwrap_or_else(|| panic!("not typed: {error:?}"));
                let why = causes(&*error);
                Told::Refused { code: facts.code().to_owned(), ran: facts.ran(), why }
            }
        };
        if let Told::Refused { code, ran, .. } = &told {
            let codes =
                ["store_unavailable", "store_full", "outcome_unknown", "idempotency_in_flight"];
            assert!(codes.contains(&&**code), "{told:?}");
            let has_run = name == PAY && self.ran.load(Relaxed);
            assert!(!has_run || *ran != Ran::No, "it ran, and its caller got {told:?}");
        }
        told
    }

    /// Asks, each time for another call, until one is run and recorded. One that was refused may
    /// have left a claim to its lease.
    pub(crate) async fn ask_until_served(&self, name: &str, patience: Duration) -> String {
        let begin = Instant::now();
        for n in 0.. {
            let name = format!("{name}-{n}");
            let told = self.ask(&name).await;
            if told == (Told::Ran { recorded: true }) {
                return name;
            }
            assert!(begin.elapsed() < patience, "{name}: {told:?}");
            sleep(PAUSE).await;
        }
        unreachable!("there are numbers enough")
    }

    /// Asks until the call has an answer; with the last refusal before that.
    pub(crate) async fn ask_until_answered(
        &self,
        name: &str,
        patience: Duration,
    ) -> (Option<Told>, Told) {
        let (begin, mut last) = (Instant::now(), None);
        loop {
            let told = self.ask(name).await;
            if !matches!(told, Told::Refused { .. }) {
                return (last, told);
            }
            assert!(begin.elapsed() < patience, "{name} is stuck: {told:?}");
            last = Some(told);
            sleep(PAUSE).await;
        }
    }
}

/// An error and all that led to it.
fn causes(error: &(dyn Error + 'static)) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", causes(source)),
        None => error.to_string(),
    }
}

/// What happens while the fault lasts, and after it.
struct Begun {
    /// How long it took until service was back.
    back: JoinHandle<Duration>,
    two: JoinHandle<Told>,
}

/// One fault at one point of a first caller's call; a second caller, in a process of its own, asks
/// for the same while it lasts, a third one after it.
pub(crate) async fn round(fault: Fault, point: Point) {
    let what = format!("{fault:?} {point:?}");
    let (world, tool) = (Arc::new(World::start()), Arc::new(Tool::default()));
    let second = Process::new(world.process(), &tool, None);
    let third = Process::new(world.process(), &tool, None);
    let begun = Arc::new(Mutex::new(None::<Begun>));
    let at: Hook = {
        let (world, second, third, begun) =
            (world.clone(), second.clone(), third.clone(), begun.clone());
        Arc::new(move |at| {
            let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = at == point && begun.is_none();
            if is_first {
                tokio::task::block_in_place(|| fault.begin(&world));
                let (world, second, third) = (world.clone(), second.clone(), third.clone());
                let two = tokio::spawn(async move { second.ask(PAY).await });
                let back = tokio::spawn(async move {
                    sleep(fault.lasts()).await;
                    tokio::task::block_in_place(|| fault.end(&world));
                    let healed = Instant::now();
                    third.ask_until_served("back", PATIENCE).await;
                    healed.elapsed()
                });
                *begun = Some(Begun { back, two });
            }
            drop(begun);
            Box::pin(async move {
                if is_first && fault == Fault::Pause {
                    sleep(fault.lasts()).await; // It sleeps too.
                }
            })
        })
    };
    let first = Process::new(world.process(), &tool, Some(at.clone()));
    for (process, name) in [(&first, "first"), (&second, "second")] {
        process.ask_until_served(name, PATIENCE).await;
    }
    let begin = Instant::now();
    second.ask_until_served("usual", PATIENCE).await;
    let soon = Fault::back(begin.elapsed());
    at(Point::BeforeClaim).await;
    let one = timeout(3 * PATIENCE, first.ask(PAY)).await;
    let one = one.unwrap_or_else(|_| panic!("{what}: no answer"));
    at(Point::AfterEnd).await;
    let begun = begun.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Else its claim was refused, or answered, before it came to the point.
    let Some(Begun { back, two }) = begun else { panic!("{what}: not reached: {one:?}") };
    let two = timeout(3 * PATIENCE, two).await.unwrap_or_else(|_| panic!("{what}: no answer"));
    let (two, back) = (two.unwrap(), back.await.unwrap());
    assert!(back < soon, "{what}: service is back only after {back:?}");

    // The key is not stuck.
    let (before, three) = third.ask_until_answered(PAY, PATIENCE).await;
    let runs = tool.runs();
    println!(
        "{what}: {one:?}, {two:?}, {before:?} {three:?}, {} runs, back in {back:?}",
        runs.len()
    );
    if fault.forgets() {
        assert!(runs.len() <= 2, "{what}: {runs:?}");
        return;
    }
    assert_eq!(runs.len(), 1, "{what}: {one:?}, {two:?}, {three:?}");
    let has_run = [&one, &two].into_iter().any(|told| matches!(told, Told::Ran { .. }));
    let expected = if has_run { Told::Replayed } else { Told::Ran { recorded: true } };
    assert_eq!(three, expected, "{what}: {one:?}, {two:?}");
}
