//! What is off by default.
use super::*;

#[test]
fn cooldown_jitter_is_the_same_for_the_same_seed() {
    let cooldowns = |seed| {
        let mut bench = Bench::new(&Builder::new().cooldown_jitter(0.5).seed(seed));
        let mut lefts = Vec::new();
        for _ in 0..8 {
            bench.run(Calls("FFFFF"));
            lefts.push(bench.admit().unwrap_err().left.unwrap());
            bench.circuit.reset();
        }
        lefts
    };
    let first = cooldowns(1);
    assert_eq!(first, cooldowns(1));
    assert_ne!(first, cooldowns(2));
    let range = Duration::from_secs(30)..Duration::from_secs(45);
    assert!(first.iter().all(|left| range.contains(left)), "{first:?}");
    assert!(first.windows(2).all(|two| two[0] != two[1]), "{first:?}");
}

#[test]
fn after_closing_the_ramp_lets_pass_more_and_more() {
    let mut bench = Bench::new(&Builder::close_on_first_success().ramp(Duration::from_secs(10)));
    bench.run(Calls("FFFFF")).at(30_000).run(Calls("S"));
    let passed = |bench: &mut Bench| (0..100).filter(|_| bench.admit().is_ok()).count();
    for (ms, about) in [(30_000, 10), (35_000, 50), (39_000, 90), (40_000, 100)] {
        let passed = passed(bench.at(ms));
        assert!(passed.abs_diff(about) <= 1, "{passed} at {ms} ms");
        assert_eq!(
            (bench.state(), bench.circuit.published().passes.is_some()),
            (Closed, ms == 40_000)
        );
    }

    // A failure reopens as ever, and a reset lets all pass at once.
    let mut bench = Bench::new(&Builder::close_on_first_success().ramp(Duration::from_secs(10)));
    bench.run(Calls("FFFFF")).at(30_000).run(Calls("S")).at(39_999);
    for _ in 0..5 {
        let ticket = std::iter::repeat_with(|| bench.admit()).find_map(Result::ok).unwrap();
        bench.end(ticket.expect("counted"), FAILED);
    }
    assert_eq!(bench.state(), Open);
    bench.at(70_000).run(Calls("S"));
    let held_back = Refusal { state: Closed, left: None, shadow: false };
    assert_eq!(bench.admit(), Err(held_back));
    bench.circuit.reset();
    assert_eq!(passed(&mut bench), 100);
}

#[test]
fn no_number_of_failures_in_a_row_is_too_many() {
    use crate::window::{BadCall, Epoch, SavedWindow};
    let settings = Builder::new().options.settings();
    let epoch = Epoch { now: crate::clock::now(), unix_ms: 0 };
    let saved = SavedWindow { run: u32::MAX, ..SavedWindow::default() };
    let mut window = Window::restored(&saved, epoch, &settings);
    window.bad(epoch.now, BadCall { failed: true, slow: false }, &settings);
    assert_eq!(window.run, u32::MAX);
}
