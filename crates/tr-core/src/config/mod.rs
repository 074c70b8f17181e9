//! How a stack is set up, read from a file and from the environment.
//!
//! # When to use
//!
//! To configure a stack outside of the program: `tool_reliability::Live` builds one from a
//! configuration, and applies a new one while calls are running. Hooks, stores and exporters are set
//! through the builder.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "catalog")] {
//! use tr_core::config::Config;
//!
//! let config = Config::from_toml(r#"
//!     [rollout]
//!     mode = "shadow"
//!     read_only = "enforce"
//!     mutating = { mode = "enforce", percent = 10, others = "shadow" }
//!
//!     [retry]
//!     attempts = 3
//!
//!     [breaker]
//!     cooldown_ms = 5_000
//!
//!     [tools.flight_search]
//!     effect = "read_only"
//!     timeout_ms = 3_000
//! "#)?;
//! assert_eq!(config.breaker.cooldown_ms, Some(5_000));
//! assert_eq!(config.catalog.len(), 1);
//!
//! // A variable beats what the file says of its setting.
//! let vars = [("TOOL_RELIABILITY__BREAKER__COOLDOWN_MS", "9000")];
//! let config = Config::from_toml_with("[breaker]\nwindow = 30\ncooldown_ms = 5", vars)?;
//! assert_eq!((config.breaker.window, config.breaker.cooldown_ms), (Some(30), Some(9_000)));
//! # }
//! # Ok::<_, tr_core::catalog::CatalogError>(())
//! ```
//!
//! # The form
//!
//! `defaults`, `tools` and `undeclared_effect` are those of a [catalogue](crate::catalog): what is
//! known of each tool, and beats what is said for all. JSON has the same form as TOML, which needs
//! the feature `catalog`. The form's schema is `schemas/stack-config.schema.json`.
//!
//! # Variables
//!
//! Those whose names begin with [`PREFIX`] are settings; the others are not looked at. What follows
//! is the setting's place, its parts joined by two underscores, in any case:
//! `TOOL_RELIABILITY__BREAKER__COOLDOWN_MS=5000`, `TOOL_RELIABILITY__TOOLS__SEARCH__TIMEOUT_MS=900`.
//! A part that the file has in other letters is meant as the file has it; else it is in small
//! letters. Values are JSON where they can be (`5000`, `true`, `[0.5, 1]`), else text (`shadow`).
//!
//! # Errors
//!
//! [`CatalogError`] names every mistake at once, with its line, or its variable.
mod form;
mod vars;

#[cfg(feature = "schema")]
pub(crate) use self::form::ConfigForm;
pub use self::form::{
    BreakerConfig, BreakerMode, BreakerRules, Conflicts, DeriveKeys, IdempotencyConfig,
    IdentityConfig, LoopConfig, LoopMode, RecordBodies, RecordsConfig, RetryOptIn,
};
pub use self::vars::PREFIX;

#[cfg(not(feature = "schema"))]
use self::form::ConfigForm;
use self::{
    form::{RolloutForm, stage},
    vars::{File, over},
};
#[cfg(feature = "catalog")]
use crate::catalog::read::toml_text;
use crate::{
    Effect, RetryOverride,
    catalog::{CatalogError, ToolCatalog, build, form::Catalog, read},
    rollout::Rollout,
    wire::{
        fault::Faults,
        read::{Strictness, text},
    },
};
use std::time::Duration;

const WHAT: &str = "the configuration";

