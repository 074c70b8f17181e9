//! What outlives the process.
use crate::rig::{Rig, call, failure, is_refused, ok, refusal};
use std::time::Duration;
use tokio::time::advance;
use tr_breaker::{Builder, Mode, Snapshot};
use tr_core::{
    BreakerState::{Closed, ForcedOpen, HalfOpen, Open},
    KeyRef, SetClock,
};

const SECOND: Duration = Duration::from_secs(1);

/// Some time after the epoch, in milliseconds.
const THEN: u64 = 1_771_672_800_000;

fn save(rig: &Rig, unix_ms: u64) -> Snapshot {
    let saved = rig.layer.registry().save(&SetClock::at(unix_ms));
    #[cfg(feature = "serde")]
    let saved = {
        let text = serde_json::to_string(&saved).unwrap();
        let read: Snapshot = serde_json::from_str(&text).unwrap();
        assert_eq!(read, saved);
        read
    };
    saved
}

fn restored(builder: Builder, saved: &Snapshot, unix_ms: u64) -> Rig {
    let rig = Rig::new(builder);
    rig.layer.registry().restore(saved, &SetClock::at(unix_ms));
    rig
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_stays_open_for_the_rest_of_its_cooldown() {
    let rig = Rig::new(Builder::close_on_first_success()).opened().await;
    advance(10 * SECOND).await;
    let saved = save(&rig, THEN);
    let wall_and_left = [
        (THEN, Some(20)),
        (THEN + 5_000, Some(15)),
        (THEN + 20_000, None),
        (THEN + 86_400_000, None),
        // The wall clock was put back: never longer than a cooldown.
        (THEN - 86_400_000, Some(30)),
    ];
    for (wall, left) in wall_and_left {
        let rig = restored(Builder::close_on_first_success(), &saved, wall);
        let answer = rig.call().await;
        assert_eq!(is_refused(&answer), left.is_some(), "{wall}");
        if let Some(left) = left {
            assert_eq!(refusal(&answer).retry_after(), Some(left * SECOND), "{wall}");
            let why = "timeout: the tool may have run";
            assert_eq!(refusal(&answer).last_failure(), Some(why));
            let heard = ["CLOSED to OPEN", "OPEN refuses"];
            assert_eq!(
                rig.heard.take(),
                heard.map(|x| format!("flight_search flight_search: {x}"))
            );
        } else {
            assert_eq!(rig.state(), Closed, "one success closes");
        }
    }

    let shorter = Builder::close_on_first_success().cooldown(5 * SECOND);
    let rig = restored(shorter, &saved, THEN);
    assert_eq!(refusal(&rig.call().await).retry_after(), Some(5 * SECOND), "by today's rules");
}

#[tokio::test(start_paused = true)]
async fn failures_before_and_after_a_restart_add_up_while_they_count() {
    let rig = Rig::new(Builder::close_on_first_success());
    rig.calls([ok(), failure("timeout"), failure("timeout")]).await;
    advance(60 * SECOND).await;
    rig.calls([failure("timeout"), failure("timeout")]).await;
    let saved = save(&rig, THEN);
    for (later, state) in [(60, Open), (61, Closed)] {
        let rig = restored(Builder::close_on_first_success(), &saved, THEN + later * 1_000);
        assert_eq!(rig.state(), Closed);
        let counts = rig.breaker().counts();
        assert_eq!(counts.consecutive_failures, 4);
        assert_eq!((counts.failures, counts.calls), if later == 60 { (4, 5) } else { (2, 2) });
        rig.calls([failure("timeout")]).await;
        assert_eq!(rig.state(), state, "{later} s later");
    }
}

#[tokio::test(start_paused = true)]
async fn half_open_and_forced_open_and_modes_are_kept() {
    let rig = Rig::new(Builder::by_effect()).opened().await;
    advance(30 * SECOND).await;
    rig.call().await.unwrap();
    assert_eq!(rig.breaker().counts().probe_successes, 1);
    let again = restored(Builder::by_effect(), &save(&rig, THEN), THEN);
    assert_eq!((again.state(), again.breaker().counts().probe_successes), (HalfOpen, 1));
    again.call().await.unwrap();
    assert_eq!(again.state(), Closed, "the second of two");

    rig.breaker().force_open();
    rig.breaker().set_mode(Mode::Shadow);
    let again = restored(Builder::by_effect(), &save(&rig, THEN), THEN + 1_000_000);
    assert_eq!((again.state(), again.breaker().mode()), (ForcedOpen, Mode::Shadow));
}

#[tokio::test(start_paused = true)]
async fn only_what_is_known_is_saved_and_what_nobody_asked_for_is_passed_on() {
    let rig = Rig::new(Builder::close_on_first_success());
    rig.call().await.unwrap();
    assert!(save(&rig, THEN).is_empty(), "a success is nothing to know");

    let rig = rig.opened().await;
    rig.layer.registry().overflow().force_open();
    let saved = save(&rig, THEN);
    assert_eq!(saved.len(), 2);
    let waiting = restored(Builder::close_on_first_success(), &saved, THEN);
    assert_eq!(waiting.layer.registry().all().len(), 0, "made when it is asked for");
    assert_eq!(waiting.layer.registry().overflow().state(), ForcedOpen);
    let mut passed_on = save(&waiting, THEN);
    assert_eq!(passed_on.len(), 2);
    passed_on = save(&restored(Builder::close_on_first_success(), &passed_on, THEN), THEN);
    let rig = restored(Builder::close_on_first_success(), &passed_on, THEN);
    assert_eq!(rig.state(), Open);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_is_there_takes_it_over_and_late_ends_change_nothing() {
    let opened = Rig::new(Builder::close_on_first_success()).opened().await;
    let rig = Rig::new(Builder::close_on_first_success());
    rig.then([tr_testkit::tool::Step::after(SECOND, failure("timeout"))]);
    let late = tokio::spawn({
        use tower::ServiceExt;
        rig.service.clone().oneshot(call())
    });
    tokio::task::yield_now().await;
    rig.layer.registry().restore(&save(&opened, THEN), &SetClock::at(THEN));
    assert_eq!(rig.state(), Open);
    advance(30 * SECOND).await;
    late.await.unwrap().unwrap_err();
    assert_eq!(rig.state(), HalfOpen, "it was admitted before");
    assert_eq!(rig.layer.registry().get(KeyRef::new("unknown")).map(|b| b.state()), None);
}

#[tokio::test(start_paused = true)]
async fn a_closed_breaker_still_says_what_failed_last() {
    let rig = Rig::new(Builder::close_on_first_success());
    rig.calls([failure("timeout")]).await;
    let said = rig.breaker().last_failure();
    assert_eq!(said.as_deref(), Some("timeout: the tool may have run"));
    let again = restored(Builder::close_on_first_success(), &save(&rig, THEN), THEN);
    assert_eq!((again.state(), again.breaker().last_failure()), (Closed, said));
}

/// A restart is how settings are changed: what they said before is not what anybody knew.
#[tokio::test(start_paused = true)]
async fn what_was_only_configured_is_not_restored() {
    let rig = Rig::new(Builder::close_on_first_success()).opened().await;
    let again =
        restored(Builder::close_on_first_success().mode(Mode::Shadow), &save(&rig, THEN), THEN);
    assert_eq!((again.state(), again.breaker().mode()), (Open, Mode::Shadow));

    let again =
        restored(Builder::close_on_first_success().mode(Mode::Disabled), &save(&rig, THEN), THEN);
    assert_eq!((again.state(), again.breaker().mode()), (Closed, Mode::Disabled));
    again.breaker().set_mode(Mode::Enforce);
    assert_eq!(again.state(), Closed);

    let again =
        restored(Builder::close_on_first_success().forced_open(true), &save(&rig, THEN), THEN);
    assert_eq!(again.state(), ForcedOpen, "what the settings force open stays so");

    let forced = Rig::new(Builder::close_on_first_success().forced_open(true));
    assert_eq!(forced.state(), ForcedOpen);
    let again = restored(Builder::close_on_first_success(), &save(&forced, THEN), THEN);
    assert_eq!(again.state(), Closed, "nobody but the settings had forced it open");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_breaker_is_not_lost_to_a_second_snapshot() {
    let rig = Rig::new(Builder::close_on_first_success()).opened().await;
    let other = Rig::new(Builder::close_on_first_success());
    other.layer.registry().breaker(KeyRef::new("other")).force_open();
    let again = restored(Builder::close_on_first_success(), &save(&rig, THEN), THEN);
    again.layer.registry().restore(&save(&other, THEN), &SetClock::at(THEN));
    let of = |key| again.layer.registry().breaker(key).state();
    assert_eq!((again.state(), of(KeyRef::new("other"))), (Open, ForcedOpen));
}
