//! Properties of the signals for any stream of calls, and their edges one by one.
use super::*;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

#[expect(clippy::disallowed_methods, reason = "a base for made-up times")]
fn base() -> Instant {
    Instant::now()
}

fn asked(call: u64, at: Instant) -> RequestedCall {
    RequestedCall {
        call: CallHash(call),
        tool: ToolHash(call % 11),
        poll: false,
        repeats: None,
        at,
    }
}

fn answered(call: u64, answer: u64, at: Instant) -> Step {
    let end = End::Success { answer: Some(answer), pending: false };
    Step { asked: asked(call, at), end, read_only: true }
}

/// Call, end, seconds since the call before, whether it failed, whether it only reads.
type Random = (u64, u64, u64, bool, bool);

fn streams(calls: u64) -> impl Strategy<Value = Vec<Random>> {
    let step = (0..calls, 0u64..3, 0u64..15, any::<bool>(), any::<bool>());
    prop::collection::vec(step, 0..300)
}

fn step((call, end, _, failed, read_only): Random, at: Instant) -> Step {
    let end = match failed {
        true => End::Failure(ErrorHash(end)),
        false => End::Success { answer: Some(end), pending: end == 2 },
    };
    Step { asked: asked(call, at), end, read_only }
}

proptest! {
    /// What is remembered, and so what is compared for each call, is bounded whatever comes.
    #[test]
    fn a_turn_s_memory_is_bounded(stream in streams(1000)) {
        let (signals, mut now) = (Signals::default(), base());
        let mut track = Track::default();
        for random in stream {
            now += SECOND * u32::try_from(random.2).unwrap();
            track.admit(&signals, &asked(random.0, now));
            track.record(&signals, &step(random, now));
            prop_assert!(track.size() <= CALLS + TOOLS);
        }
    }

    /// A call with a new response each time makes progress.
    #[test]
    fn successes_with_new_answers_are_no_loop(stream in streams(6)) {
        let (signals, mut now) = (Signals::default(), base());
        let mut track = Track::default();
        for (n, (call, _, pause, _, read_only)) in stream.into_iter().enumerate() {
            now += SECOND * u32::try_from(pause).unwrap();
            prop_assert_eq!(track.admit(&signals, &asked(call, now)), None);
            let step = Step { read_only, ..answered(call, n as u64, now) };
            prop_assert_eq!(track.record(&signals, &step).1, None);
        }
    }

    /// The same stream is judged the same.
    #[test]
    fn it_is_deterministic(stream in streams(6)) {
        let (signals, start) = (Signals::default(), base());
        let judge = || {
            let (mut track, mut now) = (Track::default(), start);
            let judged = stream.iter().map(|&random| {
                now += SECOND * u32::try_from(random.2).unwrap();
                (track.admit(&signals, &asked(random.0, now)), track.record(&signals, &step(random, now)))
            });
            judged.collect::<Vec<_>>()
        };
        prop_assert_eq!(judge(), judge());
    }

    /// What was refused stays refused, and nothing is refused that was not warned of.
    #[test]
    fn verdicts_hold_and_come_after_warnings(stream in streams(6)) {
        let (signals, mut now) = (Signals::default(), base());
        let mut track = Track::default();
        let (mut warned, mut refused) = (false, std::collections::HashSet::new());
        for random in stream {
            now += SECOND * u32::try_from(random.2).unwrap();
            let verdict = track.admit(&signals, &asked(random.0, now));
            prop_assert!(verdict.is_some() || !refused.contains(&random.0));
            if verdict.is_some() {
                prop_assert!(warned);
                refused.insert(random.0);
                continue;
            }
            warned |= track.record(&signals, &step(random, now)).1.is_some();
        }
    }

    /// A cycle of any length up to five is warned of in the third round and refused in the seventh,
    /// whatever came before it.
    #[test]
    fn cycles_are_found_behind_anything(before in streams(6), length in 2u64..=5) {
        let (signals, mut now) = (Signals::default(), base());
        let mut track = Track::default();
        for random in before {
            now += SECOND;
            track.record(&signals, &step(random, now));
        }
        for n in 0..6 * length {
            let call = 100 + n % length;
            now += SECOND;
            prop_assert_eq!(track.admit(&signals, &asked(call, now)), None);
            let (_, warning) = track.record(&signals, &answered(call, 0, now));
            let round = u32::try_from(n / length + 1).unwrap();
            if (n + 1) % length == 0 && round >= 3 {
                let rule = Rule::Cycle(u8::try_from(length).unwrap());
                prop_assert_eq!(warning, Some(Signal { rule, count: round }));
            }
        }
        prop_assert!(track.admit(&signals, &asked(100, now)).is_some());
    }
}

#[test]
fn a_turn_takes_at_most_4_kib() {
    let tables = CALLS * size_of::<TrackedCall>() + TOOLS * size_of::<Failing>();
    assert!(tables + size_of::<Track>() <= 4096, "{tables}");
}

#[test]
fn who_waits_does_not_count_but_for_time() {
    let (signals, start) = (Signals::default(), base());
    let mut track = Track::default();
    let mut refused = None;
    for minute in 0..180 {
        let now = start + SECOND * 60 * minute;
        if track.admit(&signals, &asked(1, now)).is_some() {
            refused = Some(minute);
            break;
        }
        let (_, warning) = track.record(&signals, &answered(1, 0, now));
        assert_eq!(warning.is_some(), minute >= 60, "minute {minute}");
        assert!(warning.is_none_or(|signal| signal.rule == Rule::Quiet));
    }
    assert_eq!(refused, Some(120));
}

#[test]
fn a_new_success_that_may_change_things_starts_the_count_anew() {
    let (signals, now) = (Signals::default(), base());
    let mut track = Track::default();
    for n in 0..100 {
        assert_eq!(track.admit(&signals, &asked(1, now)), None);
        assert_eq!(track.record(&signals, &answered(1, 0, now)).1, None);
        if n % 9 == 8 {
            let edit = Step { read_only: false, ..answered(1000 + n, 0, now) };
            assert_eq!(track.record(&signals, &edit).0, StepChange::Progress);
        }
    }
}

#[test]
fn what_is_old_is_forgotten_and_verdicts_too() {
    let (signals, start) = (Signals::default(), base());
    let mut track = Track::default();
    for _ in 0..20 {
        track.record(&signals, &answered(1, 0, start));
    }
    let at = start + SECOND * 59;
    assert!(track.admit(&signals, &asked(1, at)).is_some());
    track.expire(SECOND * 60, start + SECOND * 100);
    assert!(track.admit(&signals, &asked(1, start + SECOND * 100)).is_some());
    track.expire(SECOND * 60, start + SECOND * 119);
    assert!(track.is_empty());
}