/// How a stack is set up. What is `None` stays as the stack has it. Fields are added in minor
/// versions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Config {
    /// Which calls are guarded.
    pub rollout: Option<Rollout>,
    /// Whether tools' failures are put into the contract's words, and their answers looked into for
    /// failures.
    pub normalise: Option<bool>,
    /// How long one attempt may take where its tool says nothing.
    pub attempt_timeout: Option<Duration>,
    /// How long a call that brings no deadline may take.
    pub deadline: Option<Duration>,
    /// Changes to the retry policy.
    pub retry: Option<RetryOverride>,
    /// Who has to ask for retries.
    pub retry_opt_in: RetryOptIn,
    /// Changes to all breakers.
    pub breaker: BreakerConfig,
    /// Changes to how repeats are recognised.
    pub idempotency: IdempotencyConfig,
    /// Changes to the loop guard.
    pub loops: LoopConfig,
    /// Where `tool-guard` records calls.
    pub records: RecordsConfig,
    /// By which members of `_meta` `tool-guard mcp` recognises calls, with the operator's names.
    pub identity: Vec<(Box<str>, IdentityConfig)>,
    /// What is known of single tools.
    pub catalog: ToolCatalog,
}

impl Config {
    /// Reads a configuration in JSON.
    ///
    /// # Errors
    /// Names every mistake with its line.
    pub fn from_json(json: &str) -> Result<Self, CatalogError> {
        Self::from_json_with(json, NOTHING)
    }

    /// Reads a configuration in JSON with variables over it.
    ///
    /// # Errors
    /// Names every mistake with its line or its variable.
    pub fn from_json_with<N, V>(
        json: &str,
        vars: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, CatalogError>
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let mut faults = Faults::of_configuration(json);
        let form = text::<ConfigForm>(json, Strictness::Canonical, &mut faults);
        over(File { form, faults, text: json }, || serde_json::from_str(json).ok(), vars)
    }

    /// Reads a configuration in TOML.
    ///
    /// # Errors
    /// Names every mistake with its line.
    #[cfg(feature = "catalog")]
    pub fn from_toml(toml: &str) -> Result<Self, CatalogError> {
        Self::from_toml_with(toml, NOTHING)
    }

    /// Reads a configuration in TOML with variables over it.
    ///
    /// # Errors
    /// Names every mistake with its line or its variable.
    #[cfg(feature = "catalog")]
    pub fn from_toml_with<N, V>(
        toml: &str,
        vars: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, CatalogError>
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let mut faults = Faults::of_configuration(toml);
        let form = toml_text::<ConfigForm>(toml, &mut faults);
        over(File { form, faults, text: toml }, || toml::from_str(toml).ok(), vars)
    }
}

/// No variables.
const NOTHING: [(&str, &str); 0] = [];

/// The configuration, if there is no fault in it.
fn finish(form: Option<ConfigForm>, faults: &mut Faults) -> Option<Config> {
    let form = form?;
    let catalog = Catalog {
        undeclared_effect: form.undeclared_effect,
        defaults: form.defaults,
        tools: form.tools,
    };
    let identities = form.identity.into_iter().flatten();
    let config = Config {
        rollout: form.rollout.map(rollout),
        normalise: form.normalise,
        attempt_timeout: form.attempt_timeout_ms.map(Duration::from_millis),
        deadline: form.deadline_ms.map(Duration::from_millis),
        retry: build::retry(form.retry, (None, None, None), faults),
        retry_opt_in: form.retry_opt_in.unwrap_or_default(),
        breaker: form.breaker.unwrap_or_default(),
        idempotency: form.idempotency.unwrap_or_default(),
        loops: form.loops.unwrap_or_default(),
        records: form.records.unwrap_or_default(),
        identity: identities.filter_map(|(name, rule)| Some((name, rule?))).collect(),
        catalog: read::build(catalog, faults),
    };
    faults.is_empty().then_some(config)
}

fn rollout(form: RolloutForm) -> Rollout {
    let effects = [
        (Effect::ReadOnly, form.read_only),
        (Effect::Idempotent, form.idempotent),
        (Effect::Mutating, form.mutating),
    ];
    let mut rollout = Rollout::new(stage(form.mode, form.percent, form.others));
    for (effect, stage) in effects {
        if let Some(stage) = stage {
            rollout = rollout.effect(effect, stage);
        }
    }
    for (tool, stage) in form.tools.into_iter().flatten() {
        if let Some(stage) = stage {
            rollout = rollout.tool(tool, stage);
        }
    }
    rollout
}
