//! `tool-guard session repair`: shows how to mend a session, and mends it.
use super::{
    Failure, Outcome, Verdict,
    change::{Change, Order, change},
    ending, options,
    report::{Act, Health, Lost, head, show_plan},
    show::{BAD, count},
    target::Target,
};
use serde::Serialize;
use std::fmt::Write as _;
use tr_integrity::RepairMode;

/// What a repair did, or would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Repaired {
    #[serde(flatten)]
    change: Change,
    mode: RepairMode,
    close_tail: bool,
    repairs: Vec<Act>,
    losses: Vec<Lost>,
    /// What is wrong even then.
    remaining: Health,
}

/// Mends a session, or plans it.
pub(crate) fn repair(
    target: &Target,
    options: &options::Repair,
    now: u64,
) -> Result<Repaired, Failure> {
    let (mode, close_tail) = (options.how.mode.into(), options.how.close_tail);
    let order = Order { write: options.write, ending: &ending("bak", now), done: "repaired" };
    let (change, (repairs, losses, remaining)) = change(target, order, |_, content| {
        let planned = content.plan(mode, close_tail);
        let remaining = planned.after.health();
        Ok((planned.after, (planned.acts, planned.losses, remaining)))
    })?;
    Ok(Repaired { change, mode, close_tail, repairs, losses, remaining })
}

impl Outcome for Repaired {
    fn verdict(&self) -> Verdict {
        self.change.verdict(self.remaining.is_valid())
    }

    fn show(&self, target: &Target, out: &mut String) {
        head(target, &self.change.about, self.verdict() == Verdict::Clean, out);
        show_plan(&self.repairs, &self.losses, target, out);
        if !self.remaining.is_valid() {
            let _ = writeln!(out, "  {BAD}wrong even then:{BAD:#}");
            self.remaining.show(target, out);
        }
        let changes = count(self.repairs.len() as u64, "change");
        let planned = format!("{changes} planned");
        self.change.show(target, "nothing to mend", &planned, ("mended", &changes), out);
    }

    fn next(&self, target: &Target) -> Option<String> {
        if !self.change.is_planned() {
            return None;
        }
        let mut flags = String::new();
        if self.mode == RepairMode::Remove {
            flags.push_str(" --mode remove");
        }
        if self.close_tail {
            flags.push_str(" --close-tail");
        }
        let target = target.argument();
        Some(format!(
            "Look at it closer:  tool-guard session diff{flags} {target}\n\
             Do it:              tool-guard session repair{flags} --write {target}"
        ))
    }
}
