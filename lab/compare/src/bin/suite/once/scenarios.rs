//! What records are needed for, one scenario each. All by a paused clock: none of them waits for time.
use super::{Answer, Runner, SUBJECTS, Tool};
use crate::{
    cell::{Cell, Row, Section},
    tasks::{end, paused, settle, start},
};
use benches::small::Failed;
use futures_util::future::{LocalBoxFuture, join_all};
use std::{
    future::poll_fn,
    io, panic,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

struct Scenario {
    need: &'static str,
    run: fn(Runner) -> LocalBoxFuture<'static, Cell>,
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        need: "8 callers at the same time run the tool once and all get its answer",
        run: |runner| Box::pin(crowd(runner)),
    },
    Scenario {
        need: "8 callers at the same time run a tool that fails once and all get its error",
        run: |runner| Box::pin(failing_crowd(runner)),
    },
    Scenario {
        need: "a waiter sleeps until there is something to see: at most 100 polls in 300 ms",
        run: |runner| Box::pin(polls(runner)),
    },
    Scenario {
        need: "when the first caller goes away, its 10 waiters get an answer",
        run: |runner| Box::pin(orphans(runner)),
    },
    Scenario {
        need: "when the first caller goes away, a tool that has started isn't started again",
        run: |runner| Box::pin(restarts(runner)),
    },
    Scenario {
        need: "a tool that panics is run once for 300 callers, all of whom hear of it",
        run: |runner| Box::pin(panics(runner)),
    },
    Scenario {
        need: "a call in flight is not forgotten while 1,000 others pass through 100 places",
        run: |runner| Box::pin(evicted(runner)),
    },
];

/// Runs all of them.
pub(crate) fn section() -> io::Result<Section> {
    let mut rows = Vec::new();
    for scenario in SCENARIOS {
        let mut cells = Vec::new();
        for subject in &SUBJECTS {
            cells.push(match (subject.make)() {
                Ok(runner) => paused()?.block_on((scenario.run)(runner)),
                Err(why) => Cell::Without(why),
            });
        }
        rows.push(Row { need: scenario.need, cells });
    }
    Ok(Section {
        title: "Running a call once",
        setting: "Each in memory, with room for 100 records.",
        subjects: SUBJECTS.iter().map(|subject| subject.name).collect(),
        rows,
        notes: NOTES,
    })
}

const NOTES: &str = "\
Ours treats the call as mutating, and agent-effects as an `IrreversibleWrite`. There, a caller that finds a call in
progress waits for its end by `wait`, as is done here, which polls by a timer. The others are caches: none promises to run
a call only once, and after a disconnected caller or a panic they run it again. tower-resilience's documentation protects
its cache by coalescing, as in the third column.
";

/// A tool that runs until the test ends it, and counts its runs.
struct Rig {
    runner: Runner,
    tool: Tool,
    runs: Arc<AtomicUsize>,
    tell: watch::Sender<Option<Result<u64, Failed>>>,
}

const KEY: u64 = 1;

impl Rig {
    fn new(runner: Runner) -> Self {
        let (tell, told) = watch::channel(None);
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = runs.clone();
        let tool: Tool = Arc::new(move || {
            counted.fetch_add(1, Relaxed);
            let mut told = told.clone();
            Box::pin(async move {
                let end = told.wait_for(Option::is_some).await.map_err(|_| Failed)?;
                end.clone().unwrap_or(Err(Failed))
            })
        });
        Self { runner, tool, runs, tell }
    }

    fn call(&self) -> Answer {
        (self.runner)(KEY, self.tool.clone())
    }

    async fn callers(&self, n: usize) -> Vec<JoinHandle<Result<u64, String>>> {
        join_all((0..n).map(|_| start(self.call()))).await
    }

    fn tell(&self, end: Result<u64, Failed>) {
        self.tell.send_replace(Some(end));
    }

    fn runs(&self) -> usize {
        self.runs.load(Relaxed)
    }
}

