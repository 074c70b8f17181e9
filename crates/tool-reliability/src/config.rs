//! A stack built from a configuration, which can be reloaded while calls run.
//!
//! # When to use
//!
//! When operators configure the stack, in TOML, JSON or the environment: [`Config`] lists the
//! settings.
//!
//! # Example
//!
//! ```
//! use tool_reliability::config::{Config, Live};
//! use tower::{ServiceExt, service_fn};
//! use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BoxError> {
//! let config = Config::from_json(r#"{
//!     "rollout": {"mode": "shadow"},
//!     "tools": {"search": {"effect": "read_only"}}
//! }"#)?;
//! let live = Live::new(config, |builder| builder)?;
//! let search = live.stack().service(service_fn(|_: ToolCall| async {
//!     Ok::<_, BoxError>(ToolOutcome::default())
//! }));
//! search.oneshot(ToolCall::new("search", Params::empty_object())).await?;
//!
//! // Later: what is said of tools and which calls are guarded holds from the next call on.
//! let reloaded = live.reload(Config::from_json(r#"{"retry": {"attempts": 2}}"#)?)?;
//! assert_eq!(reloaded.needs_restart, ["retry"]);
//! # Ok(()) }
//! ```
//!
//! # What changes at once, and what needs a restart
//!
//! | | |
//! |---|---|
//! | `rollout` | at once, for calls that are made from then on |
//! | `tools`, `defaults`, `undeclared_effect` | at once, for calls that are made from then on, unless they bring a manifest (`undeclared_effect` for those that pass [`ToolCatalog::manifested`]); a breaker that exists keeps the limits that it was made with, and takes a new `state` |
//! | `identity`, `upstream` | nothing: they are for `tool-guard`, which reads them at its start |
//! | all else | with the next start: breakers, records and turns would be lost with the layers that hold them |

mod apply;
mod open;
mod telemetry;

use self::open::Stores;
pub use self::{open::OpenError, telemetry::telemetry};
use crate::{Builder, ConfigError, ToolStack};
use std::{env, mem, sync::Arc};
pub use tr_config::{
    BreakerConfig, BudgetConfig, CatalogError, Config, IdempotencyConfig, IdentityConfig, Language,
    LoopConfig, Mistake, PREFIX, Preset, RecordBodies, RecordPlace, RecordsConfig, RetryOptIn,
    RetrySettings, SessionPlace, SessionsConfig, SlowCalls, StatusMeaning, StoreFailures,
    TelemetryConfig, ToolCatalog, UpstreamConfig,
};
use tr_core::debug_parts;
pub use tr_core::internal::at_home;

/// The variables of this process that are settings, for [`Config::from_text`].
pub fn variables() -> impl Iterator<Item = (String, String)> {
    env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    })
}

/// A stack with a configuration that can be reloaded. A clone is another handle of the same.
#[derive(Clone)]
pub struct Live(Arc<Running>);

struct Running {
    stack: ToolStack,
    /// The configuration that it was started with.
    started: Config,
    warnings: Vec<String>,
}

/// The result of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// The changed sections that need a restart.
    pub needs_restart: Vec<&'static str>,
}

impl Live {
    /// Builds a stack from `config`; `change` then adds hooks, stores and exporters. The stores that the
    /// configuration names are not opened: see [`open`](Self::open).
    ///
    /// # Errors
    /// If any layer's settings are out of range; the faults of all layers are named at once.
    pub fn new(
        config: Config,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, ConfigError> {
        Self::build(config, Vec::new(), change)
    }

    /// Like [`new`](Self::new), with the stores that the configuration names: `records` (`where`,
    /// `key_file`, `bodies`, `name`) and `sessions.where`. Records that no configuration places stay in
    /// memory. `change` comes after them.
    ///
    /// ```
    /// use tool_reliability::config::{Config, Live, OpenError};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), OpenError> {
    /// let config = Config::from_json(r#"{"records": {"where": "memory"}}"#).expect("it is good");
    /// let live = Live::open(config, |builder| builder).await?;
    /// assert!(live.stack().records().in_store().is_none());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If a store cannot be opened, the build lacks its feature, or a layer's settings are out of range.
    pub async fn open(
        config: Config,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, OpenError> {
        let mut stores = Stores::open(&config).await?;
        let warnings = mem::take(&mut stores.warnings);
        let said = config.clone();
        let live = Self::build(config, warnings, |builder| change(stores.keep(&said, builder)))?;
        if let Some(records) = live.stack().records().in_store()
            && let Err(error) = records.check_key().await
        {
            return Err(OpenError::Store { key: "records.key_file", why: error.to_string() });
        }
        Ok(live)
    }

    /// What the stores that were [opened](Self::open) may lose, such as records on a restart of Redis.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    fn build(
        config: Config,
        warnings: Vec<String>,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, ConfigError> {
        let stack = change(ToolStack::builder().config(&config)).build()?;
        Ok(Self(Arc::new(Running { stack, started: config, warnings })))
    }

    /// The stack.
    #[must_use]
    pub fn stack(&self) -> &ToolStack {
        &self.0.stack
    }

    /// The current declarations of tools. A clone is a reference count.
    #[must_use]
    pub fn catalog(&self) -> ToolCatalog {
        self.0.stack.shared.tools()
    }

    /// Applies the settings of a new configuration that can change at run time, and returns those that
    /// need a restart. Running calls end with the settings that they began with.
    ///
    /// # Errors
    /// If a stack could not be built by it. Nothing has changed then.
    pub fn reload(&self, config: Config) -> Result<Reloaded, ConfigError> {
        ToolStack::builder().config(&config).build()?;
        let differing = self.0.started.differing(&config);
        let needs_restart = differing.filter(|section| *section != "rollout").collect();
        let old = self.0.stack.shared.declare(config.catalog.clone());
        self.order(&old, &config.catalog);
        let rollout = config.rollout.unwrap_or_default();
        self.0.stack.kill_switch().set_rollout(rollout);
        Ok(Reloaded { needs_restart })
    }

    /// Gives the breakers that exist the states that the new declarations of their tools say, where
    /// those differ from the old.
    fn order(&self, old: &ToolCatalog, new: &ToolCatalog) {
        let order = |catalog: &ToolCatalog, tool| catalog.get(tool).and_then(|m| m.breaker.order);
        for manifest in old.iter().chain(new.iter()) {
            let tool = &manifest.tool;
            let (before, now) = (order(old, tool), order(new, tool));
            if before != now
                && let Some(breaker) = self.0.stack.breakers().get(tool.key())
            {
                breaker.order(now);
            }
        }
    }
}

debug_parts! { Live, |it| started = it.0.started }
