//! The summary of a validation.
use super::{Fault, Finding, Severity};
use serde::{Deserialize, Serialize};

/// The summary of a validation: the first error, and the ids of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ValidationResult {
    /// Whether the provider accepts the session.
    pub valid: bool,
    /// The first error: rule 1 before rule 2 before rule 3, then the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The ids of results without their uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphaned_ids: Option<Vec<Box<str>>>,
    /// The ids of uses without their results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete_ids: Option<Vec<Box<str>>>,
}

impl ValidationResult {
    pub(super) fn of(findings: &[Finding]) -> Self {
        let errors = || findings.iter().filter(|f| f.severity == Severity::Error);
        let order = |finding: &&Finding| match finding.fault.rule() {
            0 => u8::MAX,
            rule => rule,
        };
        let ids = |fault| {
            let of_kind = errors().filter(|finding| finding.fault == fault);
            let ids: Vec<_> = of_kind.filter_map(|finding| finding.tool_use_id.clone()).collect();
            (!ids.is_empty()).then_some(ids)
        };
        let first = errors().min_by_key(order);
        Self {
            valid: first.is_none(),
            error: first.map(ToString::to_string),
            orphaned_ids: ids(Fault::OrphanedResult),
            incomplete_ids: ids(Fault::IncompleteUse),
        }
    }
}
