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
//! let call = live.catalog().manifested(ToolCall::new("search", Params::empty_object()));
//! search.oneshot(call).await?;
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
//! | `tools`, `defaults`, `undeclared_effect` | at once, for calls that get their manifest from then on; a breaker that exists keeps the limits that it was made with |
//! | `records`, `identity` | nothing: they are for `tool-guard`, which reads them at its start |
//! | all else | with the next start: breakers, records and turns would be lost with the layers that hold them |
use crate::{Builder, ConfigError, ToolStack, breaker, idempotency, loopguard, retry::RetryConfig};
use std::{
    env, fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
pub use tr_config::{
    BreakerConfig, BreakerMode, BreakerRules, CatalogError, Config, Conflicts, DeriveKeys,
    IdempotencyConfig, IdentityConfig, LoopConfig, LoopMode, Mistake, PREFIX, RecordBodies,
    RecordPlace, RecordsConfig, RetryOptIn, ToolCatalog,
};
use tr_core::{Effect, manifest::BreakerOverride};

impl Builder {
    /// Applies a configuration, except for its tools: those apply through the calls
    /// ([`ToolCatalog::manifested`]) or [`Live`].
    pub fn config(mut self, config: &Config) -> Self {
        if let Some(rollout) = &config.rollout {
            self = self.rollout(rollout.clone());
        }
        if let Some(normalise) = config.normalise {
            self = self.normalise(normalise);
        }
        if let Some(timeout) = config.attempt_timeout {
            self = self.attempt_timeout(|attempt| attempt.after(timeout));
        }
        if let Some(deadline) = config.deadline {
            self = self.deadline(deadline);
        }
        if let Some(changes) = &config.retry {
            let mut retry_config = RetryConfig::default();
            retry_config.apply(changes);
            self = self.retry(|retry| retry.config(retry_config));
        }
        if config.retry_opt_in.calls == Some(true) {
            self = self.retry(tr_retry::Builder::opt_in);
        }
        if let Some(agents) = &config.retry_opt_in.agents {
            self = self.retry(|retry| retry.opt_in_agents(agents.iter().cloned()));
        }
        self.breaker(|builder| breakers(builder, &config.breaker))
            .idempotency(|builder| records(builder, &config.idempotency))
            .loop_guard(|builder| loops(builder, &config.loops))
    }
}

/// The variables of this process that are settings, for [`Config::from_json_with`] and its like.
pub fn variables() -> impl Iterator<Item = (String, String)> {
    env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.to_string_lossy().into_owned()))
    })
}

/// Sets what is said.
macro_rules! set {
    ($builder:ident, $($name:ident = $value:expr),* $(,)?) => {{
        let mut builder = $builder;
        $(
            if let Some(value) = $value {
                builder = builder.$name(value);
            }
        )*
        builder
    }};
}

fn breakers(builder: breaker::Builder, config: &BreakerConfig) -> breaker::Builder {
    let effects = [
        (Effect::ReadOnly, &config.read_only),
        (Effect::Idempotent, &config.idempotent),
        (Effect::Mutating, &config.mutating),
    ];
    let builder = effects.into_iter().fold(builder, |builder, (effect, rules)| match rules {
        Some(rules) => builder.for_effect(effect, change(rules)),
        None => builder,
    });
    set!(
        builder,
        consecutive_failures = config.consecutive,
        failure_rate = config.failure_rate,
        window = config.window,
        min_calls = config.min_calls,
        rolling = config.rolling_ms.map(Duration::from_millis),
        cooldown = config.cooldown_ms.map(Duration::from_millis),
        max_probes = config.max_probes,
        successes_to_close = config.successes_to_close,
        count_rate_limits = config.count_rate_limits,
        mode = config.mode.map(|mode| match mode {
            BreakerMode::Enforce => breaker::Mode::Enforce,
            BreakerMode::Shadow => breaker::Mode::Shadow,
            BreakerMode::Disabled => breaker::Mode::Disabled,
        }),
        forced_open = config.forced_open,
        capacity = config.capacity.map(|breakers| breakers as usize),
    )
}

fn change(rules: &BreakerRules) -> BreakerOverride {
    let mut change = BreakerOverride::default();
    change.consecutive = rules.consecutive;
    change.failure_rate = rules.failure_rate;
    change.cooldown = rules.cooldown_ms.map(Duration::from_millis);
    change
}

