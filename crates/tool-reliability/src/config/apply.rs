//! What a configuration says, put into the builders of the layers.
use crate::{
    AttemptTimeoutLayer, Builder, breaker, idempotency,
    integrity::{self, Sessions, SessionsBuilder},
    retry::{self, Budget},
};
use std::time::Duration;
use tr_config::{
    BreakerConfig, Config, IdempotencyConfig, Preset, RetrySettings, SessionsConfig, StoreFailures,
    TelemetryConfig, by_effect,
};

impl Builder {
    /// Applies a configuration, except for its records and its stores, which
    /// [`Live`](crate::config::Live) opens. What it declares of tools holds for calls that come without a manifest.
    /// A preset replaces what was set before for attempts, retries and
    /// breakers; the rest changes only what it names.
    pub fn config(mut self, config: &Config) -> Self {
        self = set!(
            self,
            preset = config.preset,
            rollout = config.rollout.clone(),
            normalise = config.normalise,
            silent_failures = config.silent_failures,
            deadline = config.deadline,
        );
        self = self
            .attempt_timeout(|it| {
                set!(it, after = config.attempt_timeout, idle = config.idle_timeout)
            })
            .retry(|retry| retries(retry, config));
        if let Some(budget) = &config.retry.budget {
            let budget = self.faults.gather(budget.apply(Budget::builder()).build());
            self = self.retry(|retry| set!(retry, budget = budget));
        }
        // Signals that the program has given, or gives later, replace those of the configuration.
        if config.telemetry != TelemetryConfig::default() && self.telemetry.is_none() {
            self.telemetry = self.faults.gather(super::telemetry(&config.telemetry).build());
        }
        if let Some(said) = &config.sessions {
            let sessions = self.faults.gather(session_rules(said).build());
            self = set!(self, sessions = sessions, when_sessions_fail = said.when_store_fails);
        }
        self.tools = Some(config.catalog.clone());
        self.breaker(|builder| breakers(builder, &config.breaker))
            .idempotency(|builder| records(builder, &config.idempotency))
            .loop_guard(|builder| {
                let log_path = config.loops.log_path.as_deref();
                set!(config.loops.apply(builder), log_path = log_path)
            })
    }

    /// Starts again from the settings that a preset has for attempts, retries and breakers.
    fn preset(self, preset: Preset) -> Self {
        let attempt = AttemptTimeoutLayer::builder();
        let (attempt, breaker) = match preset {
            Preset::ErrorHandling => {
                (attempt.after(THIRTY_SECONDS), breaker::Builder::close_on_first_success())
            }
            Preset::Utee => (attempt.only_as_requested(), breaker::Builder::by_effect()),
            _ => (attempt, breaker::Builder::by_effect()),
        };
        self.attempt_timeout(|_| attempt)
            .breaker(|_| breaker)
            .retry(|_| retry::RetryLayer::builder().config(preset.retry()))
    }
}

const THIRTY_SECONDS: Duration = Duration::from_secs(30);

fn retries(builder: retry::Builder, config: &Config) -> retry::Builder {
    let RetrySettings { read_only, idempotent, mutating, .. } = config.retry.clone();
    let mut builder = by_effect(read_only, idempotent, mutating)
        .fold(config.retry.apply(builder), |builder, (effect, changes)| {
            builder.for_effect(effect, changes)
        });
    if config.retry_opt_in.calls == Some(true) {
        builder = builder.opt_in();
    }
    set!(builder, opt_in_agents = config.retry_opt_in.agents.clone())
}

fn breakers(builder: breaker::Builder, config: &BreakerConfig) -> breaker::Builder {
    let builder = by_effect(config.read_only, config.idempotent, config.mutating)
        .fold(config.apply(builder), |builder, (effect, rules)| builder.for_effect(effect, rules));
    match &config.slow_calls {
        Some(slow) => builder.slow_calls(slow.longer_than, slow.rate),
        None => builder,
    }
}

fn records(builder: idempotency::Builder, config: &IdempotencyConfig) -> idempotency::Builder {
    let StoreFailures { read_only, idempotent, mutating, .. } =
        config.when_store_fails.clone().unwrap_or_default();
    by_effect(read_only, idempotent, mutating)
        .fold(config.apply(builder), |builder, (effect, policy)| {
            builder.when_store_fails(effect, policy)
        })
}

/// The sessions of a configuration, without the store that it names.
pub(super) fn session_rules(config: &SessionsConfig) -> SessionsBuilder {
    let format = config.format.unwrap_or(integrity::Format::AnthropicMessages);
    set!(Sessions::builder(format).config(config.rules.clone()), mode = config.mode)
}
