//! Findings and repairs of messages, common to all kinds of sessions.
use super::Planned;
use crate::session::report::{Act, Found, Health, Lost};
use std::collections::BTreeSet;
use tr_transcript::{ActionKind, Finding, Loss, RepairAction, RepairPlan, Transcript, Validator};

/// The findings; `line` gives the line of a file at which a message begins, if there is one.
pub(super) fn health(validator: &Validator, line: impl Fn(usize) -> Option<u64>) -> Health {
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

/// The planned repair.
pub(super) fn planned(plan: &RepairPlan, line: impl Fn(usize) -> Option<u64>) -> Planned {
    let mut reported = BTreeSet::new();
    let act = |(action, at): (&RepairAction, usize)| {
        reported.insert(at as u64);
        if action.action == ActionKind::JoinMessages {
            // The message before it is merged into it.
            let before = (0..at as u64).rfind(|before| !reported.contains(before));
            reported.extend(before);
        }
        Act::of_message(action, line(at))
    };
    let acts = plan.actions().iter().zip(plan.places()).map(act).collect();
    reported.extend(plan.losses().iter().map(|lost| lost.message_index as u64));
    let lose = |loss: &Loss| Lost { line: line(loss.message_index), loss: loss.clone() };
    Planned {
        acts,
        losses: plan.losses().iter().map(lose).collect(),
        reported,
        ..Planned::default()
    }
}

/// The messages with their indexes.
pub(super) fn numbered(transcript: &Transcript) -> Vec<(u64, &[u8])> {
    (0..).zip(transcript.messages().iter().map(|message| message.raw().as_bytes())).collect()
}

/// How many messages the longest valid beginning has in which all calls are answered.
pub(super) fn clean(transcript: &Transcript) -> usize {
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
