//! Every state comes back from its bytes.
use super::*;
use crate::{
    end::failed,
    protocol::{Again, Ask, Ttls},
};
use tr_core::canonical::Digest;
use tr_core::{Classification, FailureInfo, Ran, ToolOutcome, Verdict};

const KEY: Key = Key::from_bytes([1; 32]);

const HOUR: Millis = 3_600_000;

fn place() -> Place {
    let digest = Digest::of_bytes(b"params");
    Place { key: KEY, digest, mutating: true, epoch: 1, by_hand: false }
}

/// A record of that place, in this state.
fn stored(state: StoredState) -> StoredRecord {
    let ttls = Ttls { done: HOUR, failed: HOUR, inflight: HOUR, unknown: HOUR };
    let token = Token { epoch: 1, owner: 2 };
    let digest = place().digest;
    let ask = Ask { digest, mutating: true, again: false, corrects: false, token, now: 0, ttls };
    StoredRecord { state, ..StoredRecord::new(&ask) }
}

fn format(most_bytes: usize) -> Format<ToolOutcome> {
    Format::new(most_bytes, Frames::default())
}

fn failure(response: Option<ToolOutcome>) -> Failure<ToolOutcome> {
    let end = Classification::new(Verdict::TRANSIENT, Ran::Unknown, "timeout");
    Failure::new(Arc::new(RecordedFailure::new(end, Some("reset".into()))), response, None)
}

/// A failure whose error says only what the record has beside it.
fn told(code: &'static str) -> Failure<ToolOutcome> {
    let error = FailureInfo::new(code, Ran::Unknown, Verdict::TRANSIENT);
    let end = Classification::new(Verdict::TRANSIENT, Ran::Unknown, code);
    Failure::new(Arc::new(RecordedFailure::new(end, Some(error.into()))), None, None)
}

#[test]
fn every_state_comes_back() {
    let format = format(1_000);
    let outcome = || ToolOutcome::success(serde_json::json!({"paid": 5}));
    for state in [
        State::Inflight,
        State::Done(Some(outcome())),
        State::Done(None),
        State::Failed(failure(None), Again::WhenAsked),
        State::Failed(told("timeout"), Again::WhenAsked),
        State::Failed(failure(Some(outcome())), Again::Never),
        State::Cancelled(None),
        State::Cancelled(Some(failure(None))),
        State::Unknown(None),
        failed(true, failure(Some(outcome()))),
    ] {
        let (written, is_whole) = format.write(&place(), &state, HOUR, &[], None);
        assert!(is_whole);
        assert_eq!(written.state.phase(), state.phase());
        let kept = format.read(&KEY, &stored(written.state.clone())).unwrap();
        assert_eq!(kept.phase(), state.phase());
        assert_eq!(format.write(&place(), &kept, HOUR, &[], None).0, written);
    }
}

#[test]
fn an_oversized_answer_is_done_with_a_digest_and_a_marker() {
    let format = format(100);
    let state = State::Done(Some(ToolOutcome::success(serde_json::json!("x".repeat(100)))));
    let (written, is_whole) = format.write(&place(), &state, HOUR, &[], None);
    assert!(!is_whole);
    let StoredState::Done(body) = &written.state else { panic!("it is done") };
    let record = stored(written.state.clone());
    let payload = format.frames.unwrap(&Found::body(&KEY, &record), body).unwrap();
    let (head, answer) = split(&payload).unwrap();
    let marker = head.oversized.unwrap();
    assert_eq!((marker.bytes, marker.digest.len(), answer.len()), (132, 64, 0));
    assert!(matches!(format.read(&KEY, &record).unwrap(), State::Done(None)));
}

#[test]
fn an_oversized_failure_is_kept_in_few_words_and_not_as_a_whole() {
    let outcome = |text: &str| ToolOutcome::success(serde_json::json!(text));
    let large = || {
        let recorded = failure(None).recorded;
        Failure::new(recorded, Some(outcome(&"x".repeat(100))), Some(outcome("x")))
    };
    for state in [failed(true, large()), State::Cancelled(Some(large()))] {
        let (written, is_whole) = format(100).write(&place(), &state, HOUR, &[], None);
        assert!(!is_whole, "a duplicate gets the short one");
        let kept = format(100).read(&KEY, &stored(written.state)).unwrap();
        let (State::Unknown(Some(it)) | State::Cancelled(Some(it))) = kept else {
            panic!("{kept:?}")
        };
        assert_eq!(it.response.unwrap().parts().content, outcome("x").parts().content);
    }
}

#[test]
fn earlier_runs_are_told_and_bounded() {
    let run = |n| Run {
        started_at: n,
        finished_at: n,
        success: false,
        retriable: true,
        code: None,
        settled: None,
    };
    let runs: Vec<_> = (0..40).map(run).collect();
    let failed = State::Failed(failure(None), Again::Freely);
    let record = stored(format(100).write(&place(), &failed, HOUR, &runs, None).0.state);
    let found = Found::body(&KEY, &record);
    let (earlier, recorded, _) = format(100).history(&found).unwrap();
    assert_eq!((earlier.len(), earlier[0].started_at), (RUNS, 24));
    assert_eq!(&*recorded.unwrap().code, "timeout");
}

#[test]
fn who_settled_a_call_is_kept_and_what_older_versions_read_stays_the_same() {
    let by = || Some(Box::new(Settlement::new("ada (uid 7)", &"w".repeat(2_000))));
    for state in [State::Done(None), State::Cancelled(None)] {
        let record = stored(format(100).write(&place(), &state, HOUR, &[], by()).0.state);
        let found = Found::body(&KEY, &record);
        let (.., settled) = format(100).history(&found).unwrap();
        let settled = settled.unwrap();
        assert_eq!((&*settled.by, settled.why.len()), ("ada (uid 7)", 1_000));
        let read = format(100).read(&KEY, &record).unwrap();
        assert_eq!(read.phase(), state.phase());
        assert!(read.failure().is_none() && read.kept().is_none());
    }
}
