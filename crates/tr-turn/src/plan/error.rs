//! The error of an invalid plan.
use std::fmt;
use tr_core::{FailureInfo, Ran, Verdict, code};
use tr_wire::{EnvelopeFault, read::Faults};

/// An invalid plan: every mistake, each with its JSON pointer. No tool ran.
///
/// ```
/// use tr_turn::{Plan, Tools};
///
/// let error = Plan::from_json(r#"{
///     "limits": {"concurrency": 0},
///     "calls": [
///         {"tool": "flight_search", "depends_on": ["itinerary"]},
///         {"name": "itinerary", "tool": "create_itinerary", "depends_on": ["flight_serch"]}
///     ]
/// }"#, &Tools::any()).unwrap_err();
/// assert_eq!(error.to_string(), r#"invalid plan: 2 errors
/// /limits/concurrency: expected 1 to 1000 calls at once, found 0
/// /calls/1/depends_on/0: expected the name of another call, found "flight_serch" (did you mean "flight_search"?)"#);
/// ```
#[derive(Debug, thiserror::Error)]
pub struct PlanError {
    faults: Vec<EnvelopeFault>,
    more: usize,
    #[source]
    facts: FailureInfo,
}

impl PlanError {
    pub(super) fn new(faults: Faults) -> Self {
        let (faults, more) = faults.into_sorted();
        let facts =
            FailureInfo::new(code::INVALID_ENVELOPE, Ran::No, Verdict::Permanent).by_layer();
        Self { faults, more, facts }
    }

    /// Every mistake: first those of the form, in the order of the text. Past 100 they are only counted.
    #[must_use]
    pub fn faults(&self) -> &[EnvelopeFault] {
        &self.faults
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.len() + self.more {
            1 => f.write_str("invalid plan: 1 error")?,
            count => write!(f, "invalid plan: {count} errors")?,
        }
        self.faults.iter().try_for_each(|fault| write!(f, "\n{fault}"))?;
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}