fn records(builder: idempotency::Builder, config: &IdempotencyConfig) -> idempotency::Builder {
    set!(
        builder,
        derived_keys = config.derived_keys.map(|from| match from {
            DeriveKeys::Off => idempotency::DerivedKeys::Off,
            DeriveKeys::CutOff => idempotency::DerivedKeys::CutOff,
            DeriveKeys::Step => idempotency::DerivedKeys::Step,
            DeriveKeys::Session => idempotency::DerivedKeys::Session,
        }),
        conflicts = config.conflicts.map(|policy| match policy {
            Conflicts::Reject => idempotency::ConflictPolicy::Reject,
            Conflicts::Independent => idempotency::ConflictPolicy::Independent,
        }),
        capacity = config.capacity.map(|records| records as usize),
        max_waiters = config.max_waiters.map(|waiters| waiters as usize),
        max_wait = config.max_wait_ms.map(Duration::from_millis),
        max_record_bytes = config.max_record_bytes.map(|bytes| bytes as usize),
        max_kept_bytes = config.max_kept_bytes.map(|bytes| bytes as usize),
        done_ttl = config.done_ttl_ms.map(Duration::from_millis),
        failed_ttl = config.failed_ttl_ms.map(Duration::from_millis),
        inflight_ttl = config.inflight_ttl_ms.map(Duration::from_millis),
        unknown_ttl = config.unknown_ttl_ms.map(Duration::from_millis),
        cut_off_grace = config.cut_off_grace_ms.map(Duration::from_millis),
    )
}

fn loops(builder: loopguard::Builder, config: &LoopConfig) -> loopguard::Builder {
    set!(
        builder,
        enabled = config.enabled,
        mode = config.mode.map(|mode| match mode {
            LoopMode::Off => loopguard::Mode::Off,
            LoopMode::Note => loopguard::Mode::Note,
            LoopMode::Block => loopguard::Mode::Block,
            LoopMode::Strict => loopguard::Mode::Strict,
        }),
        signals = config.signals.map(|on| on.then(loopguard::Signals::default)),
        max_identical_failures = config.max_identical,
        max_failures_per_turn = config.max_failures_per_turn,
        memory = config.memory_ms.map(Duration::from_millis),
        log_path = config.log_path.as_deref(),
    )
}

/// A stack with a configuration that can be reloaded. A clone is another handle of the same.
#[derive(Clone)]
pub struct Live(Arc<Running>);

struct Running {
    stack: ToolStack,
    /// The configuration that it was started with.
    started: Config,
    catalog: RwLock<ToolCatalog>,
}

/// The result of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// The changed sections that need a restart.
    pub needs_restart: Vec<&'static str>,
}

impl Live {
    /// Builds a stack from `config`; `change` then adds hooks, stores and exporters.
    ///
    /// # Errors
    /// If any layer's settings are out of range; the faults of all layers are named at once.
    pub fn new(
        config: Config,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, ConfigError> {
        let stack = change(ToolStack::builder().config(&config)).build()?;
        let catalog = RwLock::new(config.catalog.clone());
        Ok(Self(Arc::new(Running { stack, started: config, catalog })))
    }

    /// The stack.
    #[must_use]
    pub fn stack(&self) -> &ToolStack {
        &self.0.stack
    }

    /// The current declarations of tools. A clone is a reference count.
    #[must_use]
    pub fn catalog(&self) -> ToolCatalog {
        self.0.catalog.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Applies the settings of a new configuration that can change at run time, and returns those that
    /// need a restart. Running calls end with the settings that they began with.
    ///
    /// # Errors
    /// If a stack could not be built by it. Nothing has changed then.
    pub fn reload(&self, config: Config) -> Result<Reloaded, ConfigError> {
        ToolStack::builder().config(&config).build()?;
        let started = &self.0.started;
        let differs = [
            ("normalise", started.normalise != config.normalise),
            ("attempt_timeout_ms", started.attempt_timeout != config.attempt_timeout),
            ("deadline_ms", started.deadline != config.deadline),
            ("retry", started.retry != config.retry),
            ("retry_opt_in", started.retry_opt_in != config.retry_opt_in),
            ("breaker", started.breaker != config.breaker),
            ("idempotency", started.idempotency != config.idempotency),
            ("loops", started.loops != config.loops),
            ("records", started.records != config.records),
            ("identity", started.identity != config.identity),
        ];
        let differs = differs.into_iter().filter(|(_, differs)| *differs);
        let needs_restart = differs.map(|(section, _)| section).collect();
        *self.0.catalog.write().unwrap_or_else(PoisonError::into_inner) = config.catalog;
        let rollout = config.rollout.unwrap_or_default();
        self.0.stack.kill_switch().set_rollout(rollout);
        Ok(Reloaded { needs_restart })
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("started", &self.0.started).finish_non_exhaustive()
    }
}
