//! What an operator knows about the server's statuses.
use hyper::StatusCode;
use std::collections::BTreeMap;

/// What a status says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusRule {
    /// The tool did not run.
    NotRun,
    /// The tool may have run.
    Unknown,
}

/// What statuses say, where the guard's own rules are not to be used.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusRules(BTreeMap<u16, StatusRule>);

impl StatusRules {
    pub(crate) fn of(&self, status: StatusCode) -> Option<StatusRule> {
        self.0.get(&status.as_u16()).copied()
    }
}

impl FromIterator<(u16, StatusRule)> for StatusRules {
    fn from_iter<I: IntoIterator<Item = (u16, StatusRule)>>(rules: I) -> Self {
        Self(rules.into_iter().collect())
    }
}
