//! The process that is killed.
use super::{
    fuse::{Fuse, Fused, Point},
    tool::{call, guarded, is_answer},
};
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::task::JoinSet;
use tower::{Service, ServiceExt};
use tr_core::{SystemClock, WallClock};
use tr_idempotency::sqlite::{Database, Sqlite};
use tr_testkit::ledger::Ledger;

/// The child's parameters, as one variable: file, clock, lease, point, how often, how long after,
/// tool's time, keys.
const ORDER: &str = "TR_IDEMPOTENCY_TEST_ORDER";

/// How long a dead process keeps its calls: so long that no machine is too busy to answer within
/// it. Nobody waits for its end: the clocks of who comes after are ahead.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// By so much each process's clock is ahead of that of the one before.
pub(crate) const STEP: Duration = Duration::from_secs(2 * 60);

/// Who call at once, each one call after the other.
const CALLERS: usize = 4;

/// What a child is to do.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) file: PathBuf,
    /// By how much its clock is ahead of the machine's.
    pub(crate) ahead: Duration,
    /// How long it keeps its calls.
    pub(crate) lease: Duration,
    /// Where to die; nowhere, it is killed from outside.
    pub(crate) point: Option<Point>,
    /// At which coming by.
    pub(crate) nth: u32,
    /// How long after something was sent.
    pub(crate) lasts: Duration,
    /// How long the tool takes.
    pub(crate) takes: Duration,
    /// The calls.
    pub(crate) keys: Vec<String>,
}

impl Order {
    /// The parameters of this process, if it is a child.
    pub(crate) fn given() -> Option<Self> {
        let order = env::var(ORDER).ok()?;
        let mut words = order.split('\n');
        let mut next = || words.next().unwrap();
        let micros = |word: &str| Duration::from_micros(word.parse().unwrap());
        Some(Self {
            file: next().into(),
            ahead: micros(next()),
            lease: micros(next()),
            point: Point::named(next()),
            nth: next().parse().unwrap(),
            lasts: micros(next()),
            takes: micros(next()),
            keys: words.map(str::to_owned).collect(),
        })
    }

    /// The child, which runs the test of this name.
    pub(crate) fn child(&self, test: &str) -> Command {
        let Self { file, ahead, lease, point, nth, lasts, takes, keys } = self;
        let mut order = vec![
            file.to_str().unwrap().to_owned(),
            ahead.as_micros().to_string(),
            lease.as_micros().to_string(),
            point.map_or_else(String::new, |point| format!("{point:?}")),
            nth.to_string(),
            lasts.as_micros().to_string(),
            takes.as_micros().to_string(),
        ];
        order.extend_from_slice(keys);
        let mut child = Command::new(env::current_exe().unwrap());
        child
            .args([test, "--exact", "--nocapture"])
            .env(ORDER, order.join("\n"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        child
    }

    /// Does it. Says what was answered before it dies.
    pub(crate) async fn obey(self) {
        let fuse = Fuse::new(self.point, self.nth, self.lasts);
        let store = open(&self.file, self.ahead).await;
        let store = Arc::new(Fused { way: fuse.clone(), store });
        let tool = guarded(store, ledger(&self.file), fuse, self.lease, self.takes);
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let (mut tool, keys) = (tool.clone(), self.keys.clone());
            callers.spawn(async move {
                for key in keys.into_iter().skip(caller).step_by(CALLERS) {
                    let answer = tool.ready().await.unwrap().call(call(&key)).await;
                    if let Ok(outcome) = answer
                        && outcome.recorded()
                    {
                        assert!(is_answer(&outcome, &key));
                        println!("\nanswered {key}");
                    }
                }
            });
        }
        while let Some(end) = callers.join_next().await {
            end.unwrap();
        }
    }
}

/// The machine's clock, so much ahead.
#[derive(Debug)]
struct Ahead(u64);

impl WallClock for Ahead {
    fn unix_ms(&self) -> u64 {
        SystemClock.unix_ms() + self.0
    }
}

/// The records in this file, at a time to come.
pub(crate) async fn open(file: &Path, ahead: Duration) -> Sqlite {
    let clock = Arc::new(Ahead(u64::try_from(ahead.as_millis()).unwrap()));
    let database = Database::open(file).await.unwrap();
    Sqlite::builder().clock(clock).on(database).await.unwrap()
}

/// What the tool has done, for all callers.
pub(crate) fn ledger(file: &Path) -> Ledger {
    Ledger::at(file.with_extension("ledger"))
}
