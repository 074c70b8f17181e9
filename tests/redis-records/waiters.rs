//! Ten thousand callers in four processes ask for one call.
use crate::world::World;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{task::JoinSet, time::sleep};
use tower::{Service, ServiceBuilder, ServiceExt as _, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_idempotency::{IdempotencyLayer, redis::Redis};
use tr_testkit::redis::Server;

const PROCESSES: usize = 4;

/// As one process has it: a connection, a store and a layer of its own.
fn tool(
    store: Redis,
    runs: &Arc<AtomicU32>,
) -> impl Service<ToolCall, Response = ToolOutcome, Error = BoxError, Future: Send> + Clone + Send + use<>
{
    let layer = IdempotencyLayer::builder().store(store).max_waiters(20_000).build().unwrap();
    let runs = runs.clone();
    ServiceBuilder::new().layer(layer).service(service_fn(move |_: ToolCall| {
        let runs = runs.clone();
        async move {
            runs.fetch_add(1, Relaxed);
            // Long enough for all to come and wait.
            sleep(Duration::from_millis(700)).await;
            Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!("paid")))
        }
    }))
}

fn pay(key: &str) -> ToolCall {
    ToolCall::new("pay", Params::from_text(r#"{"amount": 5}"#).unwrap())
        .session("s-1")
        .idempotency_key(key)
}

/// How many commands the server was sent by clients of records.
fn commands(world: &World) -> u64 {
    let stats = world.command(["INFO", "commandstats"]);
    let calls = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let ours = ["eval", "evalsha", "subscribe", "unsubscribe", "get", "mget", "wait"];
        ours.contains(&name).then(|| rest.split(',').next()?.parse::<u64>().ok()).flatten()
    };
    stats.split_whitespace().filter_map(calls).sum()
}

/// Lets so many callers ask for the same, and says how many commands that took.
async fn all_at_once(world: &World, callers: usize) -> u64 {
    let runs = Arc::new(AtomicU32::new(0));
    let tools: Vec<_> = (0..PROCESSES).map(|_| tool(world.process(), &runs)).collect();
    let before = commands(world);
    let mut calls = JoinSet::new();
    for caller in 0..callers {
        let mut tool = tools[caller % PROCESSES].clone();
        calls.spawn(async move {
            let outcome = tool.ready().await?.call(pay("order-42")).await?;
            Ok::<_, BoxError>(outcome.content().is_some())
        });
    }
    let mut served = 0;
    while let Some(end) = calls.join_next().await {
        assert!(end.unwrap().unwrap(), "a call failed");
        served += 1;
    }
    assert_eq!((served, runs.load(Relaxed)), (callers, 1));
    commands(world) - before
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_waiters_in_four_processes_cost_as_much_as_a_few() {
    let world = || World::with(Server::options());
    let few = all_at_once(&world(), PROCESSES).await;
    let many = all_at_once(&world(), 10_000).await;
    println!("{few} commands for {PROCESSES} callers, {many} for 10000");
    // Who looks for itself once a second may do so once more on a busy machine.
    let slack = 4 * PROCESSES as u64;
    assert!(many <= few + slack, "{many} commands for 10000 callers, {few} for {PROCESSES}");
}
