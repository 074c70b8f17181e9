//! The rows of stores, sessions, the proxy and redaction: P13 to P19.
use crate::{
    proxy,
    row::{
        How::{BesideBlocking, OwnReal, OwnTime, Real, Syncs},
        Row,
        Target::{Most, Ratio},
    },
    rows::row,
    servers, sessions, transcripts,
};
use benches::ours::{integrity, telemetry};

/// All of them, in the order in which they are shown.
pub(crate) const ROWS: &[Row] = &[
    row("P13", "SQLite: claim + finalise, 64 tasks", "", Most(0.06), Syncs),
    row(
        "P13",
        "SQLite: claim + finalise, 8 tasks, 1 ms more for each sync",
        "spawn_blocking for each operation",
        Ratio(0.25),
        BesideBlocking,
    ),
    row(
        "P14",
        "Redis: claim + finalise",
        "two plain SETs of the same sizes",
        Ratio(1.3),
        Real(servers::beside_sets),
    ),
    row(
        "P15",
        "Redis: waiter in another process wakes",
        "one in this process, after the same write",
        Ratio(2.0),
        Real(servers::waiter_wakes),
    ),
    row(
        "P16",
        "session: read, check and append a message at 100,000",
        "at 100",
        Ratio(1.2),
        Real(transcripts::append),
    ),
    row(
        "P16",
        "session file of Claude Code, about 10,000 lines: check",
        "serde_json: parse its lines",
        Ratio(1.5),
        Real(transcripts::check_claude_code),
    ),
    row(
        "P16",
        "session file of OpenClaw, about 10,000 lines: check",
        "serde_json: parse its lines",
        Ratio(1.5),
        Real(transcripts::check_openclaw),
    ),
    row(
        "P16",
        "validation of 1,000 messages, parsed already (002: 5 ms)",
        "",
        Most(5e6),
        OwnTime(integrity::validate),
    ),
    row(
        "P16",
        "repair of 1,000 messages: plan (002: 50 ms)",
        "",
        Most(5e7),
        OwnTime(integrity::plan),
    ),
    row(
        "P17",
        "session in SQLite: a turn of 4 messages",
        "one bare commit of the same bytes",
        Ratio(1.2),
        Real(sessions::beside_a_bare_commit),
    ),
    row(
        "P17",
        "session in SQLite: a turn of 4 messages, 1 ms more for each sync",
        "one bare commit of the same bytes",
        Ratio(1.2),
        Real(sessions::beside_a_slow_commit),
    ),
    row(
        "P17",
        "session in SQLite: rollback of 5,000 messages",
        "of 20",
        Ratio(1.5),
        Real(sessions::rollbacks),
    ),
    row(
        "P17",
        "session in SQLite: checkpoint (002: 10 ms)",
        "",
        Most(1e7),
        OwnReal(sessions::checkpoint),
    ),
    row("P17", "session in SQLite: commit (002: 5 ms)", "", Most(5e6), OwnReal(sessions::commit)),
    row(
        "P17",
        "session in SQLite: rollback (002: 20 ms)",
        "",
        Most(2e7),
        OwnReal(sessions::rollback),
    ),
    row(
        "P18",
        "MCP call through the proxy, echo of 16 B",
        "bare line pump",
        Ratio(1.15),
        Real(proxy::round_trips),
    ),
    row(
        "P19",
        "redaction of 1 KiB of clean text",
        "",
        Most(3_000.0),
        OwnTime(telemetry::redaction),
    ),
];
