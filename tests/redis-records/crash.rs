//! Processes that are killed in the middle of their calls.
use crate::world::patient;
use std::{
    collections::BTreeMap,
    env,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio, abort, id},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{task::JoinSet, time::timeout};
use tower::{Service, ServiceBuilder, ServiceExt as _, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_idempotency::{IdempotencyLayer, error::OutcomeUnknown};
use tr_testkit::{ledger::Ledger, redis::Server, rounds};

/// Tells the child where the server is, where the ledger, after how many lines to end itself, if it
/// is to, and which calls to make.
const ORDER: &str = "REDIS_RECORDS_ORDER";

const TEST: &str = "crash::a_call_whose_process_is_killed_runs_once";

/// How long a dead process keeps its calls. Where a busy machine needs longer to grant one, it is not
/// run.
const LEASE: Duration = Duration::from_millis(150);

/// Any request is answered within this, and so is a call.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls of one child, and lines that it writes for each.
const CALLS: usize = 4;
const LINES: usize = 3;

/// Says where the child is, and perhaps ends it after so many lines.
#[derive(Clone)]
struct Log {
    lines: Arc<AtomicUsize>,
    last: Option<usize>,
}

impl Log {
    fn new(last: Option<usize>) -> Self {
        Self { lines: Arc::default(), last }
    }

    fn say(&self, line: &str) {
        println!("\n{line}");
        if Some(self.lines.fetch_add(1, Relaxed)) == self.last {
            abort();
        }
    }
}

/// The tool behind its records. It says where it is.
async fn tool(
    url: &str,
    ledger: Ledger,
    lease: Duration,
    log: Log,
) -> impl Service<ToolCall, Response = ToolOutcome, Error = BoxError, Future: Send> + Clone + Send + use<>
{
    let store = patient(url).forgetting_on_restart();
    let layer = IdempotencyLayer::builder()
        .store(store.connect().await.unwrap())
        .store_timeout(PATIENCE)
        .inflight_ttl(lease)
        .build()
        .unwrap();
    ServiceBuilder::new().layer(layer).service(service_fn(move |call: ToolCall| {
        let (ledger, log) = (ledger.clone(), log.clone());
        async move {
            let key = call.parts().idempotency.key.clone().unwrap();
            log.say(&format!("entered {key}"));
            ledger.append(&key)?;
            log.say(&format!("ran {key}"));
            tokio::time::sleep(Duration::from_millis(2)).await;
            Ok::<_, BoxError>(ToolOutcome::success(serde_json::json!({ "paid": &*key })))
        }
    }))
}

fn call(key: &str) -> ToolCall {
    ToolCall::new("pay", Params::from_text(r#"{"amount": 5}"#).unwrap())
        .session("s-1")
        .idempotency_key(key)
}

/// The child: makes its calls, two at a time.
async fn obey(order: &str) {
    let mut words = order.split('\n');
    let [url, ledger, last] = [(); 3].map(|()| words.next().unwrap());
    let log = Log::new(last.parse().ok());
    let tool = tool(url, Ledger::at(ledger), LEASE, log.clone()).await;
    let keys: Vec<String> = words.map(str::to_owned).collect();
    log.say("ready");
    let mut callers = JoinSet::new();
    for caller in 0..2 {
        let (mut tool, keys, log) = (tool.clone(), keys.clone(), log.clone());
        callers.spawn(async move {
            for key in keys.into_iter().skip(caller).step_by(2) {
                if tool.ready().await.unwrap().call(call(&key)).await.is_ok_and(|it| it.recorded())
                {
                    log.say(&format!("answered {key}"));
                }
            }
        });
    }
    callers.join_all().await;
}

/// Lets a child run until it has written so many lines, and kills it. Gives the calls that it had
/// an answer for.
fn outlive(order: &str, lines: usize) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "--nocapture", TEST])
        .env(ORDER, order)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut answered, mut seen, mut is_ready) = (Vec::new(), 0, false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        is_ready |= line == "ready";
        seen += usize::from(
            ["ready", "entered ", "ran ", "answered "].iter().any(|it| line.starts_with(it)),
        );
        answered.extend(line.strip_prefix("answered ").map(str::to_owned));
        if seen > lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(is_ready, "the child did not come to its calls");
    answered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_process_is_killed_runs_once() {
    if let Ok(order) = env::var(ORDER) {
        return obey(&order).await;
    }
    let server = Server::start().unwrap();
    let path = env::temp_dir().join(format!("redis-records-{}.ledger", id()));
    let ledger = Ledger::at(&path);
    // Its own leases outlast whatever keeps this machine busy.
    let tool = tool(&server.url(), ledger.clone(), PATIENCE, Log::new(None)).await;
    let mut seen = BTreeMap::<_, u32>::new();
    for round in 0..rounds(50, 1_000) {
        let keys: Vec<_> = (0..CALLS).map(|call| format!("{round}-{call}")).collect();
        let lines = round as usize % (CALLS * LINES + 1);
        // It ends itself right there, or it is killed from outside a little later.
        let last = if round % 2 == 0 { lines.to_string() } else { String::new() };
        let order = [&[server.url(), path.display().to_string(), last], &keys[..]].concat();
        let answered = tokio::task::block_in_place(|| outlive(&order.join("\n"), lines));
        for key in &keys {
            let before = ledger.count(key).unwrap();
            assert!(before <= 1, "{key} ran {before} times");
            let repeat = tool.clone().oneshot(call(key));
            let repeat = timeout(PATIENCE, repeat).await.expect("no answer");
            let (how, runs) = match repeat {
                Ok(outcome) if outcome.from_cache() => ("replayed", 1),
                Ok(_) => ("ran", 1),
                Err(error) if error.is::<OutcomeUnknown>() => ("unknown", before),
                Err(error) => panic!("{key}: {error}"),
            };
            let after = ledger.count(key).unwrap();
            assert_eq!(after, runs, "{key} was {how}");
            assert!(how != "ran" || before == 0, "{key} ran twice");
            assert!(how == "replayed" || !answered.contains(key), "{key} was answered, then {how}");
            *seen.entry((how, before)).or_default() += 1;
        }
    }
    println!("{seen:?}");
    std::fs::remove_file(&path).unwrap();
    for case in [("ran", 0), ("unknown", 1), ("replayed", 1)] {
        assert!(seen.contains_key(&case), "{case:?} never happened: {seen:?}");
    }
}
