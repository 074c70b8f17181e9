//! The report of the benchmark `overhead`: what it says, and that it says it of real calls.
#[path = "../benches/overhead/measure.rs"]
mod measure;

use measure::{Report, TARGET, measure, percentile};
use std::time::Duration;

/// The processor's time of this thread: other programs do not count.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

#[tokio::test]
async fn ut_11_overhead_log_volume_and_accuracy_are_reported() {
    let report = measure(500, processor_time).await;
    let json = report.to_json();
    assert_eq!(report.calls, 500);
    let [p50, p95, p99] = report.overhead;
    assert!(Duration::ZERO < p50 && p50 <= p95 && p95 <= p99, "{report}");
    // One line when a call begins, one when it ends, and nothing of the bare calls.
    assert_eq!((report.log_lines, &json["log"]["linesPerCall"]), (1_000, &2.0.into()));
    assert!((100_000..1_000_000).contains(&report.log_bytes), "{report}");
    assert!(report.errors >= 120, "{report}");
    assert_eq!(report.right, report.errors, "{report}");
    // In the processor's time, which is thousands of times less.
    assert_eq!(json["ok"], true, "{report}");
}

#[test]
fn ut_11_percentiles_are_values_that_were_seen() {
    let values: Vec<_> = (1..=200).map(Duration::from_micros).collect();
    let micros = [0, 50, 95, 99, 100].map(|percent| percentile(&values, percent).as_micros());
    assert_eq!(micros, [1, 100, 190, 198, 200]);
    assert_eq!(percentile(&values[..1], 99), values[0]);
}

#[test]
fn ut_11_a_target_that_is_missed_is_reported() {
    let good = Report {
        calls: 10,
        overhead: [1, 2, 9_000].map(Duration::from_micros),
        log_lines: 20,
        log_bytes: 5_000,
        errors: 50,
        right: 50,
    };
    assert!(good.is_ok(), "the draft asks for the 95th percentile");
    let slow = Report { overhead: [Duration::ZERO, TARGET, TARGET], ..good.clone() };
    let wrong = Report { right: 49, ..good.clone() };
    let few = Report { errors: 49, right: 49, ..good.clone() };
    for bad in [slow, wrong, few] {
        assert!(!bad.is_ok() && bad.to_json()["ok"] == false, "{bad:?}");
    }
    assert_eq!(good.to_json()["log"]["bytesPerCall"], 500.0);
}
