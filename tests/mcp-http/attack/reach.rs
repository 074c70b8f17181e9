//! What B sends that reaches for a call of A's: cancellations, ends of sessions, resumed streams, tokens of progress.
use super::{
    calls::{first, is_a},
    scene::{Got, Ids, Party, Pending, Stage},
    table::{Lane, Outcome, ensure, within},
    vault::{CREATES, READS},
};
use serde_json::json;

/// Who cancels A's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A client without a call under this id.
    Other,
    /// A client that has one of its own.
    OtherWithItsOwn,
    /// Another credential, in A's session.
    Thief,
    /// A, on another connection.
    Itself,
}

/// A cancellation counts only from the session of its call; where there are no sessions, only from its connection.
pub(super) fn cancel(
    stage: &Stage,
    lane: &mut Lane,
    number: u32,
    (by, reads): (By, bool),
) -> Outcome {
    let (scene, vault) = (stage.scene, &stage.vault);
    let (order, own) = (format!("order-{number}"), format!("own-{number}"));
    let tool = if reads { READS } else { CREATES };
    let call = |party: &Party, order: &str| {
        let mut call = party.call(order, Ids::None);
        call.tool = tool;
        call
    };
    vault.hold(&order, 1);
    lane.a.http.last_id = 100 * number;
    let pending = lane.a.begin(&call(&lane.a, &order));
    let secret = first(stage, &order, &pending)?;
    let mut owned = None;
    if by == By::OtherWithItsOwn {
        vault.hold(&own, 1);
        lane.b.http.last_id = pending.id - 1;
        let pending = lane.b.begin(&call(&lane.b, &own));
        first(stage, &own, &pending)?;
        owned = Some(pending);
    }
    let mut thief = lane.b.in_session_of(&lane.a);
    let canceller = match by {
        By::Other | By::OtherWithItsOwn => &mut lane.b,
        By::Thief => &mut thief,
        By::Itself => &mut lane.a,
    };
    canceller.cancel(&json!(pending.id.to_string()));
    canceller.cancel(&json!(pending.id));
    stage.barrier(&lane.b);
    let ends = by == By::Itself && scene.has_sessions;
    if ends {
        let is_cancelled = within(|| vault.cancelled(&order) == 1);
        vault.release(&order);
        ensure(is_cancelled, || "A cannot cancel its own call".into())?;
        return Ok("cancelled".into());
    }
    let is_own_cancelled = owned.is_none()
        || if scene.has_sessions { within(|| vault.cancelled(&own) == 1) } else { true };
    let cancelled = vault.cancelled(&order);
    vault.release(&own);
    vault.release(&order);
    ensure(cancelled == 0, || "A's call is cancelled at the server".into())?;
    is_a(&pending.wait(), &secret, "A")?;
    ensure(is_own_cancelled, || "B cannot cancel its own call".into())?;
    Ok("A's call goes on".into())
}

/// B makes the very request of A's, in A's session, with a credential of its own.
pub(super) fn steal(stage: &Stage, lane: &mut Lane, number: u32, is_cut: bool) -> Outcome {
    let (vault, order) = (&stage.vault, format!("order-{number}"));
    if is_cut {
        vault.hold(&order, 1);
    }
    lane.a.http.last_id = 100 * number;
    let call = lane.a.call(&order, Ids::None);
    let pending = lane.a.begin(&call);
    let secret = first(stage, &order, &pending)?;
    let mut thief = lane.b.in_session_of(&lane.a);
    thief.http.last_id = pending.id - 1;
    if is_cut {
        pending.cut();
        stage.barrier(&lane.b);
    } else {
        is_a(&pending.wait(), &secret, "A")?;
    }
    let stolen = thief.begin(&call);
    let seen = stolen.soon();
    vault.release(&order);
    let got = stage.got(&order, &seen);
    ensure(!matches!(got, Got::Theirs | Got::Nothing), || format!("B got {got:?}"))?;
    Ok(format!("{got:?}"))
}

/// A session that B guesses: its call does not run.
pub(super) fn guess(stage: &Stage, lane: &mut Lane, number: u32) -> Outcome {
    let order = format!("order-{number}");
    let mut thief = lane.b.in_session_of(&lane.a);
    for session in near(lane.a.session().unwrap_or_default()) {
        thief.http.session = Some(session.clone());
        let seen = thief.once(&thief.call(&order, Ids::None));
        ensure(!seen.is_success(), || format!("{session}: {seen:?}"))?;
    }
    ensure(stage.vault.secrets(&order).is_empty(), || "B's call runs".into())?;
    Ok("no session".into())
}

/// Ends of sessions that are not A's.
pub(super) fn delete(stage: &Stage, number: u32) -> Outcome {
    let (vault, order) = (&stage.vault, format!("order-{number}"));
    let (mut a, b) = (stage.a(), stage.b());
    vault.hold(&order, 1);
    a.http.last_id = 100 * number;
    let pending = a.begin(&a.call(&order, Ids::None));
    let secret = first(stage, &order, &pending)?;
    let mut wrong = vec![None, Some("0".repeat(32)), Some("session-0".into())];
    wrong.extend(a.session().into_iter().flat_map(near).map(Some));
    if stage.credentials.differ() {
        wrong.extend(a.session().map(|session| Some(session.to_owned())));
    }
    for session in &wrong {
        let status = b.delete(session.as_deref());
        ensure(status >= 400, || format!("DELETE of {session:?} gets {status}"))?;
    }
    if let Some(own) = b.session() {
        let status = b.delete(Some(own));
        ensure(status < 300, || format!("B's DELETE of its own session gets {status}"))?;
    }
    let is_up = a.is_answered();
    vault.release(&order);
    is_a(&pending.wait(), &secret, "A")?;
    ensure(is_up && a.is_answered(), || "A's session has ended".into())?;
    a.end();
    Ok("A's session goes on".into())
}

