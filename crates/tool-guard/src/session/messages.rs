//! What is wrong with messages, and how they are mended, wherever they stand.
use super::{
    content::Content,
    report::{Act, Found, Health, Lost},
};
use std::collections::BTreeSet;
use tr_integrity::{
    ActionKind, Finding, Loss, RepairAction, RepairMode, RepairPlan, Transcript, Validator,
};

/// What a repair does.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) acts: Vec<Act>,
    pub(crate) losses: Vec<Lost>,
    /// The records that these name: lines, or messages of one JSON text.
    pub(crate) reported: BTreeSet<u64>,
    /// How many bytes it takes out that are no record, and may have said something.
    pub(crate) dropped: u64,
    /// The first message of JSON lines that changes though not all of it is understood.
    pub(crate) changed_unknown: Option<usize>,
    /// The first of them that may answer a call of which the repair says that its outcome is
    /// unknown.
    pub(crate) doubtful_answer: Option<usize>,
    /// The first line of a file that speaks of such a call in a form that is not known, and which
    /// call.
    pub(crate) named_elsewhere: Option<(u64, String)>,
    /// What it leads to; `None` if nothing changes.
    pub(crate) after: Option<Content>,
}

/// What is wrong; `line` says at which line of a file a message begins, if there is one.
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

/// What the plan for `len` messages does, what it loses, and which messages these name.
pub(crate) fn told(
    plan: &RepairPlan,
    mode: RepairMode,
    len: usize,
    line: impl Fn(usize) -> Option<u64>,
) -> (Vec<Act>, Vec<Lost>, BTreeSet<u64>) {
    // In mode `remove`, messages are counted after the removals before.
    let mut was: Vec<_> = (0..len).collect();
    let mut reported = BTreeSet::new();
    let act = |action: &RepairAction| {
        let at = was.get(action.message_index).copied().unwrap_or_default();
        reported.insert(at as u64);
        if action.action == ActionKind::JoinMessages {
            // The message before it goes into it.
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
    (acts, plan.losses().iter().map(lose).collect(), reported)
}

/// How many messages from the first on the provider takes at most, all calls answered.
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
