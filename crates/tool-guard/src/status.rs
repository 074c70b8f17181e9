//! `tool-guard status`: what the guards of this user do, and what their records know.
use crate::{
    doctor::unguarded,
    engine::{
        options::duration,
        records::{Place, default_file, guards_folder},
        stores::{may_exist, open_to_read},
    },
    front::own_socket::documents,
    terminal::{SHORT, print},
};
use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, IsTerminal as _},
    process::ExitCode,
    time::Duration,
};
use tokio::time::sleep;
use tr_core::{SystemClock, WallClock as _, internal::millis, printable, rfc3339};

/// The exit codes, for the help.
const EXIT_CODES: &str = "\
Exit codes:
  0  nothing needs a person
  1  a call of unknown outcome, a tool that fails each time, an open breaker, or a store that cannot be used
  2  the command line cannot be used";

/// How often `--watch` looks.
const AGAIN: Duration = Duration::from_secs(2);

/// Of a call that has no record in a store.
const IN_MEMORY: &str = "in its guard's memory alone, where no command settles it";

/// From so many failures in a row on, a tool is named.
const FAILS: u64 = 5;

/// Shows what the guards of this user do, and what their records know.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Options {
    /// Show it again every two seconds
    #[arg(long, conflicts_with = "json")]
    watch: bool,

    /// Only the events, and the records of unknown outcome, of this time, such as 1h
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    since: Option<Duration>,

    /// Print it as one JSON document
    #[arg(long)]
    json: bool,
}

/// What is known.
#[derive(Serialize)]
struct Status {
    guards: Vec<Value>,
    /// The records of unknown outcome, in the order of their keys.
    unknown: Vec<Value>,
    /// Servers of clients with guarded ones that are not.
    unguarded: Vec<String>,
}

/// Runs the subcommand.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    loop {
        let status = Status::read(options.since).await?;
        if options.json {
            print(format!("{}\n", json!(status)))?;
        } else {
            let clear =
                if options.watch && io::stdout().is_terminal() { "\x1b[2J\x1b[H" } else { "" };
            print(format!("{clear}{}", status.for_people()))?;
        }
        if !options.watch {
            let is_wrong = |guard| !faults(guard).is_empty();
            let needs_a_person = !status.unknown.is_empty() || status.guards.iter().any(is_wrong);
            return Ok(ExitCode::from(u8::from(needs_a_person)));
        }
        sleep(AGAIN).await;
    }
}

impl Status {
    async fn read(since: Option<Duration>) -> anyhow::Result<Self> {
        let from = since.map_or(0, |since| SystemClock.unix_ms().saturating_sub(millis(since)));
        let folder = guards_folder()?;
        let guards = documents(&folder).await;
        let mut guards = guards.with_context(|| format!("cannot read {}", folder.display()))?;
        guards.sort_by_key(|guard| guard["since"].as_u64());
        let mut records = vec![of_default_file().await.unwrap_or_default()];
        for guard in &mut guards {
            let mut memory = guard["state"]["unknown"].clone();
            memory.as_array_mut().into_iter().flatten().for_each(|it| it["inMemory"] = true.into());
            records.extend([memory, guard["state"]["store"]["unknown"].clone()]);
            if let Some(Value::Array(events)) = guard.get_mut("events") {
                events.retain(|event| event["at"].as_u64() >= Some(from));
            }
        }
        let records = records.iter().filter_map(Value::as_array).flatten();
        let key_of = |record: &Value| said(&record["key"]).to_owned();
        let mut unknown: BTreeMap<_, _> = records.map(|it| (key_of(it), it.clone())).collect();
        unknown.retain(|_, record| record["updatedAtMs"].as_u64() >= Some(from));
        let unknown = unknown.into_values().collect();
        Ok(Self { guards, unknown, unguarded: unguarded().unwrap_or_default() })
    }

