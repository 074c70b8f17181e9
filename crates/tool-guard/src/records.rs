//! `tool-guard records`: lists the records of calls, and settles calls of unknown outcome.
//!
//! It works on the store itself, whether or not a guard runs.
mod change;
mod file;
mod shown;

use self::{
    change::{Consent, NOT_ALLOWED, SettledAs, forget, settle},
    file::FileAction,
    shown::{Found, Records, SHOWN, UNREADABLE, advice, fields, find, whole},
};
use crate::{
    engine::{
        log::{self, Log},
        recording::Recording,
        records::{self, Place, RecordsCommand},
        setup::read_config,
        stores::{Store, check_key, may_exist, open, open_to_read},
    },
    terminal::{end_with, print, refuse},
};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::value::RawValue;
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};
use tool_reliability::{
    config::variables,
    idempotency::{
        DedupeRecord, MayStillRun,
        store::{Query, Selector, StateFilter},
    },
};
use tr_core::{
    Json, SystemClock, ToolOutcome, WallClock as _,
    canonical::{self, Key},
    one_line, printable, printable_lines,
};

/// Examples and exit codes, for the help.
const EXAMPLES: &str = "\
Examples:
  tool-guard records list --unknown
  tool-guard records show 3fa91c0be27d
  tool-guard records settle 3fa91c0be27d done --why 'the shop lists it'
  tool-guard records settle 3fa91c0be27d did-not-run

Exit codes:
  0  done
  1  the records cannot be read, or something of the file is damaged or missing
  2  the command line, or the answer's file, cannot be used
  3  already settled differently, or in flight
  4  no record has this ID, or several have
  5  not settled as did-not-run: the call may still run
  6  a record cannot be read: `list` has listed the others
  7  not settled, forgotten or accepted: no person at a terminal, and no operator's token (--token-file)
  8  not settled, forgotten or accepted: something else was typed";

const UNUSABLE: u8 = 2;
/// The ID names no record, or several.
const NOT_FOUND: u8 = 4;
/// The call may still run.
const MAY_STILL_RUN: u8 = 5;

/// More than a store holds.
const ALL: usize = 10_000_000;

/// Lists the records of mutating calls, and settles those of unknown outcome.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The store of records: a file, or redis://HOST:PORT [default: the configuration's, or
    /// tool-guard/records.db in the user's state folder]
    #[arg(long, global = true, value_name = "WHERE")]
    records: Option<Place>,

    /// The key with which they are encrypted
    #[arg(long, global = true, value_name = "FILE")]
    records_key_file: Option<PathBuf>,

    /// The guard's configuration, which may name the store and the key
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(flatten)]
    Records(RecordAction),
    #[command(flatten)]
    File(FileAction),
}

