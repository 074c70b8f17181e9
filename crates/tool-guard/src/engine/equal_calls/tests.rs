//! Which call joins which.
use super::*;
use tokio::time::advance;
use tr_core::internal::lock;

const LONG: Duration = Duration::from_secs(4);

fn by(owner: &str, equals: &str) -> Call {
    let (equals, owner) = (Digest::of_bytes(equals), owner.into());
    let place = Box::clone(&owner);
    Call {
        equals,
        owner,
        place,
        credential: None,
        others: Vec::new(),
        since: None,
        weak_id: None,
        joins_after: None,
    }
}

fn pay() -> Call {
    by("a", "pay")
}

impl EqualCalls {
    async fn id(&self, call: Call, own: &str) -> String {
        self.begun(call, own).await.id().to_owned()
    }

    async fn begun(&self, call: Call, own: &str) -> Uncut {
        match self.begin(call, own.into()).await {
            Begun::As(uncut) => uncut,
            Begun::Refused(end) => panic!("refused: {end:?}"),
        }
    }

    fn noted(&self, call: Call, id: &str) {
        let (call, id, at) = (Arc::new(call), id.into(), Instant::now());
        lock(&self.0.table).note(CutOff { call, id, at, end: End::default() });
    }
}

#[tokio::test(start_paused = true)]
async fn each_cut_off_call_is_joined_once_and_for_a_minute() {
    let cuts = EqualCalls::default();
    cuts.noted(pay(), "1");
    cuts.noted(pay(), "2");
    assert_eq!(cuts.id(by("a", "other"), "9").await, "9");
    for (own, id) in [("7", "1"), ("8", "2"), ("9", "9")] {
        assert_eq!(cuts.id(pay(), own).await, id);
    }
    cuts.noted(pay(), "3");
    advance(HELD).await;
    assert_eq!(cuts.id(pay(), "4").await, "4");
    assert!(lock(&cuts.0.table).cuts.is_empty() && lock(&cuts.0.table).running.is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_the_owner_and_a_later_session_of_its_credential_continue_a_call() {
    let cuts = EqualCalls::default();
    let before = Instant::now();
    advance(Duration::from_secs(1)).await;
    cuts.noted(pay(), "1");
    advance(Duration::from_secs(1)).await;
    let (other, earlier) = (by("b", "pay"), Call { since: Some(before), ..by("b", "pay") });
    for call in [other.clone(), earlier] {
        assert!(matches!(cuts.begin(call, "2".into()).await, Begun::Refused(None)));
    }
    let later = Call { since: Some(Instant::now()), ..by("c", "pay") };
    assert_eq!(cuts.id(later, "3").await, "1");
    // It was taken.
    assert_eq!(cuts.id(other, "2").await, "2");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_how_the_earlier_call_ended_and_one_that_did_not_run_is_in_nobody_s_way() {
    let ended = Ended::At { unix_ms: 5, record: None };
    for (end, refused) in [
        (None, true),
        (Some(ended), true),
        (Some(Ended::Not), false),
        // The records refuse it.
        (Some(Ended::Unknown), false),
    ] {
        let cuts = EqualCalls::default();
        let call = cuts.begun(pay(), "1").await;
        *call.end.lock().unwrap() = end;
        call.cut();
        match cuts.begin(by("b", "pay"), "2".into()).await {
            Begun::Refused(said) => assert!(refused && said == end, "{end:?}"),
            Begun::As(call) => assert!(!refused && call.id() == "2", "{end:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_weak_id_names_a_call_while_it_runs_in_its_session() {
    let calls = EqualCalls::default();
    let weak = |owner: &str| Call { weak_id: Some("pay:0".into()), ..by(owner, "pay") };
    let first = calls.begun(weak("a"), "1").await;
    let begun = Instant::now();
    assert_eq!(calls.id(weak("a"), "2").await, "1");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(calls.id(weak("b"), "3").await, "3");
    assert_eq!(calls.id(pay(), "4").await, "4");
    drop(first);
    assert_eq!(calls.id(weak("a"), "5").await, "5");
}

#[tokio::test(start_paused = true)]
async fn a_call_joins_an_equal_one_that_has_run_for_long_in_its_session() {
    let calls = EqualCalls::default();
    let joins = |owner: &str| Call { joins_after: Some(LONG), ..by(owner, "pay") };
    let first = calls.begun(joins("a"), "1").await;
    advance(LONG - Duration::from_secs(1)).await;
    assert_eq!(calls.begin_now(joins("a"), "2".into()).joined, None);
    advance(Duration::from_secs(3)).await;
    for call in [joins("b"), pay(), Call { weak_id: Some("w".into()), ..pay() }] {
        assert_eq!(calls.begun(call, "3").await.joined, None);
    }
    let second = calls.begun(joins("a"), "4").await;
    // The others have waited for news of a cut.
    let ran = LONG + Duration::from_secs(2) + 3 * SOON;
    assert_eq!((second.id(), second.joined), ("1", Some(ran)));
    drop(first);
    // The second waits for the same end.
    let third = calls.begin_now(joins("a"), "5".into());
    assert_eq!((third.id(), third.joined.is_some()), ("1", true));
    drop((second, third));
    assert_eq!(calls.begin_now(joins("a"), "6".into()).id(), "6");
}

/// The repeat of a request may overtake the news that the first connection has ended.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_answered_once_is_not_cut_off_for_another_of_its_requests() {
    let calls = EqualCalls::default();
    for is_cut_first in [true, false] {
        let [first, second] = [calls.begun(pay(), "1").await, calls.begun(pay(), "1").await];
        if is_cut_first {
            first.cut();
            second.received();
        } else {
            second.received();
            assert!(first.cut().withdraw().is_none());
        }
        assert_eq!(calls.id(pay(), "2").await, "2", "{is_cut_first}");
        assert!(lock(&calls.0.table).cuts.is_empty());
        advance(HELD).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_request_joins_the_same_call_and_no_longer_running_one() {
    let calls = EqualCalls::default();
    let joins = || Call { joins_after: Some(LONG), ..pay() };
    let first = calls.begun(joins(), "1").await;
    advance(LONG).await;
    assert_eq!(calls.begun(joins(), "2").await.id(), "1");
    drop(first);
    assert_eq!(calls.id(joins(), "2").await, "1");
    // It is no equal call of the first one.
    let _first = calls.begun(joins(), "3").await;
    advance(LONG).await;
    let again = calls.begun(joins(), "3").await;
    assert_eq!((again.id(), again.joined), ("3", None));
}

#[tokio::test(start_paused = true)]
async fn a_weak_id_of_clients_that_share_a_credential_names_two_calls() {
    let calls = EqualCalls::default();
    let on = |place: &str| Call { place: place.into(), weak_id: Some("w".into()), ..pay() };
    let _first = calls.begun(on("1"), "1").await;
    assert_eq!(calls.id(on("2"), "2").await, "2");
    assert_eq!(calls.id(on("1"), "3").await, "1");
}

#[tokio::test(start_paused = true)]
async fn of_more_cuts_than_are_kept_one_that_runs_is_the_last_to_go() {
    let calls = EqualCalls::default();
    calls.noted(pay(), "runs");
    for number in 0..MOST {
        let call = calls.begun(by("b", &number.to_string()), &number.to_string()).await;
        *call.end.lock().unwrap() = Some(Ended::Not);
        call.cut();
    }
    assert_eq!(calls.id(pay(), "new").await, "runs");
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_is_faster_than_the_news_of_the_cut_waits_for_it() {
    let cuts = EqualCalls::default();
    let first = cuts.begun(pay(), "1").await;
    let begun = Instant::now();
    // Another call, and the same request sent once more, do not wait.
    assert_eq!(cuts.id(by("a", "other"), "2").await, "2");
    assert_eq!(cuts.id(pay(), "1").await, "1");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let (repeat, ()) = tokio::join!(cuts.begun(pay(), "3"), async {
        advance(SOON / 2).await;
        first.cut();
    });
    assert_eq!(repeat.id(), "1");
    // One that is meant waits for a moment, and is a call of its own.
    assert_eq!(cuts.id(pay(), "4").await, "4");
    assert!(begun.elapsed() >= SOON);
    drop(repeat);
    assert!(lock(&cuts.0.table).running.is_empty());
}

/// Seed 102, round 305 of `tests/kills` over HTTP: a repeat under another id joins the call, its answer counts as
/// received though its client vanished, too, and the same bytes come again.
#[tokio::test(start_paused = true)]
async fn a_request_that_joined_a_call_joins_it_again() {
    let cuts = EqualCalls::default();
    cuts.begun(pay(), "1").await.cut();
    assert_eq!(cuts.id(pay(), "2").await, "1");
    assert_eq!(cuts.id(pay(), "2").await, "1");
    // It was cut off again: the same request takes its place, and leaves none for a call that is meant.
    cuts.begun(pay(), "2").await.cut();
    assert_eq!(cuts.id(pay(), "2").await, "1");
    assert_eq!(cuts.id(pay(), "3").await, "3");
    advance(JOINED).await;
    cuts.noted(by("a", "other"), "4");
    assert_eq!(cuts.id(by("a", "other"), "5").await, "4");
    assert_eq!(lock(&cuts.0.table).joined.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_more_joins_than_are_kept_the_oldest_is_forgotten() {
    let cuts = EqualCalls::default();
    for number in 0..=MOST {
        cuts.noted(pay(), &format!("of-{number}"));
        cuts.id(pay(), &format!("{number}")).await;
        advance(Duration::from_millis(1)).await;
    }
    assert_eq!(lock(&cuts.0.table).joined.len(), MOST);
    let joined = |own: String| lock(&cuts.0.table).joined(&own, &pay().equals);
    assert_eq!(joined(MOST.to_string()), Some(format!("of-{MOST}").into()));
    assert_eq!(joined("0".into()), None);
    assert_eq!(joined("1".into()), Some("of-1".into()));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_back_was_not_cut_off() {
    let cuts = EqualCalls::default();
    let cut = cuts.begun(pay(), "1").await.cut();
    let back = cut.withdraw().unwrap();
    assert_eq!((cuts.id(pay(), "2").await.as_str(), back.id()), ("2", "1"));
    let cut = back.cut();
    assert_eq!(cuts.id(pay(), "3").await, "1");
    assert!(cut.withdraw().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_answered_call_is_not_waited_for() {
    let cuts = EqualCalls::default();
    let first = cuts.begun(pay(), "1").await;
    let begun = Instant::now();
    let (second, ()) = tokio::join!(cuts.begun(pay(), "2"), async { drop(first) });
    assert_eq!((second.id(), begun.elapsed()), ("2", Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn there_is_room_for_as_many_as_may_be_and_the_first_goes() {
    let cuts = EqualCalls::default();
    for number in 0..=MOST {
        cuts.noted(by("a", &number.to_string()), &number.to_string());
    }
    assert_eq!(cuts.id(by("a", "0"), "new").await, "new");
    assert_eq!(cuts.id(by("a", "1"), "new").await, "1");
    assert_eq!(lock(&cuts.0.table).cuts.len(), MOST - 1);
}
