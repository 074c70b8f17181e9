//! Writes events, as JSON lines or as lines for people.
mod human;
mod recent;

pub(crate) use self::recent::recent;

use self::{human::HumanLines, recent::Recent};
use crate::{files::Folder, secrets::Without};
use anyhow::Context as _;
use clap::ValueEnum;
use rustix::fs::OFlags;
use std::{
    io::{self, IsTerminal as _},
    path::Path,
};
use tool_reliability::telemetry::JsonLines;
use tracing::{Level, level_filters::LevelFilter};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{filter::filter_fn, prelude::*};

/// How many lines wait to be written. The queue is allocated at the start: that of the crate's default
/// (128,000) takes 4 MB and longer than the rest of the start.
const WAITING: usize = 2_048;

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
/// client that does not read standard error must not block the guard, so lines wait in a queue, and are
/// lost when it is full.
pub(crate) fn start(log: Log, file: Option<&Path>) -> anyhow::Result<Option<WorkerGuard>> {
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
    let lossy = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(WAITING);
    let (out, worker) = match file.transpose()? {
        Some(file) => lossy.finish(file),
        None => lossy.finish(io::stderr()),
    };
    // The summary is no warning, and is written at every level.
    let wanted = filter_fn(move |event| *event.level() <= level || event.name() == SUMMARY)
        .with_max_level_hint(LevelFilter::INFO);
    let recent = HumanLines::new(Without(Recent), false);
    let registry = tracing_subscriber::registry().with(wanted).with(recent);
    let started = match log {
        Log::Human => registry.with(HumanLines::new(Without(out), colors)).try_init(),
        _ => registry.with(JsonLines::new(Without(out))).try_init(),
    };
    started.context("cannot log")?;
    Ok(Some(worker))
}