/// What to do with one record, or with all.
#[derive(Debug, Subcommand)]
enum RecordAction {
    /// List the records, the latest change last
    List {
        /// Only those of unknown outcome
        #[arg(long)]
        unknown: bool,
        /// Print each as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one record
    Show {
        /// The record's ID, or its beginning
        id: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Record how a call of unknown outcome ended. Asks a person at a terminal
    Settle {
        /// The record's ID, or its beginning
        id: String,
        /// How the call ended
        #[arg(value_enum)]
        how: SettledAs,
        /// With `done`: the result that repeats get, as a JSON object like that of tools/call
        #[arg(long, value_name = "FILE")]
        answer: Option<PathBuf>,
        /// With `did-not-run`: settle even though the guard that sent the call is running and may still get
        /// its answer. If the call does run, a repeat runs it a second time
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Forget a record in any state: a repeat of its call runs. Asks a person at a terminal
    Forget {
        /// The record's ID, or its beginning
        id: String,
        /// Forget it even though it cannot be read, and does not say whether its call ran
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

/// Runs the subcommand.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let mut answer = None;
    if let What::Records(RecordAction::Settle { answer: Some(file), how, .. }) = &options.what {
        if *how == SettledAs::DidNotRun {
            let why = "--answer is for `settle ID done`: a call that did not run has no answer";
            return refuse(UNUSABLE, why);
        }
        match read_answer(file) {
            Ok(read) => answer = Some(read),
            Err(error) => return refuse(UNUSABLE, &printable_lines(&format!("{error:#}"))),
        }
    }
    let mut _logging = None;
    if let What::Records(
        RecordAction::Settle { consent, .. } | RecordAction::Forget { consent, .. },
    )
    | What::File(FileAction::AcceptLoss { consent }) = &options.what
    {
        if let Err(why) = consent.check() {
            return refuse(NOT_ALLOWED, &printable_lines(&why));
        }
        if consent.token_file.is_some() {
            _logging = log::start(Log::Warn, None)?;
        }
    }
    let (place, key_file, command) = place(&options)?;
    let act = match options.what {
        What::File(action) => return file::act_on(place, action, &command).await,
        What::Records(action) => action,
    };
    let is_read = matches!(act, RecordAction::List { .. } | RecordAction::Show { .. });
    let store = if is_read { open_to_read(place).await } else { open(Some(place)).await };
    let store = store?.context("a place has a store")?;
    let done = on_records(&store, key_file, act, answer, &command).await;
    store.close().await;
    done
}

/// Does it with the record that the action names, or with all.
async fn on_records(
    store: &Store,
    key_file: Option<PathBuf>,
    act: RecordAction,
    answer: Option<ToolOutcome>,
    command: &RecordsCommand,
) -> anyhow::Result<ExitCode> {
    let records = store.records(key_file.as_deref().map(records::key).transpose()?)?;
    check_key(&records).await?;
    let id = match &act {
        RecordAction::List { unknown, json } => {
            return list(&records, *unknown, *json, command).await;
        }
        RecordAction::Show { id, .. }
        | RecordAction::Settle { id, .. }
        | RecordAction::Forget { id, .. } => id,
    };
    let found = match find(&records, id, command).await? {
        Ok(found) => found,
        Err(why) => return refuse(NOT_FOUND, &printable(&why)),
    };
    let now = SystemClock.unix_ms();
    match (act, &found) {
        (RecordAction::Show { json: true, .. }, Found::Readable(_)) => {
            end_with(found.json()? + "\n")
        }
        (RecordAction::Show { json, .. }, Found::Unreadable(record)) => {
            print(if json { found.json()? } else { found.line(now) } + "\n")?;
            refuse(UNREADABLE, &advice(record, command))
        }
        (RecordAction::Show { .. }, Found::Readable(record)) => {
            end_with(whole(record, now, may_still_run(&records, record).await, command))
        }
        (RecordAction::Forget { force: true, consent, .. }, Found::Unreadable(record)) => {
            let tool = record.tool.as_deref().unwrap_or_default();
            forget(&records, &record.key, tool, &found.line(now), consent).await
        }
        (RecordAction::Forget { consent, .. }, Found::Readable(record)) => {
            forget(&records, &key(record)?, &record.tool, &fields(record, now), consent).await
        }
        (RecordAction::Settle { how, force, consent, .. }, Found::Readable(record)) => {
            if how == SettledAs::DidNotRun
                && !force
                && let still = may_still_run(&records, record).await
                && let Some(why) = still.refusal()
            {
                let short = record.key.get(..SHOWN).unwrap_or(&record.key);
                let first = match still {
                    MayStillRun::OwnerLives => "end that guard first",
                    _ => "wait, or end that guard first",
                };
                let said = format!(
                    "{why}; {first}, or, if you know that the call can no longer run, use {command} settle {short} did-not-run --force (if it does run, a repeat runs it a second time)"
                );
                return refuse(MAY_STILL_RUN, &said);
            }
            settle(&records, record, &key(record)?, (how, answer), consent).await
        }
        (_, Found::Unreadable(record)) => refuse(UNREADABLE, &advice(record, command)),
        (RecordAction::List { .. }, Found::Readable(_)) => Ok(ExitCode::SUCCESS),
    }
}

fn key(record: &DedupeRecord) -> anyhow::Result<Key> {
    record.key.parse().context("a record's ID cannot be read")
}

async fn may_still_run(records: &Records, record: &DedupeRecord) -> MayStillRun {
    records.may_still_run(record).await.unwrap_or(MayStillRun::Unknown)
}

/// Reads a result, which is sent to clients as one line.
fn read_answer(file: &Path) -> anyhow::Result<ToolOutcome> {
    let what = || format!("the answer {} cannot be used", file.display());
    let text = fs::read_to_string(file).with_context(what)?;
    let text = text.trim();
    let json: Option<Box<RawValue>> = RawValue::from_string(one_line(text).into_owned()).ok();
    let json = json
        .filter(|_| text.starts_with('{'))
        .context(
            "expected a JSON object, such as {\"content\":[{\"type\":\"text\",\"text\":\"…\"}]}",
        )
        .with_context(what)?;
    // Of two members with one name, clients differ in which they read.
    canonical::to_string(json.get()).with_context(what)?;
    Ok(ToolOutcome::success(Json::from(json)))
}

/// The place of the store, which must exist, its key, and the command for messages about its records.
fn place(options: &Options) -> anyhow::Result<(Place, Option<PathBuf>, RecordsCommand)> {
    let config = read_config(options.config.as_deref(), variables())?;
    let mut recording = Recording::default();
    (recording.place, recording.key_file) =
        (options.records.clone(), options.records_key_file.clone());
    let Recording { place: named, key_file, .. } = recording.over(&config.records);
    let command = RecordsCommand::of(named.as_ref());
    let place = match named {
        Some(place) => place,
        None => Place::File(records::default_file()?),
    };
    match &place {
        Place::Memory => {
            bail!(
                "records in memory belong to a running guard: give a file or a server with --records"
            )
        }
        Place::File(file) if !may_exist(file) => {
            bail!(
                "there are no records, because {} does not exist: if the guard keeps them elsewhere, name that place with --records",
                file.display()
            )
        }
        _ => {}
    }
    Ok((place, key_file, command))
}

async fn list(
    records: &Records,
    unknown: bool,
    json: bool,
    command: &RecordsCommand,
) -> anyhow::Result<ExitCode> {
    let state = if unknown { StateFilter::Unknown } else { StateFilter::Any };
    let query = Query { selector: Selector::All, state };
    // For people, without the runs before the last, which are kept with the answers.
    let found = records.listing(&query, ALL, !json).await;
    let mut found = found.context("the records cannot be read")?;
    found.records.sort_by_key(|record| record.updated_at_ms);
    let now = SystemClock.unix_ms();
    let advice = found.unreadable.first().map(|record| advice(record, command));
    let readable = found.records.into_iter().map(|record| Found::Readable(Box::new(record)));
    let mut out = String::new();
    for record in readable.chain(found.unreadable.into_iter().map(Found::Unreadable)) {
        out += &if json { record.json()? } else { record.line(now) };
        out.push('\n');
    }
    if out.is_empty() && !json {
        out = if unknown { "no call of unknown outcome\n" } else { "no records\n" }.to_owned();
    }
    print(out)?;
    match advice {
        Some(advice) => refuse(UNREADABLE, &advice),
        None => Ok(ExitCode::SUCCESS),
    }
}
