//! Findings and repairs of messages, common to all kinds of sessions.
use crate::session::report::{Act, Found, Health, Lost};
use std::collections::BTreeSet;
use tr_transcript::{
    ActionKind, Finding, Loss, RepairAction, RepairMode, RepairPlan, Transcript, Validator,
};

/// A planned repair of a session that is a `T`.
#[derive(Debug)]
pub(crate) struct Planned<T> {
    pub(crate) acts: Vec<Act>,
    pub(crate) losses: Vec<Lost>,
    /// The records that the actions and losses name: lines, or messages of a JSON text.
    pub(crate) reported: BTreeSet<u64>,
    /// How many bytes outside of records it removes that may hold content.
    pub(crate) dropped: u64,
    /// In JSON lines, the first message that is not fully understood and would change.
    pub(crate) changed_unknown: Option<usize>,
    /// In JSON lines, the first message that may be the answer to a call whose outcome the repair
    /// reports as unknown.
    pub(crate) doubtful_answer: Option<usize>,
    /// The first line that names such a call in an unknown form, and the call's id.
    pub(crate) named_elsewhere: Option<(u64, String)>,
    /// The repaired session; `None` if nothing changes.
    pub(crate) after: Option<T>,
}

impl<T> Planned<T> {
    /// The same with what `to` makes of the repaired session.
    pub(crate) fn map<U>(self, to: impl FnOnce(T) -> U) -> Planned<U> {
        let Self { acts, losses, reported, dropped, changed_unknown, .. } = self;
        let Self { doubtful_answer, named_elsewhere, after, .. } = self;
        let after = after.map(to);
        Planned {
            acts,
            losses,
            reported,
            dropped,
            changed_unknown,
            doubtful_answer,
            named_elsewhere,
            after,
        }
    }
}

/// The findings; `line` gives the line of a file at which a message begins, if there is one.
pub(crate) fn health(validator: &Validator, line: impl Fn(usize) -> Option<u64>) -> Health {
    let found = |finding: &Finding| Found::of_message(finding, line(finding.message_index));
    let findings: Vec<_> = validator.findings().iter().map(found).collect();
    Health {
        pending: validator.pending().map(str::to_owned).collect(),
        running: Vec::new(),
        found: findings.len() as u64,
        errors: findings.iter().filter(|found| found.is_error()).count() as u64,
        findings,
    }
}

/// The planned repair of `len` messages, which makes `after` of the session.
pub(crate) fn planned<T>(
    plan: &RepairPlan,
    mode: RepairMode,
    len: usize,
    after: T,
    line: impl Fn(usize) -> Option<u64>,
) -> Planned<T> {
    // In mode `remove`, message indexes are counted after the removals before them.
    let mut was: Vec<_> = (0..len).collect();
    let mut reported = BTreeSet::new();
    let act = |action: &RepairAction| {
        let at = was.get(action.message_index).copied().unwrap_or_default();
        reported.insert(at as u64);
        if action.action == ActionKind::JoinMessages {
            // The message before it is merged into it.
            let before = (0..at as u64).rfind(|before| !reported.contains(before));
            reported.extend(before);
        }
        if mode == RepairMode::Remove && action.action == ActionKind::RemoveEmptyMessage {
            was.remove(action.message_index);
        }
        Act::of_message(action, line(at))
    };
    let acts = plan.actions().iter().map(act).collect();
    reported.extend(plan.losses().iter().map(|lost| lost.message_index as u64));
    let lose = |loss: &Loss| Lost { line: line(loss.message_index), loss: loss.clone() };
    Planned {
        acts,
        losses: plan.losses().iter().map(lose).collect(),
        reported,
        dropped: 0,
        changed_unknown: None,
        doubtful_answer: None,
        named_elsewhere: None,
        after: Some(after),
    }
}

/// How many messages the longest valid beginning has in which all calls are answered.
pub(crate) fn clean(transcript: &Transcript) -> usize {
    let mut validator = Validator::with_members_of(transcript).restarted();
    let mut clean = 0;
    for message in transcript.messages() {
        validator.push(message);
        if !validator.is_valid() {
            break;
        }
        if validator.pending().next().is_none() {
            clean = validator.len();
        }
    }
    clean
}
