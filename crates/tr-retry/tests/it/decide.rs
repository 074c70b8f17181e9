//! The pure decision: a table, and properties.
use proptest::prelude::*;
use std::time::Duration;
use tr_core::{Classification, Effect, Ran, Verdict, code};
use tr_retry::{Anchor, Decision, Failed, RetryConfig, RetryStop, Rng, decide};

const MS: u64 = 1_000_000;

fn failed() -> Failed<'static> {
    Failed {
        attempt: 0,
        started: 0,
        now: 50 * MS,
        deadline: None,
        end: Classification::new(Verdict::TRANSIENT, Ran::Unknown, code::TIMEOUT),
        ran: Ran::Unknown,
        effect: Effect::ReadOnly,
        repeat_safe: None,
    }
}

fn exact() -> RetryConfig {
    let mut config = RetryConfig::default();
    config.jitter = (1.0, 1.0);
    config
}

#[test]
fn decisions_by_table() {
    let retry = |ms| Decision::Retry { delay: Duration::from_millis(ms) };
    let stop = Decision::Stop;
    let end = |verdict, code| Classification::new(verdict, Ran::Unknown, code);
    let ended = |verdict| end(verdict, code::TIMEOUT);
    let hint = |ms| ended(Verdict::Transient { retry_after: Some(Duration::from_millis(ms)) });
    let refused = end(Verdict::TRANSIENT, code::CIRCUIT_OPEN);
    let mut exhausted = failed().end;
    exhausted.exhausted = true;
    let mutating = Failed { effect: Effect::Mutating, ..failed() };
    for (case, decision) in [
        (failed(), retry(200)),
        (Failed { attempt: 1, ..failed() }, retry(400)),
        (Failed { attempt: 2, ..failed() }, retry(800)),
        (Failed { attempt: 3, ..failed() }, stop(RetryStop::Attempts)),
        (Failed { attempt: u32::MAX, ..failed() }, stop(RetryStop::Attempts)),
        (Failed { end: ended(Verdict::Permanent), ..failed() }, stop(RetryStop::Permanent)),
        (Failed { end: ended(Verdict::Success), ..failed() }, stop(RetryStop::Permanent)),
        (Failed { end: ended(Verdict::Cancelled), ..failed() }, stop(RetryStop::Cancelled)),
        (Failed { end: hint(1_000), ..failed() }, retry(1_200)),
        (Failed { end: hint(u64::MAX), ..failed() }, stop(RetryStop::Elapsed)),
        (Failed { end: exhausted, ..failed() }, stop(RetryStop::Exhausted)),
        (Failed { end: refused, ..failed() }, stop(RetryStop::CircuitOpen)),
        (Failed { deadline: Some(250 * MS), ..failed() }, stop(RetryStop::Deadline)),
        (Failed { deadline: Some(250 * MS + 1), ..failed() }, retry(200)),
        (Failed { deadline: Some(0), ..failed() }, stop(RetryStop::Deadline)),
        (Failed { now: 29_800 * MS, ..failed() }, retry(200)),
        (Failed { now: 29_800 * MS + 1, ..failed() }, stop(RetryStop::Elapsed)),
        (Failed { now: u64::MAX, ..failed() }, stop(RetryStop::Elapsed)),
        (mutating, stop(RetryStop::Effect)),
        (Failed { ran: Ran::No, ..mutating }, retry(200)),
        (Failed { repeat_safe: Some(true), ..mutating }, retry(200)),
        (Failed { repeat_safe: Some(false), ran: Ran::Yes, ..mutating }, stop(RetryStop::Effect)),
    ] {
        assert_eq!(decide(&exact(), &case, &mut Rng::new(0, 0)), decision, "{case:?}");
    }
}

#[test]
fn a_delay_from_the_attempts_start_is_what_is_left_of_it() {
    let mut config = exact();
    config.anchor = Anchor::AttemptStart;
    for (started, now, left) in
        [(0, 50, 150), (0, 200, 0), (0, 900, 0), (700, 900, 0), (700, 750, 150)]
    {
        let case = Failed { started: started * MS, now: now * MS, ..failed() };
        let decision = decide(&config, &case, &mut Rng::new(0, 0));
        assert_eq!(decision, Decision::Retry { delay: Duration::from_millis(left) });
    }
}

