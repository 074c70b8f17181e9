//! What bars equal calls, and what a late answer is given to.
use super::*;
use serde_json::json;
use tr_core::internal::lock;

/// Whether an answer is given; a caller without one is told so.
fn is_answer(late: Option<(Kept, Duration, bool)>) -> bool {
    matches!(late.unwrap().0, Kept::Answer(_))
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_for_its_credential_and_those_of_the_same_caller() {
    let all = Unknowns::default();
    let [old, new] = ["old", "new"].map(|it| Some(Digest::of_bytes(it)));
    let equals = |by| all.equals(key(1), None, ("a", by), Digest::of_bytes(""));
    all.ended_late(&equals(old), &Resolution::Done(ToolOutcome::success(json!("paid"))));
    for by in [new, None] {
        assert!(matches!(all.take_late(&equals(by), &[]), Some((Kept::OfAnother, ..))));
    }
    assert!(is_answer(all.take_late(&equals(new), old.as_slice())));
    assert!(all.take_late(&equals(old), &[]).is_none(), "once");
}

fn key(byte: u8) -> Key {
    Key::from_bytes([byte; 32])
}

#[tokio::test(start_paused = true)]
async fn an_unknown_call_bars_its_equals_for_ten_minutes_and_not_itself() {
    let all = Unknowns::default();
    let call = all.equals(key(1), Some(key(9)), ("a", None), Digest::of_bytes(""));
    all.note(call, Some(key(9)), Earlier::NoAnswer, "pay");
    assert!(all.bars(&key(1), None).is_some_and(|barred| barred.key == Some(key(9))));
    assert!(all.bars(&key(1), Some(key(8))).is_some());
    assert!(all.bars(&key(1), Some(key(9))).is_none() && all.bars(&key(2), None).is_none());
    all.ended_late(&call, &Resolution::DidNotRun);
    assert!(all.bars(&key(1), None).is_none());
    all.note(
        all.equals(key(1), None, ("a", None), Digest::of_bytes("")),
        None,
        Earlier::NoAnswer,
        "pay",
    );
    tokio::time::advance(BARS).await;
    assert!(all.bars(&key(1), None).is_none());
}

#[tokio::test(start_paused = true)]
async fn each_of_several_equal_calls_bars_until_its_own_end_is_known() {
    for records in [[None, None], [Some(key(8)), Some(key(9))], [None, Some(key(9))]] {
        for order in [[0, 1], [1, 0]] {
            let all = Unknowns::default();
            let calls = records.map(|record| {
                (all.equals(key(1), record, ("a", None), Digest::of_bytes("")), record)
            });
            for (call, record) in calls {
                all.note(call, record, Earlier::NoAnswer, "pay");
            }
            if records[1].is_some() {
                // A repeat under the same id is the same call.
                all.note(
                    all.equals(key(1), records[1], ("a", None), Digest::of_bytes("")),
                    records[1],
                    Earlier::NoAnswer,
                    "pay",
                );
            }
            all.ended_late(&calls[order[0]].0, &Resolution::DidNotRun);
            let (_, left) = calls[order[1]];
            assert!(all.bars(&key(1), None).is_some_and(|barred| barred.key == left));
            all.ended_late(&calls[order[1]].0, &Resolution::DidNotRun);
            assert!(all.bars(&key(1), None).is_none(), "{records:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_breaker_knows_of_which_tool_a_call_may_have_run() {
    let all = Unknowns::default();
    let call = all.equals(key(1), None, ("a", None), Digest::of_bytes(""));
    all.note(call, None, Earlier::Failure, "pay");
    assert!(all.has_of("pay") && !all.has_of("search"));
    all.answered_late(&call);
    assert!(all.bars(&key(1), None).is_some_and(|by| by.earlier == Earlier::LateAnswer));
    all.ended_late(&call, &Resolution::DidNotRun);
    assert!(!all.has_of("pay"));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_its_owners_and_one_too_large_is_not_kept() {
    let done = |bytes| Resolution::Done(ToolOutcome::success(json!("x".repeat(bytes))));
    for (how, is_kept) in [(done(9), true), (done(KEPT), false), (Resolution::DoneNotKept, false)] {
        for is_noted in [true, false] {
            let all = Unknowns::default();
            let [mine, again] =
                [(); 2].map(|()| all.equals(key(1), None, ("a", None), Digest::of_bytes("")));
            let note = || all.note(mine, None, Earlier::NoAnswer, "pay");
            let is_told = || {
                // Whichever is known first, of the end and of the caller that gave up.
                if is_noted {
                    note();
                }
                all.ended_late(&mine, &how);
                note();
            };
            is_told();
            assert!(all.bars(&key(1), None).is_none() && !all.has_of("pay"));
            assert!(
                all.take_late(&all.equals(key(1), None, ("b", None), Digest::of_bytes("")), &[])
                    .is_none(),
                "another's"
            );
            assert!(
                all.take_late(&all.equals(key(2), None, ("a", None), Digest::of_bytes("")), &[])
                    .is_none(),
                "another call"
            );
            assert_eq!(is_answer(all.take_late(&again, &[])), is_kept);
            assert!(all.take_late(&again, &[]).is_none(), "once");
            is_told();
            all.received(&mine);
            assert!(all.take_late(&again, &[]).is_none(), "its client has it");
            is_told();
            tokio::time::advance(BARS).await;
            assert!(all.take_late(&again, &[]).is_none(), "too long ago");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn late_answers_that_have_expired_take_no_room() {
    let all = Unknowns::default();
    let half = Resolution::Done(ToolOutcome::success(json!("x".repeat(KEPT / 2 + 1))));
    let calls = [(); 3].map(|()| all.equals(key(1), None, ("a", None), Digest::of_bytes("")));
    all.ended_late(&calls[0], &half);
    all.ended_late(&calls[1], &half);
    assert!(is_answer(all.take_late(&calls[2], &[])));
    assert!(!is_answer(all.take_late(&calls[2], &[])));
    all.ended_late(&calls[0], &half);
    tokio::time::advance(BARS).await;
    all.ended_late(&calls[1], &half);
    assert!(is_answer(all.take_late(&calls[2], &[])));
}

#[tokio::test(start_paused = true)]
async fn there_is_room_for_as_many_as_may_be_and_the_first_goes() {
    let all = Unknowns::default();
    for number in 0..=MOST as u32 {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        let call = all.equals(Key::from_bytes(bytes), None, ("a", None), Digest::of_bytes(""));
        if number.is_multiple_of(2) {
            all.note(call, None, Earlier::NoAnswer, "pay");
        } else {
            all.succeeded(&call, &ToolOutcome::success(json!("paid")), BARS);
        }
        tokio::time::advance(Duration::from_micros(1)).await;
    }
    assert_eq!(lock(&all.calls).len(), MOST);
    assert!(all.bars(&key(0), None).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_declared_success_is_kept_for_its_time_and_whole_or_not_at_all() {
    let all = Unknowns::default();
    let call = all.equals(key(1), Some(key(9)), ("a", None), Digest::of_bytes(""));
    all.succeeded(&call, &ToolOutcome::success(json!("x".repeat(KEPT))), BARS / 2);
    assert!(all.take_late(&call, &[]).is_none(), "too large");
    all.succeeded(&call, &ToolOutcome::success(json!("paid")), BARS / 2);
    all.note(call, None, Earlier::NoAnswer, "pay");
    assert!(is_answer(all.take_late(&call, &[])));
    tokio::time::advance(BARS / 2).await;
    assert!(all.take_late(&call, &[]).is_none());
    all.note(call, None, Earlier::NoAnswer, "pay");
    assert!(all.has_of("pay"), "what has expired hides nothing");
}
