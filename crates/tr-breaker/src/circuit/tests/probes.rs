//! Probes: how many, and what their ends do.
use super::*;

#[test]
fn one_probe_at_a_time_and_two_successes_close() {
    let mut bench = default_bench();
    bench.run(Calls("FFFFF")).at(30_000);
    for success in 1..=2 {
        let probe = bench.ticket();
        let refusal = bench.admit().unwrap_err();
        assert_eq!(refusal, Refusal { state: HalfOpen, left: None, shadow: false });
        assert!(bench.end(probe, DONE));
        assert_eq!(bench.state(), if success == 2 { Closed } else { HalfOpen });
    }
    assert_eq!(bench.edges(), [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)]);
    assert_eq!(bench.run(Calls("FFFF")).state(), Closed, "it starts from nothing");
    assert_eq!(bench.run(Calls("F")).state(), Open);
}

#[test]
fn a_failed_probe_reopens_and_restarts_the_cooldown() {
    let mut bench = default_bench();
    bench.run(Calls("FFFFF")).at(30_000).run(Calls("S"));
    let probe = bench.ticket();
    bench.at(40_000).end(probe, FAILED);
    assert_eq!(bench.at(69_999).state(), Open);
    assert_eq!(bench.at(70_000).state(), HalfOpen);
    assert_eq!(bench.run(Calls("S")).state(), HalfOpen, "earlier successes are forgotten");
}

#[test]
fn a_probe_that_says_nothing_comes_back_once() {
    for end in [End::Neither, End::Permanent { answered: false }] {
        let mut bench = default_bench();
        bench.run(Calls("FFFFF")).at(30_000);
        let probe = bench.ticket();
        bench.end(probe, end);
        bench.end(probe, end);
        let _second = bench.ticket();
        assert!(bench.admit().is_err(), "returned twice, it would let two out");
        assert_eq!(bench.circuit.probes(), (1, 0));
    }
}

#[test]
fn a_probe_that_is_answered_with_a_refusal_has_found_the_tool_at_work() {
    let mut bench = default_bench();
    bench.run(Calls("FFFFF")).at(30_000).run(Calls("P"));
    assert_eq!(bench.state(), HalfOpen);
    assert_eq!(bench.run(Calls("P")).state(), Closed);
}

#[test]
fn a_hung_probe_reopens_when_its_lease_ends() {
    let mut bench = Bench::new(&Builder::new().probe_lease(Duration::from_secs(10)));
    bench.run(Calls("FFFFF")).at(30_000);
    let hung = bench.ticket();
    assert_eq!(bench.at(39_999).state(), HalfOpen);
    assert_eq!(bench.at(40_000).state(), Open);
    assert!(!bench.end(hung, DONE), "too late");
    assert_eq!(bench.at(69_999).state(), Open);
    assert_eq!(bench.at(70_000).state(), HalfOpen);
    let by_the_clock = [(Closed, Open), (Open, HalfOpen), (HalfOpen, Open), (Open, HalfOpen)];
    assert_eq!(bench.edges(), by_the_clock);
}

#[test]
fn a_hung_probe_is_found_out_later_all_the_same() {
    let mut bench = default_bench();
    bench.run(Calls("FFFFF")).at(30_000);
    let hung = bench.ticket();
    assert_eq!(bench.at(1_000_000).state(), HalfOpen);
    assert!(!bench.end(hung, DONE));
    assert_eq!(bench.edges().len(), 4, "open, half open, open, half open");
}

#[test]
fn more_probes_where_they_are_allowed() {
    let mut bench = Bench::new(&Builder::new().max_probes(3).successes_to_close(2));
    bench.run(Calls("FFFFF")).at(30_000);
    let probes = [bench.ticket(), bench.ticket(), bench.ticket()];
    assert!(bench.admit().is_err());
    bench.end(probes[0], DONE);
    bench.end(probes[1], DONE);
    assert_eq!(bench.state(), Closed);
    assert!(!bench.end(probes[2], FAILED), "admitted while it was half open");
}
