//! The report on a session, as JSON and for display.
mod form;

pub(crate) use self::form::{Form, on_resume, on_resume_of_last};

use self::form::{damage, done, provider};
use super::verdict::{NotJudged, Verdict};
use crate::terminal::{BAD, DIM, GOOD, TITLE, WARN, count, size};
use serde::Serialize;
use serde_json::Value;
use std::fmt::{self, Write as _};
use tr_core::printable;
use tr_transcript::{FileActionKind, FileFinding, FileForm, Finding, Severity, SkipReason};

/// How many findings of a file, or lines of a plan, are displayed.
pub(crate) const SHOWN: usize = 20;

/// The form and size of a session.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct About {
    #[serde(flatten)]
    pub(crate) form: Form,
    pub(crate) messages: usize,
    pub(crate) bytes: u64,
    pub(crate) skipped_bytes: u64,
}

/// The findings of a session.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Health {
    /// The uses of the last step that wait for their results.
    pub(crate) pending: Vec<String>,
    /// The calls in a database whose intent is recorded and whose end is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) running: Vec<String>,
    /// The number of findings; if there are very many, only the first ones are kept.
    pub(crate) found: u64,
    /// How many of them keep the session from going on.
    pub(crate) errors: u64,
    pub(crate) findings: Vec<Found>,
}

/// A finding and its position.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<usize>,
    rule: u8,
    severity: Severity,
    fault: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<Box<str>>,
    /// The id of the parent that is missing or a descendant.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Box<str>>,
    what: String,
    provider: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_error: Option<String>,
    /// What the agent makes of it when it resumes the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_resume: Option<&'static str>,
    /// Whether it says that something is not understood.
    #[serde(skip)]
    is_not_judged: bool,
    /// Whether every repair leaves it.
    #[serde(skip)]
    is_left_by_repair: bool,
}

impl Found {
    fn new(severity: Severity, fault: &impl Serialize, what: String, line: Option<u64>) -> Self {
        Self {
            line,
            message: None,
            block: None,
            rule: 0,
            severity,
            fault: serde_json::to_value(fault).unwrap_or_default(),
            tool_use_id: None,
            parent: None,
            what,
            provider: "",
            provider_error: None,
            on_resume: None,
            is_not_judged: false,
            is_left_by_repair: false,
        }
    }

    pub(crate) fn of_message(finding: &Finding, line: Option<u64>) -> Self {
        Self {
            message: Some(finding.message_index),
            block: finding.block_index,
            rule: finding.fault.rule(),
            tool_use_id: finding.tool_use_id.clone(),
            provider: provider(Some(finding.format())),
            provider_error: finding.provider_error(),
            is_not_judged: finding.fault.is_not_judged(),
            is_left_by_repair: finding.is_left_by_repair(),
            ..Self::new(finding.severity, &finding.fault, finding.to_string(), line)
        }
    }

