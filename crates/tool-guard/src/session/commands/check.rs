//! `tool-guard session check`: what is wrong with a session, and how the provider would answer.
use crate::{
    session::{
        each::Outcome,
        report::{About, Form, Health, head, on_resume_of_last},
        source::Source,
        target::Target,
        verdict::{Failure, NotJudged, Verdict},
    },
    terminal::DIM,
};
use serde::Serialize;
use std::fmt::Write as _;

/// What is wrong with a session.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checked {
    #[serde(flatten)]
    about: About,
    #[serde(flatten)]
    health: Health,
    #[serde(flatten)]
    not_judged: Option<NotJudged>,
    /// Whether calls of the last step without a result are findings.
    #[serde(skip)]
    is_strict: bool,
}

/// Checks a session.
pub(crate) fn check(target: &Target, is_strict: bool) -> Result<Checked, Failure> {
    let (about, health) = Source::open(target)?.check()?;
    let not_judged = health.not_judged();
    Ok(Checked { about, health, not_judged, is_strict })
}

impl Outcome for Checked {
    fn verdict(&self) -> Verdict {
        let waits = self.is_strict && !self.health.pending.is_empty();
        self.health.verdict().max(if waits { Verdict::Findings } else { Verdict::Clean })
    }

    fn is_notable(&self) -> bool {
        !self.health.pending.is_empty() || self.about.skipped_bytes > 0
    }

    fn show(&self, target: &Target, out: &mut String) {
        head(target, &self.about, self.verdict(), out);
        self.health.show(target, out);
        if let Form::Lines(form) = self.about.form
            && !self.health.pending.is_empty()
            && let Some(on_resume) = on_resume_of_last(form)
        {
            let _ = writeln!(out, "      {on_resume}");
        }
        if self.verdict() == Verdict::Clean && self.about.skipped_bytes > 0 {
            let target = target.argument();
            let _ = writeln!(
                out,
                "  {DIM}→ to take out what is no record: tool-guard session repair {target}{DIM:#}"
            );
        }
        if let Some(why) = &self.not_judged {
            let _ = write!(out, "{why}");
        }
    }

    fn next(&self, target: &Target) -> Option<String> {
        if self.verdict() != Verdict::Findings {
            return None;
        }
        if !self.health.is_repairable() {
            return Some(target.go_back());
        }
        let target = target.argument();
        let flag = if self.health.is_valid() { "--close-tail " } else { "" };
        Some(format!("See how to repair it:  tool-guard session repair {flag}{target}"))
    }
}
