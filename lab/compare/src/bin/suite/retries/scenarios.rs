//! What retries are needed for, one scenario each. All by a paused clock, which all subjects know.
use super::{Plan, Retrier, SUBJECTS, Tool};
use crate::{
    cell::{Cell, Row, Section},
    tasks::paused,
};
use futures_util::future::{LocalBoxFuture, join_all};
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;
use tr_core::{FailureInfo, Ran, Verdict, code};

struct Scenario {
    need: &'static str,
    plan: Plan,
    /// Whether the tool's errors say when to come back.
    hints: bool,
    /// Given retries that were made one by one, and have nothing in common.
    run: fn(Vec<Retrier>) -> LocalBoxFuture<'static, Cell>,
}

const MADE: usize = 20;

const fn plan(attempts: u32, base: Duration) -> Plan {
    Plan { attempts, base, budget: None }
}

const HINT: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);

const SCENARIOS: &[Scenario] = &[
    Scenario {
        need: "the first delays of 20 are spread, at a base of 1 s",
        plan: plan(2, SECOND),
        hints: false,
        run: |made| Box::pin(jitter(made)),
    },
    Scenario {
        need: "100 calls through one of them that fail together don't come back together",
        plan: plan(2, Duration::from_millis(100)),
        hints: false,
        run: |made| Box::pin(spread(first(made))),
    },
    Scenario {
        need: "with a budget of 0.6 retries per success and 10 saved, 1,000 successes pay for at most 610",
        plan: Plan { budget: Some(0.6), ..plan(2, Duration::from_millis(1)) },
        hints: false,
        run: |made| Box::pin(budget(first(made))),
    },
    Scenario {
        need: "it comes back no sooner than the error asks for (`Retry-After`)",
        plan: plan(2, Duration::from_millis(100)),
        hints: true,
        run: |made| Box::pin(hinted(first(made))),
    },
    Scenario {
        need: "three layers of 4 attempts around a dead tool don't multiply",
        plan: plan(4, Duration::from_millis(1)),
        hints: false,
        run: |made| Box::pin(nested(first(made))),
    },
];

/// Runs all of them.
pub(crate) fn section() -> io::Result<Section> {
    let mut rows = Vec::new();
    for scenario in SCENARIOS {
        let mut cells = Vec::new();
        for subject in &SUBJECTS {
            let can = if scenario.hints { subject.hints } else { Ok(()) };
            let made = (0..MADE).map(|_| (subject.make)(&scenario.plan)).collect::<Result<_, _>>();
            cells.push(match can.and(made) {
                Ok(made) => paused()?.block_on((scenario.run)(made)),
                Err(why) => Cell::Without(why),
            });
        }
        rows.push(Row { need: scenario.need, cells });
    }
    Ok(Section {
        title: "Retries",
        setting: "Each with its exponential backoff and its own jitter, switched on.",
        subjects: SUBJECTS.iter().map(|subject| subject.name).collect(),
        rows,
        notes: NOTES,
    })
}

const NOTES: &str = "\
tower leaves the policy to its user; here it is an `ExponentialBackoff` with a jitter of 0.99 and a `TpsBudget`. Its jitter
applies to the whole seconds and the nanoseconds separately, so that a delay of exactly 1 s is not changed, and all clones of
one backoff draw the same values. backon has no budget, and reads a hint through its `adjust`. Only ours tells an outer
layer by itself that an inner one has given up: with the others, retry in one place.
";

/// When attempts started.
type Starts = Arc<Mutex<Vec<Instant>>>;

/// A tool that always fails, and notes when it is tried.
fn dead(hint: Option<Duration>) -> (Tool, Starts) {
    let starts = Starts::default();
    let noted = starts.clone();
    let tool: Tool = Arc::new(move || {
        note(&noted);
        let verdict = Verdict::Transient { retry_after: hint };
        Box::pin(async move { Err(FailureInfo::new(code::RATE_LIMITED, Ran::No, verdict).into()) })
    });
    (tool, starts)
}

fn alive() -> Tool {
    Arc::new(|| Box::pin(async { Ok(()) }))
}

fn note(starts: &Starts) {
    starts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(Instant::now());
}

/// Waits between attempts, to the millisecond, which is what the clock knows.
async fn waits(retrier: &Retrier, hint: Option<Duration>) -> Vec<u128> {
    let (tool, starts) = dead(hint);
    let _ = retrier(tool).await;
    let starts = starts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    starts.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect()
}

fn first(mut made: Vec<Retrier>) -> Retrier {
    made.swap_remove(0)
}

async fn jitter(made: Vec<Retrier>) -> Cell {
    let all = join_all(made.iter().map(|retrier| waits(retrier, None))).await;
    spread_over(&all.concat())
}

async fn spread(retrier: Retrier) -> Cell {
    spread_over(&join_all((0..100).map(|_| waits(&retrier, None))).await.concat())
}

/// Draws from fifty milliseconds and more are rarely the same.
fn spread_over(waits: &[u128]) -> Cell {
    let (times, all) = (waits.iter().collect::<BTreeSet<_>>().len(), waits.len());
    if all > 0 && times == 1 {
        return Cell::Failed(format!("the same for all {all}"));
    }
    Cell::judge(all > 0 && times >= all / 5, "spread")
}

async fn budget(retrier: Retrier) -> Cell {
    let (tool, starts) = dead(None);
    for _ in 0..1_000 {
        let _ = retrier(alive()).await;
        let _ = retrier(tool.clone()).await;
    }
    let granted = starts
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .len()
        .saturating_sub(1_000);
    Cell::judge((1..=610).contains(&granted), format!("grants {granted}"))
}

async fn hinted(retrier: Retrier) -> Cell {
    let waits = waits(&retrier, Some(HINT)).await;
    let good = waits.len() == 1 && waits[0] >= HINT.as_millis();
    Cell::judge(good, if good { "waits the 2 s" } else { "comes back sooner" })
}

async fn nested(retrier: Retrier) -> Cell {
    let (mut tool, starts) = dead(None);
    for _ in 0..2 {
        let (inner, layer) = (tool, retrier.clone());
        tool = Arc::new(move || layer(inner.clone()));
    }
    let _ = retrier(tool).await;
    let attempts = starts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).len();
    Cell::judge(attempts == 4, format!("{attempts} attempts"))
}
