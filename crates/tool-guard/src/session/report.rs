//! What is said of a session: as JSON, and to a person.
use super::show::{BAD, DIM, GOOD, MINUS, TITLE, WARN, count, size};
use serde::Serialize;
use std::{fmt::Write as _, path::Path};
use tr_integrity::{ActionKind, Fault, Finding, Format, Loss, LossKind, RepairAction, Severity};

/// How many findings of a file, or lines of a plan, are shown to a person.
const SHOWN: usize = 20;

/// What a session is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct About {
    pub(crate) format: Format,
    pub(crate) messages: usize,
    pub(crate) bytes: u64,
}

/// What is wrong with a session.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Health {
    /// The uses of the last step that still wait for their results.
    pub(crate) pending: Vec<String>,
    pub(crate) findings: Vec<Found>,
}

/// One thing that is wrong, and where.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    pub(crate) line: usize,
    pub(crate) message: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) block: Option<usize>,
    pub(crate) rule: u8,
    pub(crate) severity: Severity,
    pub(crate) fault: Fault,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<Box<str>>,
    pub(crate) what: String,
    pub(crate) provider: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider_error: Option<String>,
}

/// One thing that a repair does, and where.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Act {
    pub(crate) line: usize,
    #[serde(flatten)]
    pub(crate) action: RepairAction,
}

/// Something that a repair loses, and where it was.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lost {
    pub(crate) line: usize,
    #[serde(flatten)]
    pub(crate) loss: Loss,
}

impl Found {
    pub(crate) fn new(finding: &Finding, format: Format, line: usize) -> Self {
        Self {
            line,
            message: finding.message_index,
            block: finding.block_index,
            rule: finding.fault.rule(),
            severity: finding.severity,
            fault: finding.fault,
            tool_use_id: finding.tool_use_id.clone(),
            what: finding.to_string(),
            provider: provider(format),
            provider_error: finding.provider_error(),
        }
    }
}

impl Health {
    /// Whether the provider takes the session; it does so with warnings.
    pub(crate) fn is_valid(&self) -> bool {
        self.findings.iter().all(|found| found.severity == Severity::Warning)
    }

    pub(crate) fn show(&self, file: &Path, out: &mut String) {
        for found in self.findings.iter().take(SHOWN) {
            let style = if found.severity == Severity::Error { BAD } else { WARN };
            let rule = match found.rule {
                0 => "the provider's own rule".to_owned(),
                rule => format!("rule {rule}"),
            };
            let at = format!("{}:{}", file.display(), found.line);
            let _ = writeln!(out, "  {TITLE}{at}{TITLE:#}  {style}{}{style:#}", found.what);
            let block = found.block.map(|block| format!(", block {block}")).unwrap_or_default();
            let _ = writeln!(out, "      {DIM}message {}{block} · {rule}{DIM:#}", found.message);
            let _ = match &found.provider_error {
                Some(error) => writeln!(out, "      {} refuses it: {error}", found.provider),
                None => writeln!(out, "      {} takes it; a reader may be misled", found.provider),
            };
        }
        more(self.findings.len(), "finding", out);
        if !self.pending.is_empty() {
            let (waiting, ids) = (count(self.pending.len(), "call"), self.pending.join(", "));
            let _ = writeln!(
                out,
                "  {DIM}{waiting} of the last step without a result yet: {ids} (repair --close-tail \
                 answers them, if nothing runs any more){DIM:#}"
            );
        }
    }
}

/// What a repair does and loses, for a person.
pub(crate) fn show_plan(acts: &[Act], losses: &[Lost], file: &Path, out: &mut String) {
    for act in acts.iter().take(SHOWN) {
        let at = format!("{}:{}", file.display(), act.line);
        let what = done(act.action.action);
        let id = act.action.tool_use_id.as_deref().unwrap_or_default();
        let new = act.action.new_id.as_ref().map(|new| format!(" → {new}")).unwrap_or_default();
        let _ = writeln!(out, "  {TITLE}{at}{TITLE:#}  {what}  {DIM}{id}{new}{DIM:#}");
    }
    more(acts.len(), "change", out);
    if losses.is_empty() && !acts.is_empty() {
        let _ = writeln!(out, "  {GOOD}nothing that a tool did or answered is lost{GOOD:#}");
    }
    for lost in losses.iter().take(SHOWN) {
        let at = format!("{}:{}", file.display(), lost.line);
        let tool = lost.loss.tool.as_ref().map(|tool| format!(" of {tool}")).unwrap_or_default();
        let what = match lost.loss.what {
            LossKind::Call => "that the tool was called",
            LossKind::Result => "what the tool answered",
            LossKind::Link => "which call this belongs to; what it says stays, as text",
            _ => "something else",
        };
        let id = &lost.loss.tool_use_id;
        let _ = writeln!(
            out,
            "  {TITLE}{at}{TITLE:#}  {MINUS}lost:{MINUS:#} {what}{tool}  {DIM}{id}{DIM:#}"
        );
    }
    more(losses.len(), "loss", out);
}

fn more(all: usize, what: &str, out: &mut String) {
    if all > SHOWN {
        let more = count(all - SHOWN, &format!("more {what}"));
        let _ = writeln!(out, "  {DIM}… and {more} (--json shows all){DIM:#}");
    }
}

fn done(action: ActionKind) -> &'static str {
    match action {
        ActionKind::RemoveOrphan => "remove the result without its call",
        ActionKind::RemoveEmptyMessage => "remove the message of which nothing is left",
        ActionKind::RemoveIncomplete => "remove the call without its result",
        ActionKind::AddUnknown => "answer the call: outcome unknown, may have run",
        ActionKind::MoveResult => "move the result to its call",
        ActionKind::OrphanToText => "turn the result without its call into text",
        ActionKind::RemoveSynthetic => "remove a made-up result",
        ActionKind::RemoveDuplicate => "remove the second, equal result",
        ActionKind::RenameId => "give the repeated id another name",
        ActionKind::RemoveEmptyText => "remove the text without text",
        _ => "change",
    }
}

/// The line that names a file.
pub(crate) fn head(file: &Path, about: &About, is_good: bool, out: &mut String) {
    let (style, mark) = if is_good { (GOOD, "✓") } else { (BAD, "✗") };
    let (file, format) = (file.display(), name(about.format));
    let (messages, size) = (count(about.messages, "message"), size(about.bytes));
    let _ = writeln!(
        out,
        "{style}{mark}{style:#} {TITLE}{file}{TITLE:#}  {DIM}{format} · {messages} · {size}{DIM:#}"
    );
}

fn name(format: Format) -> &'static str {
    match format {
        Format::AnthropicMessages => "Anthropic Messages",
        Format::OpenAiChat => "OpenAI Chat Completions",
        Format::OpenAiResponses => "OpenAI Responses",
        Format::Gemini => "Gemini",
        _ => "a session",
    }
}

fn provider(format: Format) -> &'static str {
    match format {
        Format::AnthropicMessages => "Anthropic",
        Format::OpenAiChat | Format::OpenAiResponses => "OpenAI",
        Format::Gemini => "Google",
        _ => "the provider",
    }
}
