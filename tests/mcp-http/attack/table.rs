//! The cells of one scene and one pair of credentials, which share a guard.
use super::{
    calls::{Strong, equal, strong},
    expect::State,
    reach::{By, cancel, delete, guess, progress, resume, steal},
    scene::{Began, Conversations, Credentials, Ids, Party, Scene, Stage},
};
use crate::wire::now;
use std::{
    fmt::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// How many cells run at once.
const LANES: usize = 4;

/// What B got, or how a rule was broken.
pub(super) type Outcome = Result<String, String>;

/// Clients that cells use one after the other.
pub(super) struct Lane {
    pub(super) a: Party,
    pub(super) b: Party,
}

impl Lane {
    pub(super) fn of(stage: &Stage) -> Self {
        Self { a: stage.a(), b: stage.b() }
    }
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    Equal(Ids, State, Began),
    Strong(Strong, State),
    /// By whom, and whether the call only reads.
    Cancel(By, bool),
    /// Whether A is cut off.
    Steal(bool),
    Guess,
    Delete,
    Resume,
    Progress,
}

impl Attack {
    /// All, with those that a scene cannot have: why.
    fn all(scene: Scene, credentials: Credentials) -> Vec<(Self, Option<&'static str>)> {
        use State::{Answered, CutEnded, CutRunning, CutUnknown, Running, Unknown};
        let mut all = Vec::new();
        for ids in [Ids::None, Ids::Request, Ids::Weak] {
            all.push(Self::Equal(ids, Answered, Began::Before));
            all.push(Self::Equal(ids, Running, Began::Before));
            for began in [Began::Before, Began::After, Began::Unseen] {
                for state in [CutRunning, CutEnded, CutUnknown, Unknown] {
                    all.push(Self::Equal(ids, state, began));
                }
            }
        }
        for state in [Answered, Running, CutRunning] {
            all.extend([Strong::Key, Strong::Random].map(|strong| Self::Strong(strong, state)));
        }
        for by in [By::Other, By::OtherWithItsOwn, By::Thief, By::Itself] {
            all.extend([true, false].map(|reads| Self::Cancel(by, reads)));
        }
        all.extend([Self::Steal(false), Self::Steal(true), Self::Guess]);
        all.extend([Self::Delete, Self::Resume, Self::Progress]);
        all.into_iter().map(|attack| (attack, attack.impossible(scene, credentials))).collect()
    }

    fn impossible(self, scene: Scene, credentials: Credentials) -> Option<&'static str> {
        match self {
            Self::Equal(_, _, Began::Unseen) if !scene.has_sessions => {
                Some("there is no session that the guard could not have seen")
            }
            Self::Equal(_, _, Began::Unseen) if scene.is_command => {
                Some("the guard begins the sessions itself")
            }
            Self::Cancel(By::Thief, _) | Self::Steal(_) | Self::Guess if !scene.has_sessions => {
                Some("there is no session to steal")
            }
            Self::Cancel(By::Thief, _) | Self::Steal(_) if !credentials.differ() => {
                Some("who has A's session, and A's credential or none, is A")
            }
            _ => None,
        }
    }

    /// Whether it ends the process that others use.
    const fn is_alone(self, scene: Scene) -> bool {
        let Self::Equal(_, state, _) = self else { return false };
        state.is_unknown() && scene.is_command && !scene.has_sessions
    }

    fn run(self, stage: &Stage, lane: &mut Lane, number: u32) -> Outcome {
        match self {
            Self::Equal(ids, state, began) => equal(stage, lane, number, (ids, state, began)),
            Self::Strong(id, state) => strong(stage, lane, number, (id, state)),
            Self::Cancel(by, reads) => cancel(stage, lane, number, (by, reads)),
            Self::Steal(is_cut) => steal(stage, lane, number, is_cut),
            Self::Guess => guess(stage, lane, number),
            Self::Delete => delete(stage, number),
            Self::Resume => resume(stage, number),
            Self::Progress => progress(stage, lane, number),
        }
    }
}

/// Runs all cells.
pub(super) fn check(scene: Scene, credentials: Credentials) {
    let stage = scene.stage(credentials);
    let (mut possible, mut table) = (Vec::new(), String::new());
    for (attack, why) in Attack::all(scene, credentials) {
        match why {
            Some(why) => drop(writeln!(table, "{attack:?}: impossible: {why}")),
            None => possible.push(attack),
        }
    }
    let (alone, shared): (Vec<_>, Vec<_>) = (possible.into_iter().zip(1..))
        .partition::<Vec<(Attack, u32)>, _>(|(attack, _)| attack.is_alone(scene));
    let done = Mutex::new(Vec::new());
    let run = |cells: &[(Attack, u32)], lanes: usize| {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut lane = Lane::of(&stage);
            while let Some((attack, number)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                let ran = catch_unwind(AssertUnwindSafe(|| attack.run(&stage, &mut lane, *number)));
                let outcome = ran.unwrap_or_else(|_| {
                    lane = Lane::of(&stage);
                    Err("it panics".into())
                });
                done.lock().unwrap().push((*number, *attack, outcome));
            }
        };
        thread::scope(|scope| (0..lanes).for_each(|_| drop(scope.spawn(work))));
    };
    run(&shared, LANES);
    run(&alone, 1);
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(number, ..)| *number);
    let mut broken = 0;
    for (_, attack, outcome) in done {
        let _ = match outcome {
            Ok(got) => writeln!(table, "{attack:?}: holds: {got}"),
            Err(why) => {
                broken += 1;
                writeln!(table, "{attack:?}: BROKEN: {why}")
            }
        };
    }
    println!("{table}");
    let names = (scene.conversations == Conversations::Own).then_some("conversations of their own");
    assert!(broken == 0, "{broken} cells are broken: {credentials:?} {names:?}\n{table}");
}

pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// Whether it becomes true, in more time than it should take.
pub(super) fn within(mut is_so: impl FnMut() -> bool) -> bool {
    let since = now();
    while !is_so() {
        if since.elapsed() > Duration::from_secs(10) {
            return false;
        }
        thread::park_timeout(Duration::from_millis(2));
    }
    true
}
