//! Reads the guard's setup from options, variables and files, and reads the files again.
use super::{
    effects::Declared,
    options::{Loops, Mode, signals},
    records::UNKNOWN,
    stores::Records,
};
use anyhow::Context as _;
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tool_reliability::{
    Builder, Environment,
    config::{Config, IdempotencyConfig, Live, Reloaded, variables},
    idempotency::{self, DerivedKeys},
    loopguard,
    telemetry::{Signals, TARGET},
    timeout::AttemptTimeoutBuilder,
};
use tr_config::{CatalogError, Language, ToolCatalog};
use tr_core::ToolManifest;

/// The files with the guard's setup.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    config: Option<PathBuf>,
    catalog: Option<PathBuf>,
    mode: Mode,
}

/// The setup of the files and the environment.
pub(crate) struct Setup {
    pub(crate) config: Config,
    declared: ToolCatalog,
}

/// The text of a configuration, and its language; without a file an empty one.
pub(crate) fn source(file: Option<&Path>) -> anyhow::Result<(String, Language)> {
    let Some(file) = file else { return Ok(("{}".into(), Language::Json)) };
    read(file)
}

/// Where a setup with this file comes from.
pub(crate) fn name_of(file: Option<&Path>) -> String {
    file.map_or_else(|| "the environment".into(), |file| file.display().to_string())
}

impl Files {
    /// For a guard in this mode, which overrides the configured rollout if it changes no call.
    pub(crate) fn new(config: Option<&Path>, catalog: Option<&Path>, mode: Mode) -> Self {
        Self { config: config.map(Path::to_owned), catalog: catalog.map(Path::to_owned), mode }
    }

    /// Reads them.
    ///
    /// # Errors
    /// Reports all mistakes of the files and of the environment.
    pub(crate) fn read(&self) -> Result<Setup, String> {
        let mut faults = Environment::faults(|name| env::var(name).ok());
        let config = read_config(self.config.as_deref(), variables());
        let declared = self.catalog.as_deref().map(read_catalog).transpose();
        let config = read_or_say(config, &mut faults);
        let declared = read_or_say(declared, &mut faults);
        match (config, declared) {
            (Some(mut config), Some(declared)) if faults.is_empty() => {
                if let Some(rollout) = self.mode.rollout() {
                    config.rollout = Some(rollout);
                }
                let setup = Setup { config, declared: declared.unwrap_or_default() };
                setup.warn_of_schemas();
                Ok(setup)
            }
            _ => Err(faults.join("\n")),
        }
    }

    /// The file, or the environment, with a configuration's mistake.
    pub(crate) fn said_in(&self) -> String {
        name_of(self.config.as_deref())
    }

    /// Reads them again, and applies to the stack what can be reloaded.
    ///
    /// # Errors
    /// Reports all mistakes; nothing has changed then.
    pub(crate) fn read_again(&self, live: &Live, declared: &Declared) -> Result<Reloaded, String> {
        let setup = self.read()?;
        let reloaded = live.reload(setup.config.clone()).map_err(|error| error.to_string())?;
        setup.declare(declared);
        Ok(reloaded)
    }
}

impl Setup {
    /// Warns of schemas that refuse no arguments.
    fn warn_of_schemas(&self) {
        for tool in self.config.catalog.iter().chain(self.declared.iter()) {
            if let Some(Ok(schema)) = tool.schema()
                && let Some(why) = schema.unapplied()
            {
                let tool = tool.tool.label();
                tracing::warn!(target: TARGET, event = "schema_not_applied", tool, why);
            }
        }
    }

    /// Warns of keys of the server's, for commands that change no arguments.
    pub(crate) fn warn_of_server_keys(&self) {
        for tool in self.config.catalog.iter().chain(self.declared.iter()) {
            if tool.server_key.is_some() {
                let tool = tool.tool.label();
                tracing::warn!(target: TARGET, event = "server_key_not_applied", tool, why = "only tool-guard mcp changes arguments");
            }
        }
    }

