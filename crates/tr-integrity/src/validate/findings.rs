//! What was found so far. In a form of items, a result that comes late can take a finding back: that
//! costs the same however many there are.
use super::{Fault, Finding};
use std::{collections::HashMap, mem, sync::OnceLock};

/// What was found, in the order in which it showed.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    /// With those that were taken back.
    all: Vec<Finding>,
    /// Of each of them, whether it was taken back; empty where none was.
    is_back: Vec<bool>,
    /// Which were taken back, and since which message.
    back: Vec<(usize, usize)>,
    /// Those that are left, once they were asked for.
    left: OnceLock<Vec<Finding>>,
    /// Where the last finding is of a use without its result in each message, once it was asked for.
    incomplete: Option<HashMap<usize, usize>>,
    errors: usize,
}

impl Findings {
    /// All that are left.
    pub(super) fn left(&self) -> &[Finding] {
        if self.back.is_empty() {
            return &self.all;
        }
        let left = || self.all.iter().zip(&self.is_back).filter(|(_, is_back)| !**is_back);
        self.left.get_or_init(|| left().map(|(finding, _)| finding.clone()).collect())
    }

    /// How many errors are among them, and among those that were taken out.
    pub(super) const fn errors(&self) -> usize {
        self.errors
    }

    pub(super) fn push(&mut self, finding: Finding) {
        self.errors += usize::from(finding.is_error());
        let at = self.all.len();
        if let Some(incomplete) = &mut self.incomplete {
            incomplete.extend(message_of(&finding).map(|message| (message, at)));
        }
        if !self.back.is_empty() {
            self.is_back.push(false);
            self.left.take();
        }
        self.all.push(finding);
    }

    /// Takes out all that are left.
    pub(super) fn take(&mut self) -> Vec<Finding> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let Self { all, is_back, errors, .. } = mem::take(self);
        self.errors = errors;
        if is_back.is_empty() {
            return all;
        }
        all.into_iter().zip(is_back).filter(|(_, is_back)| !is_back).map(|(it, _)| it).collect()
    }

    /// The use in this message has its result after all, since the message `since`. Says whether
    /// there was a finding.
    pub(super) fn take_back(&mut self, message: usize, since: usize) -> bool {
        let all = &self.all;
        let incomplete = self.incomplete.get_or_insert_with(|| {
            let found = all.iter().enumerate();
            found.filter_map(|(at, finding)| Some((message_of(finding)?, at))).collect()
        });
        let Some(at) = incomplete.remove(&message) else { return false };
        self.is_back.resize(self.all.len(), false);
        self.is_back[at] = true;
        self.back.push((since, at));
        self.left.take();
        self.errors -= usize::from(self.all[at].is_error());
        true
    }

    /// Forgets what all but the first `len` messages showed.
    pub(super) fn truncate(&mut self, len: usize) {
        (self.left, self.incomplete) = (OnceLock::new(), None);
        while let Some((_, at)) = self.back.pop_if(|(since, _)| *since >= len) {
            self.is_back[at] = false;
            self.errors += usize::from(self.all[at].is_error());
        }
        let kept = self.all.partition_point(|finding| finding.noticed < len);
        let gone = self.all.drain(kept..);
        self.errors -= gone.filter(Finding::is_error).count();
        let kept = if self.back.is_empty() { 0 } else { kept };
        self.is_back.truncate(kept);
    }
}

/// The message of a use that has no result, if that is what was found.
fn message_of(finding: &Finding) -> Option<usize> {
    (finding.fault == Fault::IncompleteUse).then_some(finding.message_index)
}
