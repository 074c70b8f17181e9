//! `tool-guard session check`: what is wrong, and what the provider answers to it.
use super::{
    Failure, Outcome, Source, Verdict,
    kind::{Kind, kind},
    lines,
    report::{About, Health, head},
    target::Target,
};
use serde::Serialize;

/// What is wrong with a session.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checked {
    status: &'static str,
    #[serde(flatten)]
    about: About,
    #[serde(flatten)]
    health: Health,
}

/// Checks a session: JSON lines while they are read, all others in memory.
pub(crate) fn check(target: &Target) -> Result<Checked, Failure> {
    let source = Source::open(target)?;
    let (about, health) = match &source {
        Source::File(file, _) if kind(file)? == Kind::Lines => lines::check(file)?,
        _ => {
            let content = source.content()?;
            (content.about(), content.health())
        }
    };
    let status = if health.is_valid() { "clean" } else { "findings" };
    Ok(Checked { status, about, health })
}

impl Outcome for Checked {
    fn verdict(&self) -> Verdict {
        if self.health.is_valid() { Verdict::Clean } else { Verdict::Findings }
    }

    fn show(&self, target: &Target, out: &mut String) {
        head(target, &self.about, self.health.is_valid(), out);
        self.health.show(target, out);
    }

    fn next(&self, target: &Target) -> Option<String> {
        let target = target.argument();
        (!self.health.is_valid())
            .then(|| format!("See how to mend it:  tool-guard session repair {target}"))
    }
}
