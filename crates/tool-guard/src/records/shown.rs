//! Formats records for people.
use crate::mcp::{
    operator,
    records::{RecordsCommand, SHORT, short},
};
use serde_json::json;
use std::fmt::Write as _;
use tool_reliability::idempotency::{
    DedupeRecord, MayStillRun, RecordState, store::UnreadableRecord,
};
use tr_core::{SystemClock, WallClock as _, printable, printable_json, rfc3339};

/// The warning of `show` for a call that may still run.
const STILL_RUNS: &str = "It may still run: the guard that sent it is running, and a late answer would settle \
                          the record.\n";
/// The warning of `show` if the store does not know which guards are running.
const CANNOT_TELL: &str = "It may still run if the guard that sent it is running.\n";

/// How many digits of an ID are shown.
pub(super) const SHOWN: usize = SHORT;

/// The longest foreign text of a line, in characters.
const MOST: usize = 60;

/// The exit code if a record cannot be read.
pub(super) const UNREADABLE: u8 = 6;

/// A record, as far as it can be read.
pub(super) enum Found {
    Readable(Box<DedupeRecord>),
    Unreadable(UnreadableRecord),
}

impl Found {
    /// The record in one line.
    pub(super) fn line(&self, now: u64) -> String {
        let ago = |at: u64| ago(now.saturating_sub(at));
        let (short, state, age, tool, call) = match self {
            Self::Readable(record) => {
                let call = record.request.tool_call_id.as_deref();
                let call = call.unwrap_or(&record.idempotency_key);
                // A derived key is the record's ID, which is shown already.
                let call = if call == record.key { "-" } else { call };
                let short = record.key.get(..SHOWN).unwrap_or(&record.key).to_owned();
                (short, state(record.state), ago(record.updated_at_ms), &*record.tool, call)
            }
            Self::Unreadable(record) => {
                let age = record.changed_at.map_or_else(|| "-".into(), ago);
                (short(&record.key), "unreadable", age, record.tool.as_deref().unwrap_or("-"), "-")
            }
        };
        format!("{short}  {state:<10}  {age:>9}  {}  {}", beginning(tool), beginning(call))
    }

    /// The record as a line of JSON.
    pub(super) fn json(&self) -> serde_json::Result<String> {
        let text = match self {
            Self::Readable(record) => serde_json::to_string(record)?,
            Self::Unreadable(record) => {
                let said = json!({
                    "key": record.key.to_string(), "tool": record.tool, "state": "unreadable",
                    "updatedAtMs": record.changed_at, "error": record.why,
                });
                said.to_string()
            }
        };
        Ok(printable_json(&text).into_owned())
    }
}

/// Why a record cannot be used, and what to do.
pub(super) fn advice(record: &UnreadableRecord, command: &RecordsCommand) -> String {
    let (short, why) = (short(&record.key), &record.why);
    let said = format!(
        "the record {short} cannot be read: {why}; its call may have run, and a repeat of it is refused: if a newer tool-guard wrote the record, use that; else find out whether the call ran, and use {command} forget {short} --force (a repeat then runs)"
    );
    printable(&said).into_owned()
}

/// The beginning of a foreign text, which may be of any length; the whole text is in the JSON.
fn beginning(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

pub(super) const fn state(state: RecordState) -> &'static str {
    match state {
        RecordState::Inflight => "in flight",
        RecordState::Done => "done",
        RecordState::Failed => "failed",
        RecordState::Cancelled => "not run",
        _ => "unknown",
    }
}

fn ago(ms: u64) -> String {
    match ms / 1_000 {
        s @ 0..120 => format!("{s} s ago"),
        s @ 120..7_200 => format!("{} min ago", s / 60),
        s @ 7_200..172_800 => format!("{} h ago", s / 3_600),
        s => format!("{} d ago", s / 86_400),
    }
}

/// All fields of a record, for a person who decides.
pub(super) fn fields(record: &DedupeRecord, now: u64) -> String {
    let since = |at: u64| format!("{} ({})", rfc3339(at), ago(now.saturating_sub(at)));
    let mut rows = vec![
        ("record", record.key.clone()),
        ("tool", record.tool.clone()),
        ("state", state(record.state).to_owned()),
        ("first claimed", since(record.created_at_ms)),
        ("changed", since(record.updated_at_ms)),
        ("call", record.request.tool_call_id.clone().unwrap_or_default()),
        ("key", record.idempotency_key.clone()),
        ("conversation", record.request.session_key.clone()),
        ("arguments", format!("digest {}", record.request.params_digest)),
    ];
    rows.extend(record.request.about.iter().map(|(name, value)| (&**name, value.clone())));
    if let Some(execution) = &record.execution {
        rows.push(("runs", execution.attempt_count.to_string()));
        for run in &execution.attempts {
            let Some(by) = &run.settlement else { continue };
            let how = if run.status == "success" { "done" } else { "not run" };
            rows.push(("settled", settled(how, &since(run.finished_at_ms), &by.by, &by.why)));
        }
    }
    if let Some(error) = &record.error {
        rows.push(("error", format!("{}: {}", error.code, error.message)));
    }
    if !rows.iter().any(|(name, _)| *name == "settled") {
        rows.push(("settled", noted(&record.key).unwrap_or_default()));
    }
    let rows = rows.iter().filter(|(_, said)| !said.is_empty());
    let rows = rows.map(|(name, said)| format!("{name:<14}{}\n", printable(said)));
    rows.collect()
}

/// Who settled a record, when and why.
fn settled(how: &str, ago: &str, by: &str, why: &str) -> String {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("{how}, {ago}, by {by}{why}")
}

/// The same, as this user's notes have it: the record is gone, or a run that did not end has replaced it.
pub(super) fn noted(id: &str) -> Option<String> {
    let note = operator::noted(id)?;
    let text = |name: &str| note[name].as_str().unwrap_or_default();
    let age = SystemClock.unix_ms().saturating_sub(note["atMs"].as_u64().unwrap_or_default());
    Some(settled(text("how"), &ago(age), text("by"), text("why")))
}

/// All fields of a record, and what can be done about it.
pub(super) fn whole(
    record: &DedupeRecord,
    now: u64,
    may_still_run: MayStillRun,
    command: &RecordsCommand,
) -> String {
    let mut text = fields(record, now);
    if record.state == RecordState::Unknown {
        let short = record.key.get(..SHOWN).unwrap_or(&record.key);
        let (warning, force) = match may_still_run {
            MayStillRun::OwnerLives => (STILL_RUNS, " --force"),
            MayStillRun::No => ("", ""),
            MayStillRun::Recent => (CANNOT_TELL, " --force"),
            _ => (CANNOT_TELL, ""),
        };
        let _ = write!(
            text,
            "\nIt may have run. {warning}Find out at the tool's own side whether it did, then record it:\n  \
             {command} settle {short} done\n  {command} settle {short} did-not-run{force}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::ago;

    #[test]
    fn ages() {
        for (ms, said) in [
            (0, "0 s ago"),
            (119_999, "119 s ago"),
            (120_000, "2 min ago"),
            (7_200_000, "2 h ago"),
            (172_800_000, "2 d ago"),
        ] {
            assert_eq!(ago(ms), said);
        }
    }
}