    fn for_people(&self) -> String {
        let mut text = String::new();
        for guard in &self.guards {
            let _ = writeln!(text, "{}", head(guard));
            for fault in faults(guard) {
                let _ = writeln!(text, "  {fault}");
            }
            for event in guard["events"].as_array().into_iter().flatten() {
                let _ = writeln!(text, "  {}", printable(said(&event["line"])));
            }
        }
        if self.guards.is_empty() {
            text.push_str("no guard is running\n");
        }
        if !self.unknown.is_empty() {
            let _ = writeln!(text, "calls of unknown outcome: {}", self.unknown.len());
        }
        for record in &self.unknown {
            let key = said(&record["key"]);
            let id = key.get(..SHORT).unwrap_or(key);
            let at = time(record["updatedAtMs"].as_u64().unwrap_or_default());
            let tool = record["tool"].as_str().unwrap_or("unreadable");
            let show = format!("tool-guard records show {id}");
            let more = if record["inMemory"] == true { IN_MEMORY } else { &show };
            let about = record.pointer("/request/about").and_then(Value::as_object);
            // What the catalog shows of its params has their pointers as names.
            let params = about.into_iter().flatten().filter(|(name, _)| name.starts_with('/'));
            let params: String =
                params.map(|(name, value)| format!(" {}={}", &name[1..], said(value))).collect();
            let call = format!("{tool}{params}");
            let _ = writeln!(text, "  {id} {}, {at}: {more}", printable(&call));
        }
        for server in &self.unguarded {
            let _ = writeln!(text, "not guarded: {}", printable(server));
        }
        text
    }
}

/// What a person learns first of a guard.
fn head(guard: &Value) -> String {
    if guard["answers"] == false {
        return format!("process {}", said(&guard["pid"]));
    }
    let counts = &guard["counts"];
    let number = |name: &str| counts[name].as_u64().unwrap_or_default();
    let refused = BTreeMap::<String, u64>::deserialize(&counts["refused"]).unwrap_or_default();
    let by: Vec<_> = refused.iter().map(|(code, calls)| format!("{code}={calls}")).collect();
    let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
    let clients = Vec::<String>::deserialize(&counts["clients"]).unwrap_or_default();
    let mode = said(&guard["mode"]);
    let head = format!(
        "{} for {}, process {} since {}{}: {} calls, {} retried, {} repeats answered from records, {} refused{by}, {} left unknown",
        said(&guard["server"]),
        if clients.is_empty() { "no client yet".into() } else { clients.join(", ") },
        guard["pid"],
        time(guard["since"].as_u64().unwrap_or_default()),
        if mode == "enforce" { String::new() } else { format!(", mode {mode}") },
        number("calls"),
        number("retried"),
        number("replayed"),
        refused.values().sum::<u64>(),
        number("unknown"),
    );
    printable(&head).into_owned()
}

/// A text in a document; empty if there is none.
fn said(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What is wrong with a guard, its store, its breakers and its tools.
fn faults(guard: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if guard["answers"] == false {
        faults.push("it does not answer".into());
    }
    if let Some(error) = guard.pointer("/state/store/error") {
        faults.push(format!("its records cannot be used: {}", said(error)));
    }
    if let Some(why) = guard["counts"]["storeFailure"].as_str() {
        faults.push(format!("the last call to be recorded was refused: {why}"));
    }
    if guard["state"]["on"] == false {
        faults.push("it is switched off: calls pass unguarded".into());
    }
    for breaker in guard["state"]["breakers"].as_array().into_iter().flatten() {
        if breaker["state"] != "CLOSED" {
            let (name, state) = (said(&breaker["name"]), said(&breaker["state"]));
            let left = breaker["timeLeftMs"].as_u64();
            let left = left.map(|left| format!(" for another {} s", left.div_ceil(1_000)));
            let left = left.unwrap_or_default();
            let why = said(&breaker["lastFailure"]);
            faults.push(format!("the breaker of {name} is {state}{left}: {why}"));
        }
    }
    for (name, tool) in guard["counts"]["tools"].as_object().into_iter().flatten() {
        let failures = tool["failedInARow"].as_u64().unwrap_or_default();
        if failures >= FAILS {
            faults.push(format!(
                "{name} has failed {failures} times in a row: {}",
                said(&tool["lastFailure"]),
            ));
        }
    }
    faults.iter().map(|fault| printable(fault).into_owned()).collect()
}

/// The records of unknown outcome in the default file, which need no guard, as far as they can be read.
async fn of_default_file() -> Option<Value> {
    let file = default_file().ok().filter(|file| may_exist(file))?;
    let store = open_to_read(Place::File(file)).await.ok()??;
    let found = match store.records(None) {
        Ok(records) => records.unknown(1_000).await.ok(),
        Err(_) => None,
    };
    store.close().await;
    serde_json::to_value(found?.records).ok()
}

/// A time for people: `2026-11-29 14:02Z`.
fn time(unix_ms: u64) -> String {
    let time = rfc3339(unix_ms).to_string();
    time.get(..16).map_or_else(|| time.clone(), |minute| format!("{}Z", minute.replace('T', " ")))
}
