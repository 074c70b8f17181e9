//! What two threads do together, against what one does alone.
//!
//! Each thread is bound to a core of its own. On a busy machine a window in which a thread had to wait for its core
//! says nothing, so such windows are thrown away.
use benches::{
    call,
    measure::{Effort, median},
    ours,
    run::{Comes, Run},
    small::{Leaf, Small},
};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::{
    fs,
    hint::black_box,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::time::Instant;
use tower::Service as _;

/// Makes the run of a thread.
type Runs = Box<dyn Fn(u64) -> Run + Sync>;

/// The same work for two threads that share a service, and for two with a service each.
pub(crate) struct Threads {
    together: Runs,
    apart: Runs,
}

/// Clean pairs of windows that are enough, and fewer of which say nothing.
const ENOUGH: usize = 25;
const TOO_FEW: usize = 5;

const WINDOW: Duration = Duration::from_millis(3);

/// Operations of two threads in a time ÷ those of one, together and apart; `None` if the machine was too
/// busy to tell.
pub(crate) fn two_by_one(threads: &Threads, effort: Effort) -> [Option<f64>; 2] {
    let Threads { together, apart } = threads;
    let (mut one, mut both, mut each) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.windows {
        one.extend(window(1, together));
        both.extend(window(2, together));
        each.extend(window(2, apart));
        if [&one, &both, &each].iter().all(|figures| figures.len() >= ENOUGH) {
            break;
        }
    }
    [both, each].map(|mut two| {
        let enough = one.len() >= TOO_FEW && two.len() >= TOO_FEW;
        enough.then(|| median(&mut two) / median(&mut one))
    })
}

/// Operations per nanosecond of so many threads together, unless one of them had to wait.
fn window(threads: usize, runs: &Runs) -> Option<f64> {
    let start = &Barrier::new(threads);
    thread::scope(|scope| {
        let run = |core| scope.spawn(move || on_core(core, start, runs));
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().map(|thread| thread.join().ok()?).sum()
    })
}

fn on_core(core: usize, start: &Barrier, runs: &Runs) -> Option<f64> {
    let mut cores = CpuSet::new();
    cores.set(core);
    let bound = sched_setaffinity(None, &cores);
    let mut run = runs(core as u64);
    run.times(300);
    start.wait();
    bound.ok()?;
    let (since, waited) = (Instant::now(), waited()?);
    let mut times = 0;
    while since.elapsed() < WINDOW {
        run.times(200);
        times += 200;
    }
    let (took, waited) = (since.elapsed(), self::waited()? - waited);
    let is_clean = took < WINDOW * 4 / 3 && waited < WINDOW.as_nanos() / 20;
    is_clean.then(|| f64::from(times) / took.as_nanos() as f64)
}

/// Nanoseconds that this thread has waited for its core.
fn waited() -> Option<u128> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().nth(1)?.parse().ok()
}

fn threads<S: Clone + Send + 'static>(make: fn() -> S, run: fn(S, u64) -> Run) -> Threads {
    let [one, two, three] = [make(), make(), make()].map(Mutex::new);
    let clone = |service: &Mutex<S>| service.lock().expect("no panic while it is locked").clone();
    Threads {
        together: Box::new(move |thread| run(clone(&one), thread)),
        apart: Box::new(move |thread| run(clone(if thread == 0 { &two } else { &three }), thread)),
    }
}

/// One tool's closed breaker.
pub(crate) fn breaker() -> Threads {
    threads(ours::breaker::breaker, |service, _| Run::service(Comes::Through, service, Small::same))
}

/// Closed breakers of one layer, one for each thread.
pub(crate) fn breakers() -> Threads {
    threads(ours::breaker::breakers, |service, thread| {
        let request = Small { id: thread + 1, ..Small::same() };
        Run::service(Comes::Through, service, move || request)
    })
}

/// One budget.
pub(crate) fn budget() -> Threads {
    threads(ours::retry::budgeted, |service, _| Run::service(Comes::Through, service, Small::same))
}

/// Replays of a key for each thread, through the stack.
pub(crate) fn replays() -> Threads {
    threads(ours::stack::stack, |service, thread| {
        Run::service(Comes::Replayed, service, call::from(thread))
    })
}

/// First calls, each with a key of its own, through the stack.
pub(crate) fn first_calls() -> Threads {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    threads(ours::stack::stack, |service, _| {
        let from = NEXT.fetch_add(1 << 24, Ordering::Relaxed);
        Run::service(Comes::Through, service, call::unique(from))
    })
}

/// The control: a service that does no more than clone one `Arc` per call.
pub(crate) fn one_arc() -> Threads {
    threads(Arc::default, |arc: Arc<()>, _| {
        let service = tower::service_fn(move |request: Small| {
            let _counted = black_box(arc.clone());
            Leaf.call(request)
        });
        Run::service(Comes::Through, service, Small::same)
    })
}
