//! The reliability stack around the server.
use super::{options::signals, records::UNKNOWN, stores::Records};
use anyhow::Context as _;
use std::{fs, path::Path, time::Duration};
use tool_reliability::{
    Builder,
    config::{Config, IdempotencyConfig, Live},
    idempotency::{self, DerivedKeys},
    loopguard,
    telemetry::Signals,
    timeout::AttemptTimeoutBuilder,
};
use tr_config::ToolCatalog;

/// A failure of a call that did not run releases the call's id: its reason (a server that has ended) may be
/// gone when the next guard asks. A failure of a mutating call that ran is kept as long as a success,
/// whatever this value.
const FREED: Duration = Duration::ZERO;

/// The lease of a killed guard's claims if its end cannot be observed (Redis): clients give up at 60 s.
const LEASE: Duration = Duration::from_secs(30);

/// Sets the times to live of records that this configuration does not.
pub(crate) fn timed(
    mut layer: idempotency::Builder,
    config: &IdempotencyConfig,
) -> idempotency::Builder {
    if config.unknown_ttl_ms.is_none() {
        layer = layer.unknown_ttl(UNKNOWN);
    }
    if config.failed_ttl_ms.is_none() {
        layer = layer.failed_ttl(FREED);
    }
    if config.inflight_ttl_ms.is_none() {
        layer = layer.inflight_ttl(LEASE);
    }
    layer
}

/// The stack of `config`, without the parts that the proxy decides itself.
pub(crate) fn live(
    mut config: Config,
    keys: DerivedKeys,
    loops: loopguard::Mode,
    records: Records,
    told: &Signals,
    watch: impl FnOnce(Builder) -> Builder,
) -> anyhow::Result<Live> {
    let configured = config.idempotency.clone();
    let signals = signals(loops, config.loops.signals.as_ref());
    // The guard sees no transcript.
    config.sessions = None;
    let live = Live::new(config, |builder| {
        watch(builder)
            // The tool bounds its attempts itself, since progress prolongs them.
            .attempt_timeout(AttemptTimeoutBuilder::only_as_requested)
            .idempotency(|layer| records.keep(timed(layer.derived_keys(keys), &configured)))
            .loop_guard(|guard| guard.mode(loops).signals(signals))
            // MCP marks a failure by `isError`; other members are the server's answer.
            .silent_failures(false)
            .telemetry(told.clone())
    });
    Ok(live?)
}

/// Reads the user's catalogue of the server's tools.
pub(crate) fn read_catalog(path: &Path) -> anyhow::Result<ToolCatalog> {
    let (text, is_json) = read(path)?;
    let read = if is_json { ToolCatalog::from_json(&text) } else { ToolCatalog::from_toml(&text) };
    read.with_context(|| format!("{} cannot be used", path.display()))
}

/// Reads the user's configuration of the stack: a file, if there is one, overridden by these variables.
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
pub(super) fn read(path: &Path) -> anyhow::Result<(String, bool)> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    Ok((text, is_json))
}
