//! `tool-guard session repair`: plans the repair of a session, and writes it if requested.
mod balance;
mod extract;

use self::balance::{Balance, Refusal};
use super::{Change, change};
use crate::{
    files::CliError,
    session::{
        document::{Document, Planned},
        each::Outcome,
        options::How,
        report::{About, Form, Health, SHOWN, head, location, more, say},
        target::Target,
        verdict::{Failure, NotJudged, Verdict},
    },
    terminal::{BAD, DIM, GOOD, MINUS, WARN, count},
};
use serde::Serialize;
use serde_json::Value;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};
use tr_core::printable;
use tr_transcript::{ActionKind, FileAction, FileActionKind, FileForm, FileLoss, Format, LossKind};

/// How many records a refusal names.
const NAMED: usize = 5;

/// The result or the plan of a repair.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Repaired {
    #[serde(flatten)]
    how: How,
    repairs: Vec<FileAction>,
    losses: Vec<FileLoss>,
    messages_after: usize,
    bytes_after: u64,
    /// Why it is not written without `--force`.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The files with the images and documents that it removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extracted: Vec<PathBuf>,
    /// The model's thoughts that the provider may refuse after the changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    /// What is wrong after the repair.
    remaining: Health,
}

/// Repairs a session, or plans it.
pub(crate) fn repair(
    target: &Target,
    how: How,
    write: bool,
    force: bool,
    folder: Option<&Path>,
) -> Result<Change<Repaired>, Failure> {
    change(target, (write, "bak"), |_, content| {
        let mut planned = content.plan(how.repair())?;
        let refused = refusal(content, &mut planned).filter(|_| !force);
        let refused = refused.map(|refusal| refused_to(&refusal, how, target));
        if let Some(CliError { what, help }) = refused.as_ref().filter(|_| write) {
            let what = format!("is not repaired, and is as it was: {what}");
            return Err(CliError::new(what, help).into());
        }
        let after = planned.after.as_deref().unwrap_or(content);
        let remaining = after.health();
        if !force
            && !planned.acts.is_empty()
            && let Some(why) = remaining.not_judged()
        {
            let (target, flags) = (target.argument(), how.flags());
            let help = format!(
                "nothing was changed; to see the repair, run: tool-guard session diff{flags} {target}; to \
                 repair what is understood, with a backup, and leave the rest unchanged, run: tool-guard \
                 session repair{flags} --write --force {target}"
            );
            return Err(NotJudged { help, ..why }.into());
        }
        let name = target.file.file_name().unwrap_or_default().to_string_lossy();
        let extracted = match folder {
            Some(folder) => extract::extract(folder, &name, content, after)?,
            None => Vec::new(),
        };
        let thinking = Thinking::behind(&planned.acts, content);
        let About { messages: messages_after, bytes: bytes_after, .. } = after.about();
        let said = Repaired {
            how,
            repairs: planned.acts,
            losses: planned.losses,
            messages_after,
            bytes_after,
            refused: refused.map(|why| why.what),
            extracted,
            thinking,
            remaining,
        };
        Ok((planned.after, said))
    })
}

/// Whether the repair may lose too much; also adds the extended records to the actions.
fn refusal(content: &dyn Document, planned: &mut Planned) -> Option<Refusal> {
    let after = planned.after.as_deref()?;
    let balance = Balance::of(content, after, &planned.reported);
    let extend = |&record: &u64| FileAction {
        line: content.line_of(record),
        action: FileActionKind::Extend,
    };
    let extended = balance.extended.iter().map(extend);
    planned.acts.extend(extended);
    balance::refusal(&balance, planned.dropped, content.about().bytes)
}

/// What a refused repair would do, and what to do instead.
fn refused_to(refusal: &Refusal, how: How, target: &Target) -> CliError {
    let (target, flags) = (target.argument(), how.flags());
    match refusal {
        Refusal::Unreported(lines) => {
            let named: Vec<_> = lines.iter().take(NAMED).map(u64::to_string).collect();
            let more = if lines.len() > NAMED { ", …" } else { "" };
            let lost = count(lines.len() as u64, "record");
            let named = named.join(", ");
            CliError::new(
                format!("it would lose {lost} that it does not report: {named}{more}"),
                format!(
                    "this is a fault of tool-guard: please report it. See what would change: tool-guard \
                     session diff{flags} {target}; --force writes it all the same, with a backup"
                ),
            )
        }
        Refusal::Bytes { out, of } => {
            let percent = out.saturating_mul(100).div_ceil((*of).max(1));
            let out = count(*out, "byte");
            CliError::new(
                format!(
                    "it would take out {out} that are no whole record, {percent} % of the file"
                ),
                format!(
                    "see what goes: tool-guard session diff{flags} {target}; if you can do without it: \
                     tool-guard session repair{flags} --write --force {target}, which keeps the old file \
                     beside the new one"
                ),
            )
        }
    }
}