    pub(crate) fn of_file(found: &FileFinding, form: FileForm) -> Self {
        if let Some(finding) = &found.finding {
            let on_resume = on_resume(form, &finding.fault);
            return Self { on_resume, ..Self::of_message(finding, Some(found.line)) };
        }
        let member = form.parent_member();
        let parent = found.parent.as_ref().map(|parent| format!(": {member} {parent}"));
        let what = format!("{found}{}", parent.unwrap_or_default());
        Self {
            parent: found.parent.clone(),
            provider: provider(form.messages()),
            is_not_judged: found.fault.is_not_judged(),
            ..Self::new(found.severity, &found.fault, what, Some(found.line))
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The consequence of a finding.
    fn so(&self) -> String {
        let provider = self.provider;
        match (&self.provider_error, self.severity) {
            (Some(error), _) if self.on_resume.is_some() => {
                format!("of the session as it stands {provider} says: {error}")
            }
            (Some(error), _) => format!("{provider} refuses it: {error}"),
            (None, Severity::Error) if self.parent.is_some() => {
                "an agent may see nothing before it; Claude Code 2.1 goes on from the entry before \
                 it by its timestamp"
                    .into()
            }
            (None, Severity::Error) if self.fault == "line_break" => {
                "the agent reads two broken lines, and drops what the record says".into()
            }
            (None, Severity::Error) => {
                "the agent cannot read the session, or reads it incorrectly".into()
            }
            (None, _) if self.is_not_judged && self.message.is_some() => {
                format!("it is left as it is; what {provider} reads there is not known")
            }
            (None, _) if self.message.is_some() => {
                format!("{provider} accepts it; a person may misread it")
            }
            (None, _) if self.fault == "unread_message" => {
                "it is left as it is; what the agent reads there is not known".into()
            }
            (None, _) if self.fault == "old_ordinal" => {
                "Codex 0.169 leaves it out of the history that its app shows, and 0.151 to 0.153 \
                 show nothing behind it; the model is sent it"
                    .into()
            }
            (None, _) => damage(&self.fault).into(),
        }
    }
}

/// An action, for display.
pub(crate) fn say(action: &FileActionKind) -> String {
    match action {
        FileActionKind::Message(action) => {
            let id = printable(action.tool_use_id.as_deref().unwrap_or_default());
            let new = action.new_id.as_ref().map(|new| format!(" → {}", printable(new)));
            let new = new.unwrap_or_default();
            format!("{}  {DIM}{id}{new}{DIM:#}", done(action.action)).trim_end().to_owned()
        }
        FileActionKind::DropBytes { length, why: SkipReason::Nul } => {
            format!("take out {}", count(*length, "NUL byte"))
        }
        FileActionKind::DropBytes { why: SkipReason::LineBreak, .. } => {
            "join the lines of the record: write the line break in its string as \\n".into()
        }
        FileActionKind::DropBytes { length, why } => {
            let bytes = count(*length, "byte");
            let what = match (why, *length) {
                (SkipReason::NotUtf8, 1) => "is no UTF-8",
                (SkipReason::NotUtf8, _) => "are no UTF-8",
                (_, 1) => "belongs to no record",
                _ => "belong to no record",
            };
            format!("take out {bytes} that {what}")
        }
        FileActionKind::SplitRecords => "give the record its own line".into(),
        FileActionKind::Relink => "link the entry to the one before it".into(),
        FileActionKind::GiveId => "give the entry an id of its own".into(),
        FileActionKind::Rewrite => "change this line of the message too".into(),
        FileActionKind::Extend => "add to the message; what it says stays".into(),
        _ => "change the line".into(),
    }
}

impl Health {
    /// Whether the session can go on; warnings do not prevent that.
    pub(crate) fn is_valid(&self) -> bool {
        self.errors == 0
    }

    /// Whether a repair may help: some errors are left by every repair.
    pub(crate) fn is_repairable(&self) -> bool {
        let are_all = self.found == self.findings.len() as u64;
        let mut errors = self.findings.iter().filter(|found| found.is_error());
        !are_all || self.is_valid() || errors.any(|found| !found.is_left_by_repair)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match self.not_judged() {
            _ if !self.is_valid() => Verdict::Findings,
            Some(_) => Verdict::NotJudged,
            None => Verdict::Clean,
        }
    }

    /// Why the provider's verdict is not known, if all that is understood is valid.
    pub(crate) fn not_judged(&self) -> Option<NotJudged> {
        let unknown = self.findings.iter().find(|found| found.is_not_judged);
        let found = unknown.filter(|_| self.is_valid())?;
        let line = found.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let help = format!(
            "what is understood of it is valid; only {} or the agent itself can say more",
            found.provider
        );
        Some(NotJudged::new(format!("{line}{}", found.what), help))
    }

    /// Shows what is left after a change.
    pub(crate) fn show_remaining(&self, target: &dyn fmt::Display, out: &mut String) {
        if !self.is_valid() {
            let _ = writeln!(out, "  {BAD}remaining errors:{BAD:#}");
            self.show(target, out);
        } else if let Some(why) = self.not_judged() {
            let _ = write!(out, "{why}");
        }
    }

    pub(crate) fn show(&self, target: &dyn fmt::Display, out: &mut String) {
        for found in self.findings.iter().take(SHOWN) {
            let style = if found.is_error() { BAD } else { WARN };
            let at = location(target, found.line);
            let _ = writeln!(out, "  {at}  {style}{}{style:#}", printable(&found.what));
            if let Some(message) = found.message {
                let block = found.block.map(|block| format!(", block {block}")).unwrap_or_default();
                let rule = match found.rule {
                    0 => "the provider's own rule".to_owned(),
                    rule => format!("rule {rule}"),
                };
                let _ = writeln!(out, "      {DIM}message {message}{block} · {rule}{DIM:#}");
            }
            if let Some(on_resume) = found.on_resume {
                let _ = writeln!(out, "      {on_resume}");
            }
            let _ = writeln!(out, "      {}", printable(&found.so()));
        }
        more(self.found, "finding", out);
        let mut wait = |ids: &[String], how: &str, then: &str| {
            if !ids.is_empty() {
                let (calls, ids) = (count(ids.len() as u64, "call"), ids.join(", "));
                let ids = printable(&ids);
                let _ = writeln!(out, "  {DIM}{calls} {how}: {ids} ({then}){DIM:#}");
            }
        };
        let closing = "repair --close-tail answers them, if nothing runs any more";
        wait(&self.pending, "of the last step without a result yet", closing);
        let dead = "if the process has died, the next load of the session records \"outcome \
                    unknown, may have run\"";
        wait(&self.running, "on the way", dead);
    }
}

/// `FILE:LINE`; without a line in a database, and for consequences of another repair.
pub(crate) fn location(target: &dyn fmt::Display, line: Option<u64>) -> String {
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{TITLE}{target}{line}{TITLE:#}")
}

/// How many are not displayed.
pub(crate) fn more(all: u64, what: &str, out: &mut String) {
    if all > SHOWN as u64 {
        let more = count(all - SHOWN as u64, &format!("more {what}"));
        let _ = writeln!(out, "  {DIM}… and {more} (--json shows all){DIM:#}");
    }
}

/// The line that names a file.
pub(crate) fn head(target: &dyn fmt::Display, about: &About, verdict: Verdict, out: &mut String) {
    let (style, mark) = match verdict {
        Verdict::Clean => (GOOD, "✓"),
        Verdict::NotJudged => (WARN, "?"),
        Verdict::Findings | Verdict::Unreadable => (BAD, "✗"),
    };
    let form = about.form;
    let (messages, size) = (count(about.messages as u64, "message"), size(about.bytes));
    let skipped = match about.skipped_bytes {
        0 => String::new(),
        skipped => format!(" · {} of no record", count(skipped, "byte")),
    };
    let _ = writeln!(
        out,
        "{style}{mark}{style:#} {TITLE}{target}{TITLE:#}  {DIM}{form} · {messages} · {size}{skipped}{DIM:#}"
    );
}
