//! Records that cannot be read: what is known of them, and what a person can do.
use super::shown::{ago, row};
use crate::{
    mcp::records::{RecordsCommand, short},
    terminal::print,
};
use serde_json::json;
use std::io;
use tool_reliability::idempotency::store::UnreadableRecord;
use tr_core::{SystemClock, WallClock as _, printable, printable_json};

/// The exit code if a record cannot be read.
pub(super) const UNREADABLE: u8 = 6;

/// The record in one line.
pub(super) fn line(record: &UnreadableRecord, now: u64) -> String {
    let age = record.changed_at.map_or("-".into(), |at| ago(now.saturating_sub(at)));
    let tool = record.tool.as_deref().unwrap_or("-");
    row(&short(&record.key), "unreadable", &age, tool, "-")
}

/// The record as a line of JSON.
pub(super) fn as_json(record: &UnreadableRecord) -> String {
    let said = json!({
        "key": record.key.to_string(), "tool": record.tool, "state": "unreadable",
        "updatedAtMs": record.changed_at, "error": record.why,
    });
    printable_json(&said.to_string()).into_owned()
}

/// Why the record cannot be used, and what to do.
pub(super) fn advice(record: &UnreadableRecord, command: &RecordsCommand) -> String {
    let (short, why) = (short(&record.key), &record.why);
    let said = format!(
        "the record {short} cannot be read: {why}; its call may have run, and a repeat of it is refused: if a newer tool-guard wrote the record, use that; else find out whether the call ran, and use {command} forget {short} --force (a repeat then runs)"
    );
    printable(&said).into_owned()
}

/// Shows the record.
pub(super) fn show(record: &UnreadableRecord, json: bool) -> io::Result<()> {
    let said = if json { as_json(record) } else { line(record, SystemClock.unix_ms()) };
    print(said + "\n")
}