    /// Declares the tools to the stack: the catalog overrides the configuration.
    pub(crate) fn declare(&self, declared: &Declared) {
        let undeclared = self.declared.said_of_undeclared();
        let undeclared = undeclared.unwrap_or_else(|| self.config.catalog.undeclared_effect());
        declared.replace(self.config.catalog.iter().chain(self.declared.iter()), undeclared);
    }

    /// All declarations of tools in one catalog: the catalog overrides the configuration.
    ///
    /// # Errors
    /// If both together declare more tools than a catalog can hold.
    pub(crate) fn catalog(&self) -> Result<ToolCatalog, CatalogError> {
        let all = self.config.catalog.iter().chain(self.declared.iter());
        let tools: BTreeMap<_, _> = all.map(|tool| (tool.tool.name(), tool)).collect();
        let catalog = ToolCatalog::new(tools.into_values().map(|tool| ToolManifest::clone(tool)))?;
        let undeclared = self.declared.said_of_undeclared();
        let undeclared = undeclared.or_else(|| self.config.catalog.said_of_undeclared());
        Ok(match undeclared {
            Some(effect) => catalog.with_undeclared_effect(effect),
            None => catalog,
        })
    }

    /// The mode of the loop guard: an option overrides the configuration.
    pub(crate) fn loops(&self, option: Option<Loops>) -> loopguard::Mode {
        option.map(Into::into).or(self.config.loops.mode).unwrap_or_default()
    }

    /// Whether the loop guard, which writes that log, is on.
    pub(crate) fn guards_loops(&self, loops: loopguard::Mode) -> bool {
        self.config.loops.enabled != Some(false) && loops != loopguard::Mode::Off
    }
}

/// What was read, or its error among the others.
fn read_or_say<T>(read: anyhow::Result<T>, faults: &mut Vec<String>) -> Option<T> {
    read.map_err(|error| faults.push(format!("{error:#}"))).ok()
}

/// A failure of a call that did not run releases the call's id: its reason (a server that has ended) may be
/// gone when the next guard asks. A failure of a mutating call that ran is kept as long as a success,
/// whatever this value.
const FREED: Duration = Duration::ZERO;

/// The lease of a killed guard's claims if its end cannot be observed (Redis): clients give up at 60 s.
const LEASE: Duration = Duration::from_secs(30);

/// Sets the times to live of records: those of this configuration, else those of the guard.
pub(crate) fn timed(
    layer: idempotency::Builder,
    config: &IdempotencyConfig,
) -> idempotency::Builder {
    layer
        .unknown_ttl(config.unknown_ttl.unwrap_or(UNKNOWN))
        .failed_ttl(config.failed_ttl.unwrap_or(FREED))
        .inflight_ttl(config.inflight_ttl.unwrap_or(LEASE))
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
    let signals = signals(loops, config.loops.signals.clone());
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

/// Reads the user's catalog of the server's tools.
pub(crate) fn read_catalog(path: &Path) -> anyhow::Result<ToolCatalog> {
    let (text, language) = read(path)?;
    let read = ToolCatalog::from_text(&text, language);
    read.with_context(|| format!("{} cannot be used", path.display()))
}

/// Reads the user's configuration of the stack: a file, if there is one, overridden by these variables.
pub(crate) fn read_config(
    path: Option<&Path>,
    vars: impl IntoIterator<Item = (String, String)>,
) -> anyhow::Result<Config> {
    let (text, language) = source(path)?;
    let read = Config::from_text(&text, language, vars);
    read.with_context(|| format!("{} cannot be used", name_of(path)))
}

/// The text of a file, and its language.
fn read(path: &Path) -> anyhow::Result<(String, Language)> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    Ok((text, if is_json { Language::Json } else { Language::Toml }))
}

/// Reads `files` again, if there are any, and logs the result.
pub(crate) fn reload(files: Files, live: Live, declared: Declared) -> Option<impl Fn()> {
    let is_any = files.config.is_some() || files.catalog.is_some();
    is_any.then_some(move || match files.read_again(&live, &declared) {
        Ok(reloaded) => {
            let needs_restart = reloaded.needs_restart.join(" ");
            tracing::warn!(target: TARGET, event = "config_reloaded", needs_restart);
        }
        Err(error) => tracing::warn!(target: TARGET, event = "config_not_reloaded", error),
    })
}
