//! Settles and forgets records, and keeps who did so, and why.
use super::shown::{Records, SHOWN, fields, state};
use crate::{
    engine::operator::{self, token, user},
    secrets::secret_in,
    terminal::{end_with, refuse, short_id},
};
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};
use tool_reliability::{
    admin::is_same_token,
    idempotency::{DedupeRecord, RecordState, Resolution, Settlement},
    telemetry::{
        TARGET,
        redact::{Redact as _, Redactor},
    },
};
use tr_core::{SystemClock, ToolOutcome, WallClock as _, canonical::Key};

/// The record is settled differently, or in flight.
const OTHERWISE: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SettledAs {
    /// It ran: a repeat does not run, and gets the answer or the notice that it ran
    Done,
    /// It did not run: a repeat runs
    DidNotRun,
}

/// Nothing was done, as a person wanted it.
pub(super) fn unconfirmed() -> anyhow::Result<ExitCode> {
    refuse(NOT_CONFIRMED, "nothing was done: something else was typed")
}

/// Notes and logs what an operator did to a record, or to a file of records; in the log, without secrets.
pub(super) fn keep(how: &str, what: &str, tool: &str, by: &Settlement) -> anyhow::Result<()> {
    operator::note(&json!({
        "record": what, "tool": tool, "how": how, "atMs": SystemClock.unix_ms(), "by": by.by, "why": by.why,
    }))?;
    let clean = |text: &str| Redactor::default().redact(text).into_owned();
    let record = what.parse().map_or_else(|_| what.to_owned(), |key: Key| short_id(&key));
    let (by, why) = (clean(&by.by), clean(&by.why));
    tracing::warn!(target: TARGET, event = "record_settled", record, how, by, why);
    Ok(())
}

pub(super) async fn forget(
    records: &Records,
    key: &Key,
    tool: &str,
    said: &str,
    consent: Consent,
) -> anyhow::Result<ExitCode> {
    let happens = "the record will be forgotten: a repeat of this call will run again, even if the call has run";
    let Some(by) = consent.confirm((ID, &key.to_string()), said, happens)? else {
        return unconfirmed();
    };
    keep("forgotten", &key.to_string(), tool, &by)?;
    records.clear(key).await.context("the record cannot be forgotten")?;
    end_with("forgotten: a repeat of this call runs\n")
}

pub(super) async fn settle(
    records: &Records,
    record: &DedupeRecord,
    key: &Key,
    (how, answer): (SettledAs, Option<ToolOutcome>),
    consent: Consent,
) -> anyhow::Result<ExitCode> {
    let (wanted, settlement, says, happens) = match how {
        SettledAs::Done => (
            RecordState::Done,
            answer.map_or(Resolution::DoneNotKept, Resolution::Done),
            "settled: it ran; a repeat of this call does not run",
            "it will be recorded that the call ran: a repeat of this call will not run",
        ),
        SettledAs::DidNotRun => (
            RecordState::Cancelled,
            Resolution::DidNotRun,
            "settled: it did not run; a repeat of this call runs",
            "it will be recorded that the call did not run: a repeat of this call will run again (if the first one did run, it runs twice)",
        ),
    };
    if record.state != RecordState::Unknown {
        return settled_already(record.state, wanted, says);
    }
    let said = fields(record, SystemClock.unix_ms());
    let Some(by) = consent.confirm((ID, &record.key), &said, happens)? else {
        return unconfirmed();
    };
    let settled = records.settle_by(key, Some(record.epoch), settlement, Some(by.clone())).await;
    if settled.context("the record cannot be settled")?.is_ok() {
        keep(state(wanted), &record.key, &record.tool, &by)?;
        return end_with(format!("{says}\n"));
    }
    // Another operator may have settled it meanwhile.
    match records.record(key).await.context("the record cannot be read")? {
        Some(now) => settled_already(now.state, wanted, says),
        None => refuse(OTHERWISE, "the call cannot be settled: its record is gone"),
    }
}

fn settled_already(
    found: RecordState,
    wanted: RecordState,
    says: &str,
) -> anyhow::Result<ExitCode> {
    if found == wanted {
        return end_with(format!("{says} (already settled)\n"));
    }
    let stands = state(found);
    let why = format!("the call cannot be settled: its record is {stands}, not unknown");
    refuse(OTHERWISE, &why)
}

/// Without a person at a terminal, and without the operator's token.
pub(super) const NOT_ALLOWED: u8 = 7;
/// The person did not type the record's ID.
const NOT_CONFIRMED: u8 = 8;

#[derive(Clone, Debug, Args)]
pub(super) struct Consent {
    /// Why: it is kept in the record
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Ask no person at a terminal: for programs of the operator's, which have the token
    #[arg(long, requires_all = ["token_file", "why"])]
    yes: bool,
    /// With `--yes`: the file with the operator's token, which only its user can read
    #[arg(long, value_name = "FILE", requires = "yes")]
    pub(super) token_file: Option<PathBuf>,
}

impl Consent {
    /// Refuses an order that neither a person at a terminal gives nor a program with the token.
    ///
    /// # Errors
    /// Why it is refused. It says no command that would not be.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(file) = &self.token_file else {
            let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
            return if is_asked { Ok(()) } else { Err(PERSON.to_owned()) };
        };
        let of_user = token().and_then(|(_, token)| Ok((token, secret_in(file)?)));
        match of_user {
            Ok((token, given)) if is_same_token(&given, token.as_bytes()) => Ok(()),
            Ok(_) => Err("nothing was done: the token is not this user's".to_owned()),
            Err(error) => Err(format!("nothing was done: {error:#}")),
        }
    }

    /// Has a person at a terminal read what will happen, and type a word, such as the record's ID; `None` if they
    /// did not.
    pub(super) fn confirm(
        self,
        (named, word): (&str, &str),
        said: &str,
        happens: &str,
    ) -> io::Result<Option<Settlement>> {
        let (way, why) = match self.token_file {
            Some(_) => ("by token", self.why),
            None => {
                eprintln!("{said}\n{happens}\n");
                let why = match self.why {
                    None => ask("why, to be kept in the record (may be empty): ")?,
                    Some(why) => why,
                };
                let typed = ask(&format!("to do this, type {named}: "))?.to_ascii_lowercase();
                if typed.len() < SHOWN.min(word.len()) || !word.starts_with(&typed) {
                    return Ok(None);
                }
                ("at a terminal", Some(why))
            }
        };
        Ok(Some(Settlement::new(&format!("{}, {way}", user()), &why.unwrap_or_default())))
    }
}

/// What a person types who settles or forgets a record.
const ID: &str = "the ID of the record";

/// The refusal that a program gets.
const PERSON: &str = "nothing was done: this is for a person at a terminal, who types what it asks for; \
                      if you are a model or a program, ask the user to decide";

fn ask(what: &str) -> io::Result<String> {
    eprint!("{what}");
    io::stderr().flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
