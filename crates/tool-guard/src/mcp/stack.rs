//! The reliability stack around the server.
use super::tool::ServerTool;
use anyhow::Context as _;
use std::{fs, path::Path};
use tool_reliability::{
    Guarded,
    config::{Config, Live},
    idempotency::{DerivedKeys, Settlement},
    loopguard::Signals,
    timeout::AttemptTimeoutBuilder,
};
use tr_core::{Id, Ran, ToolOutcome, catalog::ToolCatalog};

pub(crate) type Settle = Box<dyn Fn(Id, &ToolOutcome) + Send>;

/// The stack as `config` has it, but for what the proxy decides itself.
pub(crate) fn live(
    config: Config,
    keys: DerivedKeys,
    signals: Option<Signals>,
) -> anyhow::Result<Live> {
    let live = Live::new(config, |builder| {
        builder
            // The tool bounds its attempts itself, since progress prolongs them.
            .attempt_timeout(AttemptTimeoutBuilder::only_as_requested)
            .idempotency(|idempotency| idempotency.derived_keys(keys))
            .loop_guard(|guard| guard.signals(signals))
    });
    Ok(live?)
}

/// The stack around `tool`, and what settles a record whose call was given up.
pub(crate) fn guard(live: &Live, tool: ServerTool) -> (Guarded<ServerTool>, Settle) {
    let records = live.stack().records();
    let settle = move |id: Id, outcome: &ToolOutcome| {
        let did_not_run = outcome.error().is_some_and(|error| error.ran == Ran::No);
        let how =
            if did_not_run { Settlement::DidNotRun } else { Settlement::Done(outcome.clone()) };
        // A record that is settled already, or gone, needs nothing.
        let _ = records.settle(&id.key, how);
    };
    (live.stack().service(tool), Box::new(settle))
}

/// Reads what the user says of the server's tools.
pub(crate) fn read_catalog(path: &Path) -> anyhow::Result<ToolCatalog> {
    let (text, is_json) = read(path)?;
    let read = if is_json { ToolCatalog::from_json(&text) } else { ToolCatalog::from_toml(&text) };
    read.with_context(|| format!("{} cannot be used", path.display()))
}

/// Reads how the user sets up the stack: a file, if there is one, with these variables over it.
pub(crate) fn read_config(
    path: Option<&Path>,
    vars: impl IntoIterator<Item = (String, String)>,
) -> anyhow::Result<Config> {
    let Some(path) = path else {
        return Config::from_json_with("{}", vars).context("the environment cannot be used");
    };
    let (text, is_json) = read(path)?;
    let read = match is_json {
        true => Config::from_json_with(&text, vars),
        false => Config::from_toml_with(&text, vars),
    };
    read.with_context(|| format!("{} cannot be used", path.display()))
}

/// The text of a file, and whether it is JSON.
fn read(path: &Path) -> anyhow::Result<(String, bool)> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    Ok((text, is_json))
}
