//! Calls of B that equal one of A's: by their arguments, their JSON-RPC ids or their own ids.
use super::{
    expect::{Expect, State},
    scene::{Began, Got, Ids, Party, Pending, Stage},
    table::{Lane, Outcome, ensure, within},
};
use crate::client::{Call, Kind, Seen};

/// B makes the equal of a call of A's.
pub(super) fn equal(
    stage: &Stage,
    lane: &mut Lane,
    number: u32,
    (ids, state, began): (Ids, State, Began),
) -> Outcome {
    let (scene, vault, order) = (stage.scene, &stage.vault, format!("order-{number}"));
    let expect = Expect::of(scene, stage.credentials, began, ids, state);
    // Where the process of A's session ends.
    let mut lost =
        (state.is_unknown() && scene.is_command && scene.has_sessions).then(|| stage.a());
    let a = lost.as_mut().unwrap_or(&mut lane.a);
    let processes = vault.processes();
    let watches = state.is_cut() || state.is_unknown();
    if began == Began::Before && !scene.has_sessions && watches {
        lane.b.connect();
    }
    if state != State::Answered {
        vault.hold(&order, 1);
    }
    a.http.last_id = 100 * number;
    let call = a.call(&order, ids);
    let pending = a.begin(&call);
    let id = pending.id;
    let secret = first(stage, &order, &pending)?;
    let mut waiting = None;
    match state {
        State::Answered => is_a(&pending.wait(), &secret, "A")?,
        State::Running => waiting = Some(pending),
        State::Unknown => {
            vault.lose(&order);
            let seen = pending.wait();
            ensure(seen.is_in_band_failure(), || format!("A is not told: {seen:?}"))?;
        }
        State::CutRunning | State::CutEnded | State::CutUnknown => {
            pending.cut();
            stage.barrier(&lane.b);
        }
    }
    match state {
        State::CutEnded => vault.release(&order),
        State::CutUnknown => vault.lose(&order),
        _ => {}
    }
    if state.is_unknown() && scene.is_command && !scene.has_sessions {
        let is_new = within(|| lane.b.is_answered() && vault.processes() > processes);
        ensure(is_new, || "the command is not started again".into())?;
    }

    let mut fresh = match began {
        Began::Before => None,
        Began::After => Some(stage.b()),
        Began::Unseen => Some(stage.b_unseen()),
    };
    let b = fresh.as_mut().unwrap_or(&mut lane.b);
    let again = |b: &mut Party| {
        if ids == Ids::Request {
            b.http.last_id = id - 1;
        }
    };
    b.http.last_id = 100 * number + 50;
    let mut got = Got::Nothing;
    let is_decided = within(|| {
        again(b);
        let pending = b.begin(&b.call(&order, ids));
        if expect.may_wait() && matches!(state, State::Running | State::CutRunning) {
            stage.barrier(b);
            vault.release(&order);
        }
        let mut seen = pending.soon();
        if matches!(seen, Seen::Hung) {
            vault.release(&order);
            seen = pending.wait();
        }
        got = stage.got(&order, &seen);
        let is_early = matches!(&got, Got::Refused(said) if State::CutRunning.is_said(said, stage.credentials));
        !(is_early && matches!(state, State::CutEnded | State::CutUnknown))
    });
    let executed = vault.secrets(&order).len();
    let expected = 1 + usize::from(got == Got::Own);
    let told = format!("expected {expect:?}, and B got {got:?}");
    ensure(is_decided && expect.allows(&got), || told.clone())?;
    ensure(executed == expected, || format!("{executed} executions: {told}"))?;
    if let (Got::Refused(said), Expect::Refused) = (&got, expect) {
        ensure(state.is_said(said, stage.credentials), || {
            format!("the refusal does not say {state:?}: {said}")
        })?;
        let seen = b.once(&b.keyed(&order));
        let keyed = stage.got(&order, &seen);
        ensure(keyed == Got::Own, || format!("with a key of its own B got {keyed:?}"))?;
    }
    vault.release(&order);
    if let Some(waiting) = waiting {
        is_a(&waiting.wait(), &secret, "A")?;
    }
    let b_left = vault.secrets(&order).len();
    let comes_back = scene.has_sessions && matches!(state, State::CutRunning | State::CutEnded);
    if comes_back && matches!(got, Got::Refused(_)) {
        if ids == Ids::Request {
            a.http.last_id = id - 1;
        }
        is_a(&a.once(&a.call(&order, ids)), &secret, "A, who is back,")?;
        ensure(vault.secrets(&order).len() == b_left, || "A, who is back, made it again".into())?;
    }
    if state == State::Answered && ids != Ids::Request {
        let seen = a.once(&a.call(&order, ids));
        let got = stage.got(&order, &seen);
        ensure(got == Got::Own, || format!("A, who makes it once more, got {got:?}"))?;
        // The same id under other arguments is another call.
        let other = format!("other-{number}");
        let seen = b.once(&b.call(&other, ids));
        ensure(vault.secrets(&other).len() == 1 && seen.is_success(), || {
            format!("B's call under other arguments: {seen:?}")
        })?;
    }
    if let Some(fresh) = fresh {
        fresh.end();
    }
    Ok(format!("{got:?}"))
}

