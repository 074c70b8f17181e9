//! `tool-guard session check`: what is wrong, and what the provider answers to it.
use super::{
    Failure, Outcome, Source, Verdict,
    kind::{Kind, kind},
    lines,
    report::{About, Health, head},
    show::quoted,
    whole::Whole,
};
use serde::Serialize;
use std::path::Path;

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

/// Checks a file.
pub(crate) fn check(file: &Path) -> Result<Checked, Failure> {
    let source = Source::open(file)?;
    let (about, health) = match kind(&source)? {
        Kind::Lines => lines::check(&source)?,
        Kind::Whole => {
            let whole = Whole::read(source.bytes()?)?;
            (whole.about(), whole.health())
        }
    };
    let status = if health.is_valid() { "clean" } else { "findings" };
    Ok(Checked { status, about, health })
}

impl Outcome for Checked {
    fn verdict(&self) -> Verdict {
        if self.health.is_valid() { Verdict::Clean } else { Verdict::Findings }
    }

    fn show(&self, file: &Path, out: &mut String) {
        head(file, &self.about, self.health.is_valid(), out);
        self.health.show(file, out);
    }

    fn next(&self, file: &Path) -> Option<String> {
        let file = quoted(file);
        (!self.health.is_valid())
            .then(|| format!("See how to mend it:  tool-guard session repair {file}"))
    }
}
