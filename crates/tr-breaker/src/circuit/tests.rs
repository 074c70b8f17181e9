//! Every rule and every edge, as tables of what happens when.
mod options;
mod probes;

use super::*;
use crate::Builder;
use std::time::Duration;
use tr_policy::BreakerState::{Closed, ForcedOpen, HalfOpen, Open};

/// A circuit, a clock in milliseconds, and the calls in flight.
struct Bench {
    circuit: Circuit,
    zero: Instant,
    at: Instant,
}

/// Successes, failures, permanent errors, ends that say nothing: one letter for each call.
#[derive(Clone, Copy)]
struct Calls(&'static str);

impl Bench {
    fn new(builder: &Builder) -> Self {
        // In the middle of time, so that the clock can be put back.
        let zero = crate::clock::now() + Duration::from_secs(1_000_000);
        Self { circuit: Circuit::new("tool", Arc::new(builder.options.settings())), zero, at: zero }
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.at = self.zero + Duration::from_millis(ms);
        self
    }

    fn admit(&mut self) -> Result<Option<Ticket>, Refusal> {
        self.circuit.admit(None, self.at)
    }

    fn ticket(&mut self) -> Ticket {
        self.admit().expect("admitted").expect("counted")
    }

    fn end(&mut self, ticket: Ticket, end: End) -> bool {
        self.circuit.end(ticket, end, self.at)
    }

    fn run(&mut self, Calls(letters): Calls) -> &mut Self {
        for letter in letters.chars().filter(|letter| !letter.is_whitespace()) {
            let ticket = self.ticket();
            let end = match letter {
                'S' => End::Success { slow: false },
                's' => End::Success { slow: true },
                'F' => End::Failure { slow: false },
                'P' => End::Permanent { answered: true },
                'N' => End::Neither,
                other => panic!("{other} is no call"),
            };
            self.end(ticket, end);
        }
        self
    }

    fn state(&mut self) -> BreakerState {
        self.circuit.state(self.at)
    }

    fn edges(&mut self) -> Vec<(BreakerState, BreakerState)> {
        std::iter::from_fn(|| self.circuit.next_transition()).map(|e| (e.from, e.to)).collect()
    }
}

const FAILED: End = End::Failure { slow: false };
const DONE: End = End::Success { slow: false };

fn default_bench() -> Bench {
    Bench::new(&Builder::new())
}

#[test]
fn when_it_opens() {
    let rows = [
        ("five failures in a row", "FFFF", "F"),
        ("a success between", "FFFF S FFFF", "F"),
        ("a permanent error between", "FFFF P FFFF", "F"),
        ("ends that say nothing between", "FF N FF N", "F"),
        ("half of ten calls", "FFS FFS FSS", "S"),
        ("half of ten calls, the last of them a failure", "FFS SFS FSF", "F"),
        ("permanent errors do not dilute the rate", "FFS FFS FSS PPPPPPPPPP", "S"),
        ("the last 20 of many", "SSSSSSSSSSSSSSSSSSSSSSSSS FSFSFSFSFSFSFSFSFS", "F"),
        ("ten of the last 20", "SSSSSSSSSS FFFFSFFFFSF", "F"),
    ];
    for (what, before, last) in rows {
        let mut bench = default_bench();
        assert_eq!(bench.run(Calls(before)).state(), Closed, "{what}: too early");
        assert_eq!(bench.run(Calls(last)).state(), Open, "{what}: too late");
        assert_eq!(bench.edges(), [(Closed, Open)], "{what}");
    }
}

#[test]
fn when_it_stays_closed() {
    let rows = [
        ("nine calls", "FFFFSFFFF"),
        ("four of ten", "FFS FFS SSSS"),
        ("permanent errors", "PPPPPPPPPPPPPPPPPPPPPP"),
        ("nothing said", "NNNNNNNNNNNNNNNNNNNNNN"),
        ("nine of the last 20", "SSSSSSSSSSS FFFFSFFFFSF"),
    ];
    for (what, calls) in rows {
        assert_eq!(default_bench().run(Calls(calls)).state(), Closed, "{what}");
    }
}

#[test]
fn failures_in_a_row_count_within_120_s() {
    for (last, state) in [(120_000, Open), (120_001, Closed)] {
        let mut bench = default_bench();
        bench.run(Calls("F"));
        bench.at(60_000).run(Calls("FFF"));
        assert_eq!(bench.at(last).run(Calls("F")).state(), state);
        assert_eq!(bench.circuit.consecutive_failures(), 5);
    }
}

#[test]
fn the_rate_counts_within_120_s_also_after_an_idle_gap() {
    let mut bench = default_bench();
    bench.run(Calls("SSSSSSSSSSSSSSSSSSSS"));
    bench.at(100_000).run(Calls("FFFFSFFFF"));
    assert_eq!(bench.state(), Closed, "8 of the last 20");
    // The successes have left the window: 8 of 10, and a success is what tips it.
    assert_eq!(bench.at(120_001).run(Calls("S")).state(), Open);
}

#[test]
fn successes_of_different_ages_leave_the_window_one_lap_after_the_other() {
    let mut bench = default_bench();
    for lap in 0..16 {
        bench.at(lap * 7_500).run(Calls("S"));
    }
    for lap in 0..16 {
        bench.at(lap * 7_500 + 120_001);
        assert_eq!(bench.circuit.tally(bench.at).calls, 15 - u32::try_from(lap).unwrap());
    }
}

#[test]
fn each_effect_goes_by_its_own_rules() {
    let opens_after = |effect, calls: &[End]| {
        let mut bench = Bench::new(&Builder::by_effect());
        let opened = calls.iter().position(|end| {
            let ticket = bench.circuit.admit(effect, bench.at).unwrap().unwrap();
            bench.end(ticket, *end);
            bench.state() == Open
        });
        (opened.map(|index| index + 1), bench.circuit.time_left(bench.at))
    };
    let (failures, mixed) = ([FAILED; 9], [DONE, DONE, FAILED, DONE, DONE].repeat(9));
    let mixed_by_thirds = [FAILED, DONE, DONE].repeat(9);
    let secs = |secs| Some(Duration::from_secs(secs));
    assert_eq!(opens_after(None, &failures), (Some(5), secs(30)));
    assert_eq!(opens_after(Some(Effect::Idempotent), &failures), (Some(5), secs(30)));
    assert_eq!(opens_after(Some(Effect::ReadOnly), &failures), (Some(8), secs(20)));
    assert_eq!(opens_after(Some(Effect::Mutating), &failures), (Some(5), secs(15)));
    assert_eq!(opens_after(Some(Effect::Mutating), &mixed), (None, None), "20 %");
    assert_eq!(
        opens_after(Some(Effect::Mutating), &mixed_by_thirds),
        (Some(10), secs(15)),
        "4 of 10"
    );
    assert_eq!(opens_after(Some(Effect::ReadOnly), &mixed_by_thirds), (None, None));
}

#[test]
fn open_turns_half_open_by_the_clock() {
    let mut bench = default_bench();
    bench.run(Calls("FFFFF"));
    for (ms, left) in [(0, 30_000), (15_000, 15_000), (29_999, 1)] {
        let refusal = bench.at(ms).admit().unwrap_err();
        let left = Some(Duration::from_millis(left));
        assert_eq!(refusal, Refusal { state: Open, left, shadow: false });
    }
    assert_eq!(bench.at(30_000).state(), HalfOpen);
    assert_eq!(bench.at(3_000_000).state(), HalfOpen, "it waits for probes as long as it takes");
    assert_eq!(bench.edges(), [(Closed, Open), (Open, HalfOpen)]);
}

#[test]
fn calls_of_an_earlier_state_change_nothing() {
    let mut bench = default_bench();
    let [late_failure, late_success, later] = [bench.ticket(), bench.ticket(), bench.ticket()];
    bench.run(Calls("FFFFF"));
    assert!(!bench.end(late_failure, FAILED));
    bench.at(30_000);
    assert_eq!(bench.state(), HalfOpen);
    assert!(!bench.end(late_success, DONE));
    assert_eq!(bench.run(Calls("S")).state(), HalfOpen, "one success, not two");
    bench.run(Calls("S"));
    assert!(!bench.end(later, FAILED));
    assert_eq!(bench.circuit.tally(bench.at), Tally::default());
}

/// Brings a bench into a state.
type Enter = fn(&mut Bench);

#[test]
fn forced_open_and_reset_from_every_state() {
    let into: [(BreakerState, Enter); 4] = [
        (Closed, |_| {}),
        (Open, |bench| {
            bench.run(Calls("FFFFF"));
        }),
        (HalfOpen, |bench| {
            bench.run(Calls("FFFFF")).at(30_000);
        }),
        (ForcedOpen, |bench| bench.circuit.force_open()),
    ];
    for (state, enter) in into {
        let mut bench = default_bench();
        enter(&mut bench);
        assert_eq!(bench.state(), state);
        bench.edges();
        bench.circuit.force_open();
        assert_eq!(bench.at(10_000_000).state(), ForcedOpen, "no time ends it");
        let refusal = bench.admit().unwrap_err();
        assert_eq!(refusal, Refusal { state: ForcedOpen, left: None, shadow: false });
        let forced = (state, ForcedOpen);
        let edges = bench.edges();
        assert_eq!(edges, if state == ForcedOpen { vec![] } else { vec![forced] });

        let mut bench = default_bench();
        enter(&mut bench);
        let stale = bench.admit().ok().flatten();
        bench.edges();
        bench.circuit.reset();
        assert_eq!(bench.state(), Closed);
        assert_eq!(bench.circuit.consecutive_failures(), 0);
        assert!(stale.is_none_or(|ticket| !bench.end(ticket, FAILED)));
        let edges = bench.edges();
        assert_eq!(edges, if state == Closed { vec![] } else { vec![(state, Closed)] });
    }
}

#[test]
fn disabled_counts_nothing_and_refuses_nothing() {
    let mut bench = default_bench();
    let before = bench.ticket();
    bench.run(Calls("FFFFF"));
    bench.circuit.set_mode(Mode::Disabled);
    assert_eq!(bench.edges(), [(Closed, Open), (Open, Closed)]);
    assert_eq!(bench.admit(), Ok(None));
    assert!(!bench.end(before, FAILED));
    bench.circuit.force_open();
    assert!(bench.admit().is_err(), "forced open, it enforces");
    bench.circuit.reset();
    assert_eq!((bench.circuit.mode, bench.state()), (Mode::Enforce, Closed));
}

#[test]
fn shadow_decides_and_lets_pass() {
    let mut bench = Bench::new(&Builder::new().mode(Mode::Shadow));
    bench.run(Calls("FFFFF"));
    assert!(bench.admit().unwrap_err().shadow);
    bench.at(30_000).run(Calls("SS"));
    assert_eq!(bench.edges().last(), Some(&(HalfOpen, Closed)));
    bench.circuit.set_mode(Mode::Enforce);
    assert!(!bench.run(Calls("FFFFF")).admit().unwrap_err().shadow);
    bench.circuit.reset();
    assert_eq!(bench.circuit.mode, Mode::Shadow, "what the settings say");
}

#[test]
fn slow_calls_open_and_a_slow_probe_reopens() {
    let rule = Builder::new().slow_calls(Duration::from_secs(5), 0.5);
    let mut bench = Bench::new(&rule);
    assert_eq!(bench.run(Calls("sSsSsSsSs")).state(), Closed);
    assert_eq!(bench.circuit.consecutive_failures(), 0);
    assert_eq!(bench.run(Calls("S")).state(), Open);
    assert_eq!(bench.at(30_000).run(Calls("s")).state(), Open);

    let mut bench = Bench::new(&rule);
    assert_eq!(bench.run(Calls("FFFF s FFFF")).state(), Closed, "slow, it was a success");
}

#[test]
fn a_clock_that_stands_or_jumps_does_not_wedge_it() {
    // Standing still: all that needs no time works.
    let mut bench = Bench::new(&Builder::new().failure_rate(None));
    bench.run(Calls("FFFFF"));
    bench.circuit.reset();
    assert_eq!(bench.run(Calls("SSSSSFFFFF")).state(), Open);

    // Put back by a day after it opened: the cooldown starts again, and is no longer than it was.
    let mut bench = default_bench();
    bench.at(90_000_000).run(Calls("FFFFF"));
    assert_eq!(bench.at(0).admit().unwrap_err().left, Some(Duration::from_secs(30)));
    assert_eq!(bench.at(30_000).state(), HalfOpen);

    // Put back while a probe is out: so is its lease.
    let mut bench = default_bench();
    bench.at(90_000_000).run(Calls("FFFFF"));
    let _hung = bench.at(90_030_000).ticket();
    assert_eq!(bench.at(0).state(), HalfOpen);
    assert_eq!(bench.at(30_000).state(), Open);

    // Put back while it is closed: the window slides on by count.
    let mut bench = default_bench();
    bench.at(90_000_000).run(Calls("SFFSFF"));
    bench.at(0).run(Calls("SSSSSSSSSSSSSSSSSSSS"));
    assert_eq!(bench.circuit.tally(bench.at), Tally { calls: 20, failures: 0, slow: 0 });
    assert_eq!(bench.run(Calls("FFFFF")).state(), Open);
}

#[test]
fn the_window_forgets_what_nothing_looks_at() {
    let mut bench = default_bench();
    for ms in 0..10_000 {
        bench.at(ms * 997).run(Calls("SSFS"));
        if bench.state() != Closed {
            bench.circuit.reset();
        }
    }
    assert!(bench.circuit.window.len() <= 20 + 17);
}
