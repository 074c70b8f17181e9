//! Every fault, before and after claim, run and end: one run, an answer for everybody, and service
//! again soon after. Once with processes that deal with the store themselves, as they should, and
//! once with the layer.
use crate::{
    process::{LEASE, Outcome, PATIENCE, Point, Tool, call, call_plainly},
    world::World,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tr_testkit::{faults::Then, rounds};

/// Service is back so soon after a fault is over, on a machine that has time for it.
const BACK: Duration = Duration::from_secs(2);

/// On one that has not: the time of so many calls more, of those that were made before the fault.
const CALLS: u32 = 50;

/// How long most faults last: longer than a reply may take, shorter than a lease.
const SHORT: Duration = Duration::from_millis(250);

/// Longer than a lease.
const LONG: Duration = Duration::from_millis(4_500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Kill,
    KillAndForget,
    Pause,
    BlackHole,
    CutRequests,
    CutReplies,
    Refuse,
    Reset,
    ReplyLost,
    ReplyLostSilently,
    ReplyTruncated,
    Slow,
    OutOfMemory,
    ReadOnly,
    NoReplicas,
    ScriptsForgotten,
    FlushAll,
}

impl Fault {
    pub(crate) fn begin(self, world: &World) {
        match self {
            Self::Kill | Self::KillAndForget => world.server().kill(),
            Self::Pause => world.server().pause(),
            Self::BlackHole => world.proxy.black_hole(),
            Self::CutRequests => world.proxy.cut_requests(),
            Self::CutReplies => world.proxy.cut_replies(),
            Self::Refuse => {
                world.proxy.refuse();
                world.proxy.reset();
            }
            Self::Reset => world.proxy.reset(),
            Self::ReplyLost => drop(world.proxy.drop_reply_of("EVALSHA", Then::Reset)),
            Self::ReplyLostSilently => drop(world.proxy.drop_reply_of("EVALSHA", Then::Silence)),
            Self::ReplyTruncated => drop(world.proxy.truncate_next_reply(9, Then::Reset)),
            Self::Slow => world.proxy.delay(Duration::from_millis(500)),
            Self::OutOfMemory => drop(world.command(["CONFIG", "SET", "maxmemory", "1"])),
            // An unused port: it waits for a primary that never comes, and keeps its data.
            Self::ReadOnly => drop(world.command(["REPLICAOF", "127.0.0.1", "1"])),
            Self::NoReplicas => {
                world.command(["CONFIG", "SET", "min-replicas-to-write", "1"]);
            }
            Self::ScriptsForgotten => drop(world.command(["SCRIPT", "FLUSH"])),
            Self::FlushAll => drop(world.command(["FLUSHALL"])),
        }
    }

    pub(crate) fn end(self, world: &World) {
        match self {
            Self::Kill => world.server().restart().unwrap(),
            Self::KillAndForget => world.server().restart_empty().unwrap(),
            Self::Pause => world.server().resume(),
            Self::OutOfMemory => drop(world.command(["CONFIG", "SET", "maxmemory", "0"])),
            Self::ReadOnly => drop(world.command(["REPLICAOF", "NO", "ONE"])),
            Self::NoReplicas => {
                world.command(["CONFIG", "SET", "min-replicas-to-write", "0"]);
            }
            _ => {}
        }
        world.proxy.heal();
    }

    pub(crate) const fn lasts(self) -> Duration {
        match self {
            Self::Pause => LONG,
            _ => SHORT,
        }
    }

    /// How soon service is back, where a call usually takes so long.
    pub(crate) fn back(usual: Duration) -> Duration {
        BACK + usual * CALLS
    }

    /// The server loses records, so it cannot know that a call has run.
    pub(crate) const fn forgets(self) -> bool {
        matches!(self, Self::KillAndForget | Self::FlushAll)
    }
}

/// One fault at one point of a first caller's call; a second caller, in a process of its own, asks
/// for the same while it lasts, a third one after it.
async fn round(fault: Fault, point: Point) {
    let what = format!("{fault:?} {point:?}");
    let (world, tool, other) =
        (Arc::new(World::start()), Arc::new(Tool::default()), Tool::default());
    let (first, second, third) = (world.process(), world.process(), world.process());
    // Connections are there, scripts are known.
    for store in [&first, &second] {
        assert_eq!(call_plainly(store, "before", &other).await, {
            if other.runs().len() == 1 && std::ptr::eq(store, &first) {
                Outcome::Ran { recorded: true }
            } else {
                Outcome::Replayed
            }
        });
    }
    let begin = Instant::now();
    call_plainly(&first, "usual", &other).await;
    let back = Fault::back(begin.elapsed());
    let begun = Mutex::new(None);
    let one = call(&first, "pay", &tool, async |at| {
        if at != point || begun.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return;
        }
        fault.begin(&world);
        let (world, tool) = (world.clone(), tool.clone());
        let second = second.clone();
        let healed = tokio::spawn(async move {
            sleep(fault.lasts()).await;
            tokio::task::block_in_place(|| fault.end(&world));
            Instant::now()
        });
        let two = tokio::spawn(async move { call_plainly(&second, "pay", &tool).await });
        *begun.lock().unwrap_or_else(PoisonError::into_inner) = Some((healed, two));
        if fault == Fault::Pause {
            // It sleeps too.
            sleep(fault.lasts()).await;
        }
    });
    let one = timeout(3 * PATIENCE, one).await.unwrap_or_else(|_| panic!("{what}: no answer"));
    let (healed, two) = begun.into_inner().unwrap().expect("the point was reached");
    let healed = healed.await.unwrap();
    let two = timeout(3 * PATIENCE, two).await.unwrap_or_else(|_| panic!("{what}: no answer"));
    let two = two.unwrap();

    // Service is back on all connections.
    for (store, name) in [(&first, "first"), (&third, "third")] {
        let back = call_plainly(store, name, &other).await;
        assert_eq!(back, Outcome::Ran { recorded: true }, "{what}: service is not back");
    }
    // Others were answered before this, and their time counts: it is an upper bound.
    let waited =
        if one == (Outcome::Ran { recorded: true }) { healed.elapsed() } else { Duration::ZERO };
    assert!(waited < back + LEASE, "{what}: back only after {waited:?}");

    // The key is not stuck.
    let three = timeout(PATIENCE, call_plainly(&third, "pay", &tool)).await;
    let three = three.unwrap_or_else(|_| panic!("{what}: the key is stuck"));
    let runs = tool.runs();
    println!("{what}: {one:?}, {two:?}, {three:?}, {} runs", runs.len());
    if fault.forgets() {
        // What the server forgot may run again, under a higher epoch. Right after its claim, the
        // first caller may be the later one to run.
        assert!(runs.len() <= 2, "{what}: {runs:?}");
        let mut runs = runs;
        if point == Point::AfterClaim {
            runs.sort_unstable();
        }
        assert!(runs.is_sorted_by(|a, b| a < b), "{what}: epochs do not grow: {runs:?}");
        return;
    }
    assert_eq!(runs.len(), 1, "{what}: {one:?}, {two:?}, {three:?}");
    let ran_before = [one, two].iter().any(|it| matches!(it, Outcome::Ran { .. }));
    let expected = if ran_before { Outcome::Replayed } else { Outcome::Ran { recorded: true } };
    assert_eq!(three, expected, "{what}: {one:?}, {two:?}");
    for outcome in [one, two] {
        let fits = match outcome {
            Outcome::Ran { recorded } => recorded,
            Outcome::Replayed => true,
            // The callers that asked while the outcome could not be known.
            Outcome::Unknown => fault == Fault::Pause,
            Outcome::Full => fault == Fault::OutOfMemory,
            Outcome::Refused(_) | Outcome::TimedOut => false,
        };
        assert!(fits, "{what}: {one:?}, {two:?}");
    }
}

