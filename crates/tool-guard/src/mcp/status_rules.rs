//! What an operator knows about the server's statuses.
use hyper::StatusCode;
use std::collections::BTreeMap;
use tool_reliability::config::{StatusMeaning, UpstreamConfig};

/// What statuses say, where the guard's own rules are not to be used.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusRules(BTreeMap<u16, StatusMeaning>);

impl StatusRules {
    /// Those of the configuration, and over them those of the options.
    pub(crate) fn new(configured: &UpstreamConfig, options: &[(u16, StatusMeaning)]) -> Self {
        configured.status.iter().flatten().chain(options).copied().collect()
    }

    pub(crate) fn of(&self, status: StatusCode) -> Option<StatusMeaning> {
        self.0.get(&status.as_u16()).copied()
    }
}

impl FromIterator<(u16, StatusMeaning)> for StatusRules {
    fn from_iter<I: IntoIterator<Item = (u16, StatusMeaning)>>(rules: I) -> Self {
        Self(rules.into_iter().collect())
    }
}
