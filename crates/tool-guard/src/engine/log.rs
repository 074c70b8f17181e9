//! Writes events, as JSON lines or as lines for people.
mod human;
mod recent;
mod writer;

pub(crate) use self::{recent::recent, writer::Written};

use self::human::HumanLines;
use crate::{
    files::Folder,
    secrets::{Without, without},
};
use anyhow::Context as _;
use clap::ValueEnum;
use rustix::fs::OFlags;
use std::{
    io::{self, IsTerminal as _},
    path::Path,
};
use tool_reliability::telemetry::JsonLines;
use tracing::{Level, level_filters::LevelFilter};
use tracing_subscriber::{filter::filter_fn, prelude::*};

/// Which events are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// None
    Off,
    /// Failures, refusals, retries, breakers that change
    Warn,
    /// Each call too
    Info,
    /// One line for each event of interest, for people
    Human,
}

/// The event that is written at every level but off.
pub(crate) const SUMMARY: &str = "summary";

/// Logs to `file`, or else to standard error, as long as the result lives; `None` if nothing is logged. A
/// client that does not read standard error must not block the guard, so lines wait, and are lost where too many do.
pub(crate) fn start(log: Log, file: Option<&Path>) -> anyhow::Result<Option<Written>> {
    let level = match log {
        Log::Off => return Ok(None),
        Log::Warn => Level::WARN,
        Log::Info | Log::Human => Level::INFO,
    };
    let colors = file.is_none() && io::stderr().is_terminal() && {
        anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
    };
    let file = file.map(|file| {
        let open = Folder::of(file).and_then(|(folder, name)| {
            folder.open_file(&name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
        });
        open.with_context(|| format!("cannot log to {}", file.display()))
    });
    let (out, written) = match file.transpose()? {
        Some(file) => writer::start(file),
        None => writer::start(io::stderr()),
    }
    .context("cannot log")?;
    // The summary is no warning, and is written at every level.
    let wanted = filter_fn(move |event| *event.level() <= level || event.name() == SUMMARY)
        .with_max_level_hint(LevelFilter::INFO);
    let keep = |line: &str| recent::keep(&without(line));
    let recent = HumanLines { say: keep, colors: false };
    let registry = tracing_subscriber::registry().with(wanted).with(recent);
    let started = match log {
        Log::Human => {
            let say = move |line: &str| out.send(without(line).as_bytes());
            registry.with(HumanLines { say, colors }).try_init()
        }
        _ => registry.with(JsonLines::new(Without(out))).try_init(),
    };
    started.context("cannot log")?;
    Ok(Some(written))
}
