//! What is wrong with messages, and how they are mended, wherever they stand.
use super::{
    content::Content,
    report::{Act, Found, Health, Lost},
};
use tr_integrity::{
    ActionKind, Finding, Loss, RepairAction, RepairMode, RepairPlan, Transcript, Validator,
};

/// What a repair does.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) acts: Vec<Act>,
    pub(crate) losses: Vec<Lost>,
    /// What it leads to.
    pub(crate) after: Content,
}

/// What is wrong; `line` says at which line of a file a message begins, if there is one.
pub(crate) fn health(
    transcript: &Transcript,
    validator: &Validator,
    line: impl Fn(usize) -> Option<u64>,
) -> Health {
    let format = transcript.format();
    let found = |finding: &Finding| Found::of_message(finding, format, line(finding.message_index));
    let findings: Vec<_> = validator.findings().iter().map(found).collect();
    Health {
        pending: validator.pending().map(str::to_owned).collect(),
        running: Vec::new(),
        found: findings.len() as u64,
        errors: findings.iter().filter(|found| found.is_error()).count() as u64,
        findings,
    }
}

/// What the plan for `len` messages does, and what it loses.
pub(crate) fn told(
    plan: &RepairPlan,
    mode: RepairMode,
    len: usize,
    line: impl Fn(usize) -> Option<u64>,
) -> (Vec<Act>, Vec<Lost>) {
    // In mode `remove`, messages are counted after the removals before.
    let mut was: Vec<_> = (0..len).collect();
    let act = |action: &RepairAction| {
        let at = was.get(action.message_index).copied().unwrap_or_default();
        if mode == RepairMode::Remove && action.action == ActionKind::RemoveEmptyMessage {
            was.remove(action.message_index);
        }
        Act::of_message(action, line(at))
    };
    let acts = plan.actions().iter().map(act).collect();
    let lose = |loss: &Loss| Lost { line: line(loss.message_index), loss: loss.clone() };
    (acts, plan.losses().iter().map(lose).collect())
}

/// How many messages from the first on the provider takes at most, all calls answered.
pub(crate) fn clean(transcript: &Transcript) -> usize {
    let mut validator = Validator::new(transcript.format());
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
