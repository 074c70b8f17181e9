//! Formats records for people.
use crate::{
    engine::{identified::PARAMS, operator, records::RecordsCommand, unknown_records::ALIKE},
    terminal::{SHORT, short_id},
};
use anyhow::Context as _;
use serde_json::json;
use std::fmt::Write as _;
use tool_reliability::idempotency::{
    DedupeRecord, MayStillRun, RecordListing, RecordState, StoreHandle, store::UnreadableRecord,
};
use tr_core::{SystemClock, ToolOutcome, WallClock as _, printable, printable_json, rfc3339};

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
                let tool = record.tool.as_deref().unwrap_or("-");
                (short_id(&record.key), "unreadable", age, tool, "-")
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
    let (short, why) = (short_id(&record.key), &record.why);
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
    // What the guard compares tells a person nothing.
    let about =
        record.request.about.iter().filter(|(name, _)| ![ALIKE, PARAMS].contains(&&***name));
    rows.extend(about.map(|(name, value)| (&**name, value.clone())));
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

/// The records that the command works on.
pub(super) type Records = StoreHandle<ToolOutcome>;

/// How many records with the same beginning are listed.
const MAX_LISTED: usize = 5;

/// The fewest digits of an ID that are looked up.
const MIN_DIGITS: usize = 6;

/// The record whose ID begins with `id`, or why there is not exactly one.
pub(super) async fn find(
    records: &Records,
    id: &str,
    command: &RecordsCommand,
) -> anyhow::Result<Result<Found, String>> {
    let id = id.to_ascii_lowercase();
    if id.len() < MIN_DIGITS {
        return Ok(Err(format!(
            "the ID {id} is too short: give at least {MIN_DIGITS} of its digits"
        )));
    }
    let found = records.beginning(&id, MAX_LISTED + 1).await;
    let RecordListing { mut records, mut unreadable, .. } =
        found.context("the records cannot be read")?;
    Ok(match records.len() + unreadable.len() {
        0 => Err(format!(
            "no record has the ID {id}: {command} list shows all; if the guard keeps them elsewhere, name that place with --records{}",
            noted(&id).map_or_else(String::new, |noted| format!("; it was {noted}"))
        )),
        1 => match records.pop() {
            Some(record) => Ok(Found::Readable(Box::new(record))),
            None => Ok(Found::Unreadable(unreadable.remove(0))),
        },
        several => {
            let keys = records.into_iter().map(|record| record.key);
            let damaged = unreadable.iter().map(|record| record.key.to_string());
            let mut keys: Vec<_> = keys.chain(damaged).collect();
            keys.sort();
            let more = if several > MAX_LISTED { ", …" } else { "" };
            // As many digits of each ID as distinguish it from the others.
            let keys: Vec<_> = keys.iter().map(|key| &**key).collect();
            let named: Vec<_> =
                (0..several.min(MAX_LISTED)).map(|at| shortest_unique(&keys, at)).collect();
            let named = named.join(", ");
            Err(format!(
                "several records have IDs that begin with {id}: {named}{more}: give more digits"
            ))
        }
    })
}

/// The beginning of one of these sorted IDs: [`SHOWN`] digits, or as many as no neighbor shares.
fn shortest_unique<'k>(keys: &[&'k str], at: usize) -> &'k str {
    let key = keys[at];
    let shared = |other: &&str| key.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
    let shared = beside.filter_map(|at| keys.get(at)).map(shared).max();
    let length = shared.map_or(SHOWN, |shared| SHOWN.max(shared + 1));
    key.get(..length).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::{ago, shortest_unique};

    #[test]
    fn ids_are_named_as_far_as_they_differ() {
        let keys = ["3fa91c0be27d00aa", "3fa91c0be27d00ab", "3fa91c7777777777"];
        let named: Vec<_> = (0..keys.len()).map(|at| shortest_unique(&keys, at)).collect();
        assert_eq!(named, ["3fa91c0be27d00aa", "3fa91c0be27d00ab", "3fa91c777777"]);
    }

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
