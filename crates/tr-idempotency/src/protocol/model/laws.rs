//! What must hold in every state, and what must happen in some.
use super::{
    super::{Ask, Reply, State, Token},
    Lease,
    world::{Answer, CALLERS, LEASE, Run, Step, TTLS, World, caller, digest, owner},
};

pub(super) type Law = (&'static str, fn(&Lease, &World) -> bool);

/// Laws that hold for all failures of callers and messages, while the store loses no confirmed
/// write.
pub(super) const ALWAYS: [Law; 8] = [
    (ONCE, once),
    (TRUTH, truth),
    (KEPT, kept),
    (DONE_STAYS, done_stays),
    (OWN_PARAMS, own_params),
    (OWN_CLAIM, own_claim),
    (NOT_STUCK, not_stuck),
    (EPOCHS_GROW, epochs_grow),
];

pub(super) const ONCE: &str = "a mutating call is not run again while it may have run";
pub(super) const TRUTH: &str = "a record says of its claim's run what became of it";
pub(super) const KEPT: &str = "the owner of a lease has the record";
pub(super) const DONE_STAYS: &str = "a success that was recorded stays recorded";
pub(super) const OWN_PARAMS: &str = "answers are for the same params, conflicts for others";
pub(super) const OWN_CLAIM: &str = "no caller waits for itself";
pub(super) const NOT_STUCK: &str = "one lease later, every caller gets a claim or a response";
pub(super) const EPOCHS_GROW: &str = "a later claim has a higher epoch";

fn once(lease: &Lease, world: &World) -> bool {
    let may_have_run = |run| matches!(run, Run::Under | Run::Succeeded | Run::Lost);
    let runs = world.callers.iter().filter(|caller| may_have_run(caller.run)).count();
    !lease.mutating || runs <= 1
}

fn truth(_: &Lease, world: &World) -> bool {
    let Some(record) = &world.primary.record else { return true };
    let Some(owner) = caller(record.token) else { return true };
    let run = world.callers[owner].run;
    match record.state {
        State::Inflight | State::Unknown(_) => true,
        State::Done(()) => matches!(run, Run::Succeeded | Run::Past),
        State::Failed(..) => matches!(run, Run::Failed | Run::Past),
        State::Cancelled(_) => matches!(run, Run::Never | Run::Failed | Run::Past),
    }
}

fn kept(_: &Lease, world: &World) -> bool {
    (0..CALLERS).all(|by| match world.callers[by].step {
        Step::Claims { token, until }
        | Step::Holds { token, until }
        | Step::Runs { token, until }
            if world.now < until =>
        {
            world.record_for(by).is_some_and(|record| record.is_held_by(token))
        }
        _ => true,
    })
}

fn done_stays(_: &Lease, world: &World) -> bool {
    let recorded = Step::Told(Answer::Own { recorded: true });
    world
        .callers
        .iter()
        .filter(|caller| caller.step == recorded && caller.run == Run::Succeeded)
        .all(|_| matches!(&world.primary.record, Some(record) if record.state == State::Done(())))
}

fn own_params(_: &Lease, world: &World) -> bool {
    world.callers.iter().all(|caller| match caller.step {
        Step::Told(Answer::Replay(Some(owner))) => caller.other == world.callers[owner].other,
        Step::Told(Answer::Conflict(Some(owner))) => caller.other != world.callers[owner].other,
        _ => true,
    })
}

fn own_claim(lease: &Lease, world: &World) -> bool {
    (0..CALLERS).filter(|&by| matches!(world.callers[by].step, Step::Unsure | Step::Waits)).all(
        |by| {
            let is_own = world.record_for(by).is_some_and(|record| {
                record.token.owner == owner(by) && record.until > world.store_now()
            });
            let is_busy = || world.clone().claim(lease, by) == Reply::Busy;
            !is_own || !is_busy()
        },
    )
}

fn not_stuck(lease: &Lease, world: &World) -> bool {
    let mut server = world.primary.clone();
    let ask = Ask {
        digest: digest(false),
        mutating: lease.mutating,
        again: false,
        corrects: false,
        token: Token { epoch: u64::MAX, owner: owner(CALLERS) },
        // A clock that jumps back makes leases longer.
        now: world.store_now() + if lease.clock_jumps { 3 * LEASE } else { LEASE },
        ttls: TTLS,
    };
    server.claim(&ask, lease.bug) != Reply::Busy
}

fn epochs_grow(_: &Lease, world: &World) -> bool {
    !world.stalled
}

/// Events that have to be reachable, so that the model is not vacuous.
pub(super) const SOMETIMES: [Law; 7] = [
    ("a duplicate gets the answer again", |_, world| {
        any(world, |step, _| matches!(step, Step::Told(Answer::Replay(_))))
    }),
    ("other params are a conflict", |_, world| {
        any(world, |step, _| matches!(step, Step::Told(Answer::Conflict(_))))
    }),
    ("a call that failed runs again", |_, world| {
        let runs = |step, run| matches!(step, Step::Runs { .. }) && run == Run::Under;
        any(world, |_, run| run == Run::Failed) && any(world, runs)
    }),
    ("an end comes after its lease, and counts", |_, world| {
        let lapsed = |step| matches!(step, Step::Runs { until, .. } if until <= world.now);
        any(world, |step, _| lapsed(step))
    }),
    ("an end comes too late to count", |_, world| {
        any(world, |step, _| step == Step::Told(Answer::Own { recorded: false }))
    }),
    ("two callers run under one key, one after the other", |_, world| {
        world.callers.iter().filter(|caller| caller.run != Run::Never).count() > 1
    }),
    ("a claim passes to one who waits", |_, world| world.claims > 1),
];

/// Reachable with mutating calls only.
pub(super) const DUPLICATE_GETS_UNKNOWN: Law = ("a duplicate gets `unknown`", |_, world| {
    any(world, |step, _| step == Step::Told(Answer::Unknown))
});

fn any(world: &World, is_it: impl Fn(Step, Run) -> bool) -> bool {
    world.callers.iter().any(|caller| is_it(caller.step, caller.run))
}
