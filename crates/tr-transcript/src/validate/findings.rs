//! The findings so far. In a form of items, a late result can take a finding back, in constant
//! time.
use super::{Fault, Finding};
use std::{collections::HashMap, mem, sync::OnceLock};

/// The findings, in the order in which they occurred.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Including those that were taken back.
    all: Vec<Finding>,
    /// Whether each of them was taken back; empty if none was.
    is_back: Vec<bool>,
    /// Those that were taken back, and the message since which they are.
    back: Vec<(usize, usize)>,
    /// The remaining ones; built on first use.
    left: OnceLock<Vec<Finding>>,
    /// For each message, its last finding of a use without a result; built on first use.
    incomplete: Option<HashMap<usize, usize>>,
    /// How many errors remain, including those that [`take`](Self::take) removed.
    pub(super) errors: usize,
}

impl Findings {
    /// The remaining findings.
    pub(super) fn left(&self) -> &[Finding] {
        if self.back.is_empty() {
            return &self.all;
        }
        let left = || self.all.iter().zip(&self.is_back).filter(|(_, is_back)| !**is_back);
        self.left.get_or_init(|| left().map(|(finding, _)| finding.clone()).collect())
    }

    pub(super) fn push(&mut self, finding: Finding) -> &mut Finding {
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
        &mut self.all[at]
    }

    /// The findings from this one on, including those that were taken back.
    pub(crate) fn from(&self, first: usize) -> &[Finding] {
        &self.all[first..]
    }

    /// Removes and returns the findings; `None` for those that were taken back.
    pub(crate) fn take(&mut self) -> Vec<Option<Finding>> {
        let Self { all, mut is_back, errors, .. } = mem::take(self);
        self.errors = errors;
        is_back.resize(all.len(), false);
        all.into_iter().zip(is_back).map(|(it, is_back)| (!is_back).then_some(it)).collect()
    }

    /// Takes back the finding of a use in this message, whose result is in message `since`.
    pub(super) fn take_back(&mut self, message: usize, since: usize) {
        let all = &self.all;
        let incomplete = self.incomplete.get_or_insert_with(|| {
            let found = all.iter().enumerate();
            found.filter_map(|(at, finding)| Some((message_of(finding)?, at))).collect()
        });
        let Some(at) = incomplete.remove(&message) else { return };
        self.is_back.resize(self.all.len(), false);
        self.is_back[at] = true;
        self.back.push((since, at));
        self.left.take();
        self.errors -= usize::from(self.all[at].is_error());
    }

    /// Removes what was found in all but the first `len` messages.
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

/// The message of a use without a result, if that is the finding.
fn message_of(finding: &Finding) -> Option<usize> {
    (finding.fault == Fault::IncompleteUse).then_some(finding.message_index)
}