const POINTS: [Point; 4] =
    [Point::BeforeClaim, Point::AfterClaim, Point::AfterRun, Point::AfterEnd];

/// In a soak at every point, else at one: where the layer deals with the store itself is the same.
fn points_of_the_layer(fault: Fault) -> Vec<Point> {
    if rounds(1, 4) == 4 { POINTS.into() } else { vec![POINTS[fault as usize % 4]] }
}

macro_rules! faults {
    ($($name:ident: $fault:ident,)+) => {
        mod of_the_store {
            use super::{Fault, POINTS, round};
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                for point in POINTS {
                    round(Fault::$fault, point).await;
                }
            })+
        }

        mod of_the_layer {
            use super::{Fault, points_of_the_layer};
            use crate::layered::round;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                for point in points_of_the_layer(Fault::$fault) {
                    round(Fault::$fault, point).await;
                }
            })+
        }
    };
}

faults! {
    a_server_is_killed_and_restarted: Kill,
    a_server_is_restarted_without_its_data: KillAndForget,
    a_server_is_stopped_for_longer_than_the_lease: Pause,
    nothing_arrives: BlackHole,
    requests_do_not_arrive: CutRequests,
    replies_do_not_arrive: CutReplies,
    connections_are_refused: Refuse,
    connections_are_reset: Reset,
    a_reply_is_lost: ReplyLost,
    a_reply_is_lost_silently: ReplyLostSilently,
    a_reply_is_cut_off: ReplyTruncated,
    replies_are_slow: Slow,
    memory_is_full: OutOfMemory,
    a_server_is_read_only: ReadOnly,
    a_server_lacks_replicas: NoReplicas,
    scripts_are_forgotten: ScriptsForgotten,
    all_is_flushed: FlushAll,
}