/// Ids that cannot be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strong {
    Key,
    Random,
}

/// B makes a call under a strong id of A's.
pub(super) fn strong(
    stage: &Stage,
    lane: &mut Lane,
    number: u32,
    (strong, state): (Strong, State),
) -> Outcome {
    let (vault, order) = (&stage.vault, format!("order-{number}"));
    let kind = if strong == Strong::Key { Kind::Keyed } else { Kind::ClaudeCode };
    let id = Call::new(kind, "", "").meta;
    let named = |party: &Party| {
        let mut call = party.call(&order, Ids::None);
        call.meta.as_object_mut().unwrap().extend(id.as_object().unwrap().clone());
        call
    };
    if state != State::Answered {
        vault.hold(&order, 1);
    }
    lane.a.http.last_id = 100 * number;
    let pending = lane.a.begin(&named(&lane.a));
    let secret = first(stage, &order, &pending)?;
    let mut waiting = None;
    match state {
        State::Answered => is_a(&pending.wait(), &secret, "A")?,
        State::CutRunning => {
            pending.cut();
            stage.barrier(&lane.b);
        }
        _ => waiting = Some(pending),
    }
    let is_shared = !stage.credentials.differ();
    lane.b.http.last_id = 100 * number + 50;
    let asked = lane.b.begin(&named(&lane.b));
    if is_shared {
        stage.barrier(&lane.b);
        vault.release(&order);
    }
    let mut seen = asked.soon();
    if matches!(seen, Seen::Hung) {
        vault.release(&order);
        seen = asked.wait();
    }
    let got = stage.got(&order, &seen);
    vault.release(&order);
    let holds = if is_shared { got == Got::Theirs } else { matches!(got, Got::Refused(_)) };
    ensure(holds, || format!("B got {got:?}"))?;
    let executed = vault.secrets(&order).len();
    ensure(executed == 1, || format!("{executed} executions, and B got {got:?}"))?;
    if let Some(waiting) = waiting {
        is_a(&waiting.wait(), &secret, "A")?;
    }
    Ok(format!("{got:?}"))
}

/// The secret of the first execution for this order, which this request asks for.
pub(super) fn first(stage: &Stage, order: &str, pending: &Pending) -> Result<String, String> {
    let secrets = || stage.vault.secrets(order);
    let runs = within(|| secrets().len() == 1);
    ensure(runs, || format!("the call for {order} does not run: {}", pending.text()))?;
    Ok(secrets().remove(0))
}

/// Whether this is A's own answer.
pub(super) fn is_a(seen: &Seen, secret: &str, who: &str) -> Result<(), String> {
    ensure(seen.is_success() && seen.text().contains(secret), || {
        format!("{who} does not get its own answer: {seen:?}")
    })
}