fn configs() -> impl Strategy<Value = RetryConfig> {
    let jitter = (0.0..2.0_f64, 0.0..2.0_f64).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let elapsed = proptest::option::of(1..100_000_u64);
    let cap = proptest::option::of(0..20_000_u64);
    (1..20_u32, 1..5_000_u64, 1.0..4.0_f64, cap, jitter, any::<bool>(), elapsed).prop_map(
        |(attempts, base, multiplier, cap, jitter, from_start, elapsed)| {
            let mut config = RetryConfig::per_request();
            config.attempts = attempts;
            config.base = Duration::from_millis(base);
            config.multiplier = multiplier;
            config.cap = cap.map(|more| Duration::from_millis(base + more));
            config.jitter = jitter;
            config.anchor = if from_start { Anchor::AttemptStart } else { Anchor::AttemptEnd };
            config.max_elapsed = elapsed.map(Duration::from_millis);
            config
        },
    )
}

prop_compose! {
    fn failures()(
        attempt in 0..25_u32,
        started in 0..100_000 * MS,
        took in 0..10_000 * MS,
        deadline in proptest::option::of(0..200_000 * MS),
        hint in proptest::option::of(0..50_000_u64),
        verdict in 0..8,
        exhausted in proptest::bool::weighted(0.1),
        ran in prop::sample::select(vec![Ran::No, Ran::Yes, Ran::Unknown]),
        effect in prop::sample::select(vec![Effect::ReadOnly, Effect::Idempotent, Effect::Mutating]),
        repeat_safe in any::<Option<bool>>(),
    ) -> Failed<'static> {
        let verdict = match verdict {
            0 => Verdict::Permanent,
            1 => Verdict::Cancelled,
            _ => Verdict::Transient { retry_after: hint.map(Duration::from_millis) },
        };
        let mut end = Classification::new(verdict, ran, "down");
        end.exhausted = exhausted;
        Failed { attempt, started, now: started + took, deadline, end, ran, effect, repeat_safe }
    }
}

#[expect(clippy::cast_possible_truncation)]
fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_retry_keeps_every_rule(config in configs(), case in failures(), seed: u64) {
        let decision = decide(&config, &case, &mut Rng::new(seed, 0));
        let again = decide(&config, &case, &mut Rng::new(seed, 0));
        prop_assert_eq!(decision, again, "a seed repeats a decision");
        let Decision::Retry { delay } = decision else { return Ok(()) };

        prop_assert!(case.end.verdict.is_transient() && !case.end.exhausted);
        prop_assert!(case.attempt + 1 < config.attempts);
        let harmless = case.ran == Ran::No || case.effect != Effect::Mutating;
        prop_assert!(harmless || case.repeat_safe == Some(true));

        let at = case.now + nanos(delay);
        prop_assert!(case.deadline.is_none_or(|deadline| at < deadline));
        prop_assert!(config.max_elapsed.is_none_or(|most| at <= nanos(most)));

        let Verdict::Transient { retry_after } = case.end.verdict else { unreachable!() };
        let hint = retry_after.unwrap_or_default();
        prop_assert!(delay >= hint);
        let ceiling = config.ceiling(case.attempt);
        let most = ceiling.mul_f64(config.jitter.1).min(config.cap.unwrap_or(Duration::MAX));
        let least = ceiling.mul_f64(config.jitter.0).min(most);
        let slack = Duration::from_micros(1); // of the check's own arithmetic
        prop_assert!(delay - hint <= most + slack);
        if config.anchor == Anchor::AttemptEnd {
            prop_assert!(delay - hint + slack >= least);
        }
    }

    #[test]
    fn ceilings_never_shrink_and_keep_the_cap(config in configs()) {
        let ceilings: Vec<_> = (0..200).map(|n| config.ceiling(n)).collect();
        prop_assert!(ceilings.is_sorted());
        prop_assert!(ceilings.iter().all(|one| config.cap.is_none_or(|cap| *one <= cap)));
        prop_assert_eq!(ceilings[0], config.base);
    }

    #[test]
    fn numbers_that_make_no_sense_still_give_a_decision(
        numbers: (u32, u64, f64, f64, f64),
        case in failures(),
    ) {
        let mut config = RetryConfig::per_request();
        config.attempts = numbers.0;
        config.base = Duration::from_nanos(numbers.1);
        config.multiplier = numbers.2;
        config.jitter = (numbers.3, numbers.4);
        let _ = decide(&config, &case, &mut Rng::new(0, 0));
    }
}
