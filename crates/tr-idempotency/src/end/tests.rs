//! Which state a failure leaves.
use super::*;
use tr_core::Classification;

#[test]
fn a_failure_is_recorded_by_what_is_known_of_its_run() {
    let of = |mutating, verdict, ran| {
        let recorded = RecordedFailure::new(Classification::new(verdict, ran, "x"), None);
        match failed::<()>(mutating, Failure::of_error(Arc::new(recorded))) {
            State::Failed(_, again) => format!("failed {again:?}"),
            State::Cancelled(_) => "cancelled".into(),
            State::Unknown(_) => "unknown".into(),
            other => format!("{other:?}"),
        }
    };
    use Ran::{No, Unknown, Yes};
    use Verdict::{Cancelled, Permanent};
    let transient = Verdict::TRANSIENT;
    for (verdict, ran, mutating, other) in [
        (transient, No, "failed Freely", "failed Freely"),
        (transient, Yes, "failed Never", "failed WhenAsked"),
        (transient, Unknown, "unknown", "failed WhenAsked"),
        (Permanent, No, "failed Never", "failed Never"),
        (Permanent, Yes, "failed Never", "failed Never"),
        (Permanent, Unknown, "unknown", "failed Never"),
        (Cancelled, No, "cancelled", "cancelled"),
        (Cancelled, Yes, "unknown", "unknown"),
        (Cancelled, Unknown, "unknown", "unknown"),
    ] {
        assert_eq!(of(true, verdict, ran), mutating, "mutating, {verdict:?}, {ran:?}");
        assert_eq!(of(false, verdict, ran), other, "other, {verdict:?}, {ran:?}");
    }
}
