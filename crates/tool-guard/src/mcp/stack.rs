//! The reliability stack around the server.
use super::{effects::Effects, tool::ServerTool};
use anyhow::Context as _;
use std::{fs, path::Path};
use tool_reliability::{
    Guarded, ToolStack,
    idempotency::{DerivedKeys, Settlement},
    loopguard::Signals,
    timeout::AttemptTimeoutBuilder,
};
use tr_core::{Id, Ran, ToolOutcome, catalog::ToolCatalog};

pub(crate) type Settle = Box<dyn Fn(Id, &ToolOutcome) + Send>;

/// The stack around `tool`, and what settles a record whose call was given up.
pub(crate) fn guard(
    tool: ServerTool,
    keys: DerivedKeys,
    signals: Option<Signals>,
) -> anyhow::Result<(Guarded<ServerTool>, Settle)> {
    // The tool bounds its attempts itself, since progress prolongs them.
    let stack = ToolStack::builder()
        .attempt_timeout(AttemptTimeoutBuilder::only_as_requested)
        .idempotency(|idempotency| idempotency.derived_keys(keys))
        .loop_guard(|guard| guard.signals(signals))
        .build()?;
    let records = stack.records();
    let settle = move |id: Id, outcome: &ToolOutcome| {
        let did_not_run = outcome.error().is_some_and(|error| error.ran == Ran::No);
        let how =
            if did_not_run { Settlement::DidNotRun } else { Settlement::Done(outcome.clone()) };
        // A record that is settled already, or gone, needs nothing.
        let _ = records.settle(&id.key, how);
    };
    Ok((stack.service(tool), Box::new(settle)))
}

/// Reads what the user says of the server's tools.
pub(crate) fn read_catalog(path: &Path) -> anyhow::Result<ToolCatalog> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let read = if is_json { ToolCatalog::from_json(&text) } else { ToolCatalog::from_toml(&text) };
    read.with_context(|| format!("{} cannot be used", path.display()))
}

/// Takes over what the user declares of the server's tools.
pub(crate) fn declare(effects: &mut Effects, path: &Path) -> anyhow::Result<()> {
    read_catalog(path)?.iter().for_each(|manifest| effects.declare(manifest.clone()));
    Ok(())
}