/// Ids that are like this one.
pub(super) fn near(session: &str) -> Vec<String> {
    let shorter = session[..session.len() - 1].to_owned();
    let upper = session.to_uppercase();
    let mut all = vec![format!("{session}0"), format!("{shorter}g"), shorter];
    all.extend((upper != session).then_some(upper));
    all
}

/// B asks for streams by ids of A's events.
pub(super) fn resume(stage: &Stage, number: u32) -> Outcome {
    let (scene, vault) = (stage.scene, &stage.vault);
    let [order, own, later] = ["order", "own", "later"].map(|name| format!("{name}-{number}"));
    for order in [&order, &own, &later] {
        vault.stream(order);
        vault.hold(order, 1);
    }
    let (mut a, mut b) = (stage.a(), stage.b());
    a.http.last_id = 100 * number;
    b.http.last_id = 100 * number + 50;
    let pending = a.begin(&a.call(&order, Ids::None));
    let secret = first(stage, &order, &pending)?;
    let owned = b.begin(&b.call(&own, Ids::None));
    let own_secret = first(stage, &own, &owned)?;
    let mut tries = Vec::new();
    let mut events = vec!["0-0".to_owned(), "1-0".into(), "1-1".into(), "event-0".into()];
    if scene.has_sessions {
        let event = event(&pending)?;
        if let Some((stream, _)) = event.rsplit_once('-').filter(|_| scene.is_command) {
            events.push(format!("{stream}-0"));
        }
        events.push(event);
    }
    for event in &events {
        tries.push((event, "its own", b.resume(b.session(), event)));
        tries.push((event, "no", b.resume(None, event)));
        if stage.credentials.differ() && scene.has_sessions {
            tries.push((event, "A's", b.resume(a.session(), event)));
        }
    }
    stage.barrier(&a);
    vault.release(&order);
    vault.release(&own);
    let seen = pending.wait();
    // Who resumed B's own stream last gets its answer.
    let holds_own = |pending: &Pending| pending.text().contains(&own_secret);
    let has_own = within(|| holds_own(&owned) || tries.iter().any(|(.., tried)| holds_own(tried)));
    // Streams without an end, end with the session.
    b.end();
    for (event, session, tried) in tries {
        let (head, seen) = tried.response();
        let (text, status) = (tried.text(), head.map_or(0, |head| head.status()));
        ensure(!text.contains(&secret), || {
            format!("B resumes {event} in {session} session: {seen:?} {text}")
        })?;
        ensure(session == "its own" && scene.has_sessions || status >= 400, || {
            format!("B's GET after {event} in {session} session gets {status}")
        })?;
    }
    is_a(&seen, &secret, "A")?;
    ensure(has_own, || "B does not get its own answer".into())?;
    if scene.has_sessions {
        // Its own stream A resumes.
        let cut = a.begin(&a.call(&later, Ids::None));
        let secret = first(stage, &later, &cut)?;
        let event = event(&cut)?;
        cut.cut();
        stage.barrier(&a);
        let resumed = a.resume(a.session(), &event);
        vault.release(&later);
        let has_it = within(|| resumed.text().contains(&secret));
        ensure(has_it, || format!("A does not resume its own stream: {}", resumed.text()))?;
    }
    a.end();
    Ok("nothing of A's".into())
}

/// The id of the first event of a response.
fn event(pending: &Pending) -> Result<String, String> {
    let find = || {
        let text = pending.text();
        let id = text.split("\nid:").nth(1)?.split_once('\n')?.0;
        Some(id.trim().to_owned())
    };
    ensure(within(|| find().is_some()), || "A's stream has no event".into())?;
    Ok(find().unwrap_or_default())
}

/// Both calls run under one JSON-RPC id and one token of progress.
pub(super) fn progress(stage: &Stage, lane: &mut Lane, number: u32) -> Outcome {
    let vault = &stage.vault;
    let orders = ["order", "own"].map(|name| format!("{name}-{number}"));
    let mut begun = Vec::new();
    for (party, order) in [&mut lane.a, &mut lane.b].into_iter().zip(&orders) {
        vault.stream(order);
        vault.hold(order, 1);
        party.http.last_id = 100 * number;
        let mut call = party.call(order, Ids::None);
        call.meta["progressToken"] = "token".into();
        let pending = party.begin(&call);
        let secret = first(stage, order, &pending)?;
        begun.push((pending, secret));
    }
    orders.iter().for_each(|order| vault.release(order));
    for ((pending, secret), order) in begun.iter().zip(&orders) {
        is_a(&pending.wait(), secret, "each")?;
        let text = pending.text();
        let hears = |order: &String| text.contains(&format!("progress of \\\"{order}\\\""));
        let heard = orders.iter().filter(|order| hears(order)).collect::<Vec<_>>();
        ensure(heard == [order], || format!("{order} hears of {heard:?}: {text}"))?;
    }
    Ok("each its own".into())
}