/// How many got an answer, and how many an error.
async fn ends(callers: Vec<JoinHandle<Result<u64, String>>>) -> (usize, usize) {
    let (mut answers, mut errors) = (0, 0);
    for caller in callers {
        match end(caller).await {
            Some(Ok(_)) => answers += 1,
            Some(Err(_)) => errors += 1,
            None => {}
        }
    }
    (answers, errors)
}

async fn crowd(runner: Runner) -> Cell {
    let rig = Rig::new(runner);
    let callers = rig.callers(8).await;
    rig.tell(Ok(5));
    let (answers, _) = ends(callers).await;
    Cell::judge((rig.runs(), answers) == (1, 8), ran(rig.runs(), answers, "answers"))
}

async fn failing_crowd(runner: Runner) -> Cell {
    let rig = Rig::new(runner);
    let callers = rig.callers(8).await;
    rig.tell(Err(Failed));
    let (_, errors) = ends(callers).await;
    Cell::judge((rig.runs(), errors) == (1, 8), ran(rig.runs(), errors, "errors"))
}

fn ran(times: usize, ends: usize, what: &str) -> String {
    format!("{}, {ends} {what}", runs(times))
}

fn runs(times: usize) -> String {
    format!("{times} run{}", if times == 1 { "" } else { "s" })
}

async fn polls(runner: Runner) -> Cell {
    let rig = Rig::new(runner);
    let first = start(rig.call()).await;
    let mut polls = 0;
    {
        let mut waiter = pin!(rig.call());
        // Paused time only advances while every task is idle, so a busy task has to be stopped.
        let counted = poll_fn(|cx| {
            polls += 1;
            let ended = waiter.as_mut().poll(cx).is_ready();
            if ended || polls >= 10_000 { Poll::Ready(()) } else { Poll::Pending }
        });
        let _ = timeout(Duration::from_millis(300), counted).await;
    }
    rig.tell(Ok(5));
    end(first).await;
    let seen = if polls >= 10_000 { "spins".into() } else { format!("{polls} polls") };
    Cell::judge(polls <= 100, seen)
}

/// The first caller goes away; ten others wait.
async fn orphaned(runner: Runner) -> (Rig, usize) {
    let rig = Rig::new(runner);
    let first = start(rig.call()).await;
    let waiters = rig.callers(10).await;
    first.abort();
    settle().await;
    sleep(Duration::from_millis(1)).await;
    rig.tell(Ok(5));
    let (answers, _) = ends(waiters).await;
    (rig, answers)
}

async fn orphans(runner: Runner) -> Cell {
    let (_, answers) = orphaned(runner).await;
    Cell::judge(answers == 10, format!("{answers} answers"))
}

async fn restarts(runner: Runner) -> Cell {
    let (rig, _) = orphaned(runner).await;
    Cell::judge(rig.runs() == 1, runs(rig.runs()))
}

async fn panics(runner: Runner) -> Cell {
    let rig = Rig::new(runner);
    let counted = rig.runs.clone();
    let tool: Tool = Arc::new(move || {
        counted.fetch_add(1, Relaxed);
        Box::pin(async {
            tokio::task::yield_now().await;
            panic!("the tool")
        })
    });
    let silent = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let callers: Vec<_> = (0..300).map(|_| tokio::spawn((rig.runner)(KEY, tool.clone()))).collect();
    let mut heard = 0;
    for caller in callers {
        // A panic that reaches its caller is heard, too.
        heard += usize::from(timeout(Duration::from_secs(1), caller).await.is_ok());
    }
    panic::set_hook(silent);
    Cell::judge((rig.runs(), heard) == (1, 300), ran(rig.runs(), heard, "hear of it"))
}

async fn evicted(runner: Runner) -> Cell {
    let rig = Rig::new(runner);
    let first = start(rig.call()).await;
    let quick: Tool = Arc::new(|| Box::pin(async { Ok(1) }));
    for key in 0..1_000 {
        let _ = (rig.runner)(1_000 + key, quick.clone()).await;
    }
    let second = start(rig.call()).await;
    rig.tell(Ok(5));
    ends(vec![first, second]).await;
    Cell::judge(rig.runs() == 1, runs(rig.runs()))
}