/// Displays the actions and losses of a repair.
fn show_plan(acts: &[FileAction], losses: &[FileLoss], target: &Target, out: &mut String) {
    for act in acts.iter().take(SHOWN) {
        let _ = writeln!(out, "  {}  {}", location(target, act.line), say(&act.action));
    }
    more(acts.len() as u64, "change", out);
    // What may have held content.
    let dropped = acts.iter().map(|act| match act.action {
        FileActionKind::DropBytes { length, why } if !why.says_nothing() => length,
        _ => 0,
    });
    let dropped: u64 = dropped.sum();
    if dropped > 0 {
        let bytes = count(dropped, "byte");
        let _ = writeln!(
            out,
            "  {MINUS}lost:{MINUS:#} what the {bytes} said that are taken out; the old file keeps them"
        );
    } else if losses.is_empty() && !acts.is_empty() {
        let _ = writeln!(out, "  {GOOD}nothing that a tool did or answered is lost{GOOD:#}");
    }
    for lost in losses.iter().take(SHOWN) {
        let at = location(target, lost.line);
        let tool = lost.loss.tool.as_ref().map(|tool| format!(" of {}", printable(tool)));
        let tool = tool.unwrap_or_default();
        let what = match lost.loss.what {
            LossKind::Call => "that the tool was called",
            LossKind::Result => "what the tool answered",
            LossKind::Reasoning => "what the model thought there",
            LossKind::Media => "an image or a document",
            LossKind::Link => "which call this belongs to; what it says stays, as text",
            _ => "something else",
        };
        let id = printable(&lost.loss.tool_use_id);
        let _ = writeln!(out, "  {at}  {MINUS}lost:{MINUS:#} {what}{tool}  {DIM}{id}{DIM:#}");
    }
    more(losses.len() as u64, "loss", out);
}

impl Outcome for Change<Repaired> {
    fn verdict(&self) -> Verdict {
        self.verdict_of(self.said.remaining.verdict())
    }

    fn status(&self) -> &'static str {
        self.state_name(self.said.remaining.verdict(), "repaired")
    }

    fn show(&self, target: &Target, out: &mut String) {
        let said = &self.said;
        head(target, &self.about, self.verdict(), out);
        show_plan(&said.repairs, &said.losses, target, out);
        for file in &said.extracted {
            let file = file.to_string_lossy();
            let _ = writeln!(out, "  {GOOD}kept:{GOOD:#} {}", printable(&file));
        }
        if let Some(thinking) = &said.thinking {
            let at = location(target, thinking.line);
            let _ = writeln!(out, "  {WARN}{at}  {}{WARN:#}", thinking.what);
        }
        said.remaining.show_remaining(target, out);
        if !said.repairs.is_empty() {
            let About { messages, bytes, .. } = self.about;
            let sum = |messages: usize, bytes: u64| {
                format!("{}, {}", count(messages as u64, "message"), count(bytes, "byte"))
            };
            let (before, after) =
                (sum(messages, bytes), sum(said.messages_after, said.bytes_after));
            let _ = writeln!(out, "  before: {before}; after: {after}");
        }
        if let Some(refused) = &said.refused {
            let _ = writeln!(out, "  {BAD}--write is refused without --force{BAD:#}: {refused}");
        }
        let changes = count(said.repairs.len() as u64, "change");
        let planned = format!("{changes} planned");
        self.show_state(target, "nothing to repair", &planned, ("repaired", &changes), out);
    }

    fn next(&self, target: &Target) -> Option<String> {
        let said = &self.said;
        if !self.is_planned {
            // A repair cannot fix what remains.
            let is_left = said.repairs.is_empty() && !said.remaining.is_valid();
            return is_left.then(|| target.go_back());
        }
        let target = target.argument();
        let flags = said.how.flags();
        let force = if said.refused.is_some() { " --force" } else { "" };
        Some(format!(
            "Look at it closer:  tool-guard session diff{flags} {target}\n\
             Do it:              tool-guard session repair{flags} --write{force} {target}"
        ))
    }
}

/// The first thinking block after the first change.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Thinking {
    /// The line at which its message begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    what: &'static str,
}

const THINKING: &str = "the model's thinking behind the first change: Anthropic may drop it, or refuse \
                    the request (`thinking` or `redacted_thinking` blocks in the latest assistant \
                    message cannot be modified)";

impl Thinking {
    /// For a session with these planned changes.
    fn behind(acts: &[FileAction], before: &dyn Document) -> Option<Self> {
        let of_pi = match before.about().form {
            Form::Lines(FileForm::OpenClaw { .. }) => true,
            form if form.messages() == Some(Format::AnthropicMessages) => false,
            _ => return None,
        };
        let is_lines = matches!(before.about().form, Form::Lines(_));
        let place = |act: &FileAction| {
            let FileActionKind::Message(action) = &act.action else { return None };
            let at = if is_lines { act.line } else { Some(action.message_index as u64) };
            // An added result comes after the call.
            at.map(|at| at + u64::from(action.action == ActionKind::AddUnknown))
        };
        let first = acts.iter().filter_map(place).min()?;
        let records = before.numbered().filter(|(at, _)| *at >= first);
        let named = memchr::memmem::Finder::new(b"thinking");
        let mut thoughts = records
            .filter(|(_, record)| named.find(record).is_some() && has_thought(record, of_pi));
        let (at, _) = thoughts.next()?;
        Some(Self { line: before.line_of(at), what: THINKING })
    }
}

/// Whether a message, or a line with one, has a thinking block with Anthropic's signature.
fn has_thought(record: &[u8], of_pi: bool) -> bool {
    let Ok(record) = serde_json::from_slice::<Value>(record) else { return false };
    let message = record.get("message").unwrap_or(&record);
    let is_thought =
        |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let blocks = message["content"].as_array();
    (!of_pi || message["api"] == "anthropic-messages")
        && blocks.is_some_and(|blocks| blocks.iter().any(is_thought))
}
