//! Rounds: a child dies, and its session is loaded.
use super::{
    Place,
    child::{CALLS, FORMAT, Order, TURNS, says},
    fuse::Point,
};
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    path::PathBuf,
    time::Duration,
};
use tr_integrity::{OUTCOME_UNKNOWN, Sessions};
use tr_testkit::ledger::Ledger;

/// What a child has said before it died.
#[derive(Debug, Default)]
struct Said {
    kept: BTreeSet<String>,
    rolled: BTreeSet<String>,
    dead_at: Option<usize>,
}

/// Kills a child at each point, one after the other.
pub(crate) async fn at_points<P: Place>(test: &str, place: &str, ledger: PathBuf, rounds: u64) {
    let mut rng = fastrand::Rng::with_seed(21);
    let points = Point::all();
    for round in 0..rounds {
        let order = Order {
            place: place.into(),
            ledger: ledger.clone(),
            session: format!("s{round}"),
            point: Some(points[round as usize % points.len()]),
            nth: rng.u32(1..=TURNS as u32),
            lasts: Duration::from_micros(rng.u64(0..1_500)),
        };
        let said = outlive(&order, test, None);
        check::<P>(&order, &said).await;
    }
}

/// Kills a child from outside, at whichever point it is.
pub(crate) async fn at_any_moment<P: Place>(test: &str, place: &str, ledger: PathBuf, rounds: u64) {
    let mut rng = fastrand::Rng::with_seed(22);
    let mut kept = 0;
    for round in 0..rounds {
        let order = Order {
            place: place.into(),
            ledger: ledger.clone(),
            session: format!("s{round}"),
            point: None,
            nth: 0,
            lasts: Duration::ZERO,
        };
        let lines = rng.usize(1..=TURNS * 24);
        let said = outlive(&order, test, Some(lines));
        kept += said.kept.len();
        check::<P>(&order, &said).await;
    }
    assert!(kept > 0, "nothing was acknowledged that could have been lost");
}

/// Lets the child live until it dies, or kills it where it comes by for the `lines`th time.
fn outlive(order: &Order, test: &str, lines: Option<usize>) -> Said {
    let mut child = order.child(test).spawn().unwrap();
    let mut said = Said::default();
    let mut passed = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(what) = line.strip_prefix("kept ") {
            said.kept.insert(what.to_owned());
        } else if let Some(what) = line.strip_prefix("open ") {
            said.kept.remove(what);
        } else if let Some(what) = line.strip_prefix("rolled ") {
            said.rolled.insert(what.to_owned());
        } else if line.starts_with("at ") {
            passed += 1;
            if lines == Some(passed) {
                child.kill().unwrap();
                said.dead_at = Some(passed);
            }
        }
    }
    let end = child.wait().unwrap();
    // Killed from outside, it may be too late.
    assert!(!end.success() || lines.is_some(), "the child lived on: {order:?}");
    said
}

/// Another process finds the session valid, with all that was acknowledged, and goes on with it.
async fn check<P: Place>(order: &Order, said: &Said) {
    let id = &*order.session;
    let text = found::<P>(order).await;
    for kept in &said.kept {
        assert_eq!(text.matches(kept.as_str()).count(), 1, "{order:?}: {kept} is lost: {text}");
    }
    for rolled in &said.rolled {
        assert!(!text.contains(rolled.as_str()), "{order:?}: {rolled} is back: {text}");
    }
    let ledger = Ledger::at(&order.ledger);
    for (turn, n) in (0..TURNS).flat_map(|turn| (0..CALLS).map(move |n| (turn, n))) {
        let call = format!("t{turn}_{n}");
        let used = text.matches(&format!("\"id\":\"{call}\"")).count();
        let answered = text.matches(&format!("\"tool_use_id\":\"{call}\"")).count();
        assert!(used <= 1 && used == answered, "{order:?}: {call} is there in part: {text}");
        let runs = ledger.count(&format!("{id}.{call}")).unwrap();
        assert!(runs <= 1, "{order:?}: {call} ran {runs} times");
        // Whatever ran is in the session: by its answer, or as of unknown outcome.
        assert!(used >= runs, "{order:?}: {call} ran, and nobody knows: {text}");
        let knows = text.contains(&format!("answer {call};"));
        assert!(knows || used == 0 || text.contains(OUTCOME_UNKNOWN), "{order:?}: {call}: {text}");
    }

    let sessions = Sessions::builder(FORMAT).store(P::open(&order.place).await).build().unwrap();
    let goes_on = || sessions.change(id, |session, _| session.push(says("it goes on")));
    match goes_on().await {
        // What the dead process had sent to a server has arrived just now. It sends no more.
        Err(error) if error.is_conflict() => goes_on().await.unwrap(),
        end => end.unwrap(),
    }
    assert!(found::<P>(order).await.contains("it goes on"));
}

async fn found<P: Place>(order: &Order) -> String {
    let sessions = Sessions::builder(FORMAT).store(P::open(&order.place).await).build().unwrap();
    sessions.load(&order.session).await.unwrap();
    sessions.with(&order.session, |session, _| {
        assert!(session.validate().valid, "{order:?}: {:?}", session.validate());
        assert!(session.cycles().is_empty(), "{order:?}: {:?}", session.cycles());
        session.transcript().to_json()
    })
}
