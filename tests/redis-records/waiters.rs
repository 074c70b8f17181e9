//! Ten thousand callers in four processes ask for one call.
use crate::world::patient;
use std::{
    collections::BTreeMap,
    env,
    io::{BufRead as _, BufReader, Lines, Write as _, stdin},
    process::{Child, ChildStdout, Command, Stdio, id},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::Notify,
    task::{JoinSet, spawn_blocking},
    time::{Instant, sleep, timeout},
};
use tower::{ServiceBuilder, ServiceExt as _, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_idempotency::IdempotencyLayer;
use tr_testkit::{
    ledger::Ledger,
    redis::{Server, Value},
};

/// Tells a child where the server is, where the ledger, and how many callers it has.
const ORDER: &str = "REDIS_RECORDS_WAITERS";

const TEST: &str = "waiters::ten_thousand_waiters_in_four_processes_cost_as_much_as_a_few";

const PROCESSES: usize = 4;

/// How long until all wait, at most: less than the lease.
const PATIENCE: Duration = Duration::from_secs(90);

/// Between two looks whether they do.
const PAUSE: Duration = Duration::from_millis(10);

fn pay() -> ToolCall {
    ToolCall::new("pay", Params::from_text(r#"{"amount": 5}"#).unwrap())
        .session("s-1")
        .idempotency_key("order-42")
}

/// The child: starts its callers, reports when all of them wait, and ends the call on command.
async fn obey(order: &str) {
    let [url, ledger, callers] = order.split('\n').collect::<Vec<_>>().try_into().unwrap();
    let (ledger, callers) = (Ledger::at(ledger), callers.parse::<usize>().unwrap());
    let layer = IdempotencyLayer::builder()
        .store(patient(url).build().unwrap())
        .store_timeout(PATIENCE)
        .max_waiters(callers)
        .build()
        .unwrap();
    let records = layer.handle();
    let end = Arc::new(Notify::new());
    let told = end.clone();
    let tool = ServiceBuilder::new().layer(layer).service(service_fn(move |_: ToolCall| {
        let (ledger, told) = (ledger.clone(), told.clone());
        async move {
            ledger.append("order-42")?;
            told.notified().await;
            Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!("paid")))
        }
    }));
    let mut calls: JoinSet<_> = (0..callers).map(|_| tool.clone().oneshot(pay())).collect();
    let all_wait = async {
        while records.counts().waiters < callers - 1 {
            sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, all_wait).await.expect("not all callers wait");
    println!("\nwaiting");
    // A parent that is gone ends it too.
    spawn_blocking(|| stdin().read_line(&mut String::new())).await.unwrap().unwrap();
    end.notify_one();
    let mut served = 0;
    while let Some(answer) = calls.join_next().await {
        let answer = answer.unwrap().unwrap();
        assert_eq!(answer.content().unwrap().get(), r#""paid""#);
        served += 1;
    }
    println!("\nserved {served}");
}

/// A process with its callers, as its parent sees it.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(order: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", TEST])
            .env(ORDER, order)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// What stands behind `word` in the line that begins so.
    fn says(&mut self, word: &str) -> String {
        let lines = self.lines.by_ref().map_while(Result::ok);
        let mut those = lines.filter_map(|line| line.strip_prefix(word).map(str::to_owned));
        those.next().unwrap_or_else(|| panic!("a process ended before it was {word}"))
    }

    fn end_the_call(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"end\n").unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many processes are notified when the call ends.
fn watchers(server: &Server) -> i64 {
    let list = |args: &[&str]| match server.command(args).unwrap() {
        Value::List(values) => values,
        other => panic!("{args:?}: {other}"),
    };
    let count = |channel: &Value| list(&["PUBSUB", "NUMSUB", channel.text()?]).get(1)?.int();
    list(&["PUBSUB", "CHANNELS"]).iter().filter_map(count).sum()
}

/// How often the server was sent each command, but for what tests ask of it.
fn commands(server: &Server) -> BTreeMap<String, u64> {
    let stats = server.command(["INFO", "commandstats"]).unwrap().to_string();
    let calls = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let tests = ["info", "ping", "pubsub"].iter().any(|ours| name.starts_with(ours));
        (!tests).then(|| Some((name.to_owned(), rest.split(',').next()?.parse().ok()?)))?
    };
    stats.split_whitespace().filter_map(calls).collect()
}

/// Lets so many callers ask for the same. Says which commands that took, and how long.
async fn all_at_once(callers: usize) -> (BTreeMap<String, u64>, Duration) {
    let server = Server::start().expect("`cargo xtask test` installs redis-server");
    let path = env::temp_dir().join(format!("redis-records-{}-{callers}.ledger", id()));
    let ledger = Ledger::at(&path);
    let order = format!("{}\n{}\n{}", server.url(), path.display(), callers / PROCESSES);
    let begin = Instant::now();
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| Process::start(&order)).collect();
    for process in &mut processes {
        process.says("waiting");
    }
    let all_watch = async {
        while watchers(&server) < PROCESSES as i64 - 1 {
            sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, all_watch).await.expect("not all other processes watch");
    processes.iter_mut().for_each(Process::end_the_call);
    let served = |process: &mut Process| process.says("served ").parse::<usize>().unwrap();
    let served: usize = processes.iter_mut().map(served).sum();
    let took = begin.elapsed();
    assert_eq!((served, ledger.lines().unwrap().len()), (callers, 1));
    std::fs::remove_file(&path).unwrap();
    (commands(&server), took)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_waiters_in_four_processes_cost_as_much_as_a_few() {
    if let Ok(order) = env::var(ORDER) {
        return obey(&order).await;
    }
    let (few, _) = all_at_once(PROCESSES).await;
    let (many, took) = all_at_once(10_000).await;
    println!("{PROCESSES} callers: {few:?}\n10000 callers in {took:?}: {many:?}");
    let sum = |commands: &BTreeMap<_, u64>| commands.values().sum::<u64>();
    // Each process looks for itself once a second, however many wait in it: a script, counted with
    // the commands in it.
    let looks = 4 * PROCESSES as u64 * (took.as_secs() + 1);
    assert!(sum(&many) <= sum(&few) + looks, "{many:?} for 10000 callers, {few:?} for {PROCESSES}");
}
