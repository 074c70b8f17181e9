//! What a configuration says, put into the builders of the layers.
use crate::{
    AttemptTimeoutLayer, Builder, breaker, idempotency,
    integrity::{self, Sessions, SessionsBuilder},
    loopguard,
    retry::{self, Budget, RetryConfig},
};
use std::time::Duration;
use tr_config::{
    BreakerConfig, BreakerMode, Config, Conflicts, DeriveKeys, IdempotencyConfig, Limit,
    LoopConfig, LoopMode, LoopSignals, Preset, RetryAnchor, RetrySettings, SessionFormat,
    SessionMode, SessionsConfig, StoreFailures, WhenStoreFails, by_effect,
};
use tr_core::RetryOverride;

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
        if let Some(timeout) = config.attempt_timeout {
            self = self.attempt_timeout(|attempt| match timeout {
                Limit::None => attempt.only_as_requested(),
                Limit::At(timeout) => attempt.after(timeout),
            });
        }
        if let Some(idle) = config.idle_timeout {
            self = self.attempt_timeout(|attempt| attempt.idle(idle));
        }
        if config.retry != RetrySettings::default() {
            let RetrySettings { read_only, idempotent, mutating, .. } = config.retry.clone();
            self = self.retry(|retry| {
                let retry = retry.config(retry_config(config));
                by_effect(read_only, idempotent, mutating)
                    .fold(retry, |retry, (effect, changes)| retry.for_effect(effect, changes))
            });
        }
        self = self.opt_in(config);
        if let Some(budget) = &config.retry.budget {
            let builder = set!(
                Budget::builder(),
                per_success = budget.per_success,
                capacity = budget.capacity,
            );
            let budget = self.built(builder.build());
            self = self.retry(|retry| set!(retry, budget = budget));
        }
        self = self.configured_telemetry(&config.telemetry);
        if let Some(sessions) = &config.sessions {
            self = self.configured_sessions(sessions);
        }
        self.tools = Some(config.catalog.clone());
        self.breaker(|builder| breakers(builder, &config.breaker))
            .idempotency(|builder| records(builder, &config.idempotency))
            .loop_guard(|builder| loops(builder, &config.loops))
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
            .retry(|_| retry::RetryLayer::builder().config(of_preset(preset)))
    }

    fn opt_in(mut self, config: &Config) -> Self {
        if config.retry_opt_in.calls == Some(true) {
            self = self.retry(retry::Builder::opt_in);
        }
        if let Some(agents) = &config.retry_opt_in.agents {
            self = self.retry(|retry| retry.opt_in_agents(agents.iter().cloned()));
        }
        self
    }

    fn configured_sessions(mut self, config: &SessionsConfig) -> Self {
        let when = same!(WhenStoreFails => integrity::WhenStoreFails { Run, Refuse });
        let sessions = self.built(session_rules(config).build());
        let when = config.when_store_fails.map(when);
        set!(self, sessions = sessions, when_sessions_fail = when)
    }
}

const THIRTY_SECONDS: Duration = Duration::from_secs(30);

/// A preset's attempts and delays.
fn of_preset(preset: Preset) -> RetryConfig {
    match preset {
        Preset::ErrorHandling => RetryConfig::fixed_cadence(),
        Preset::Utee => RetryConfig::per_request(),
        _ => RetryConfig::default(),
    }
}

/// The attempts and delays of a configuration: its preset's, with its changes.
#[must_use]
pub fn retry_config(config: &Config) -> RetryConfig {
    let mut retry = of_preset(config.preset.unwrap_or_default());
    let said = config.retry.clone();
    retry.apply(&RetryOverride {
        attempts: said.attempts,
        base: said.base,
        multiplier: said.multiplier,
        jitter: said.jitter,
        only_codes: said.only_codes.map(Vec::into_boxed_slice),
        ..RetryOverride::default()
    });
    retry.cap = said.cap.map_or(retry.cap, Limit::get);
    retry.max_elapsed = said.max_elapsed.map_or(retry.max_elapsed, Limit::get);
    if let Some(anchor) = said.anchor {
        retry.anchor = same!(RetryAnchor => retry::Anchor { AttemptStart, AttemptEnd })(anchor);
    }
    retry
}

fn breakers(builder: breaker::Builder, config: &BreakerConfig) -> breaker::Builder {
    let builder = by_effect(config.read_only, config.idempotent, config.mutating)
        .fold(builder, |builder, (effect, rules)| builder.for_effect(effect, rules));
    let builder = match &config.slow_calls {
        Some(slow) => builder.slow_calls(Duration::from_millis(slow.longer_than_ms), slow.rate),
        None => builder,
    };
    set!(
        builder,
        consecutive_failures = config.consecutive.map(Limit::get),
        failure_rate = config.failure_rate.map(Limit::get),
        window = config.window,
        min_calls = config.min_calls,
        rolling = config.rolling_ms.map(|rolling| rolling.map(Duration::from_millis).get()),
        cooldown = config.cooldown_ms.map(Duration::from_millis),
        cooldown_jitter = config.cooldown_jitter,
        max_probes = config.max_probes,
        probe_lease = config.probe_lease_ms.map(Duration::from_millis),
        successes_to_close = config.successes_to_close,
        ramp = config.ramp_ms.map(Duration::from_millis),
        count_rate_limits = config.count_rate_limits,
        mode = config.mode.map(same!(BreakerMode => breaker::Mode { Enforce, Shadow, Disabled })),
        forced_open = config.forced_open,
        capacity = config.capacity.map(|breakers| breakers as usize),
    )
}

fn records(builder: idempotency::Builder, config: &IdempotencyConfig) -> idempotency::Builder {
    let keys = same!(DeriveKeys => idempotency::DerivedKeys { Off, CutOff, Step, Session });
    let conflicts = same!(Conflicts => idempotency::ConflictPolicy { Reject, Independent });
    let when = same!(WhenStoreFails => idempotency::store::WhenStoreFails { Run, Refuse });
    let StoreFailures { read_only, idempotent, mutating, .. } =
        config.when_store_fails.clone().unwrap_or_default();
    let builder = by_effect(read_only, idempotent, mutating)
        .fold(builder, |builder, (effect, policy)| builder.when_store_fails(effect, when(policy)));
    set!(
        builder,
        derived_keys = config.derived_keys.map(keys),
        conflicts = config.conflicts.map(conflicts),
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
        store_timeout = config.store_timeout_ms.map(Duration::from_millis),
        replay_from_memory = config.replay_from_memory_ms.map(Duration::from_millis),
        probe_timeout = config.probe_timeout_ms.map(Duration::from_millis),
    )
}

fn loops(builder: loopguard::Builder, config: &LoopConfig) -> loopguard::Builder {
    set!(
        builder,
        enabled = config.enabled,
        mode = config.mode.map(same!(LoopMode => loopguard::Mode { Off, Note, Block, Strict })),
        signals = config.signals.as_ref().map(signals),
        max_identical_failures = config.max_identical,
        max_failures_per_turn = config.max_failures_per_turn,
        memory = config.memory_ms.map(Duration::from_millis),
        max_turns = config.max_turns.map(|turns| turns as usize),
        log_path = config.log_path.as_deref(),
    )
}

/// The signals of a configuration; `None` if it turns them off.
#[must_use]
pub fn signals(config: &LoopSignals) -> Option<loopguard::Signals> {
    (config.enabled != Some(false)).then(|| {
        set!(
            loopguard::Signals::default(),
            repeats = config.repeats,
            failing_repeats = config.failing_repeats,
            rounds = config.rounds,
            same_error = config.same_error,
            pace = config.pace_ms.map(Duration::from_millis),
            quiet = config.quiet_ms.map(Duration::from_millis),
            count_transient = config.count_transient,
            refuse = config.refuse,
            volatile = config.volatile.clone(),
        )
    })
}

/// The sessions of a configuration, without the store that it names.
pub(super) fn session_rules(config: &SessionsConfig) -> SessionsBuilder {
    let format = match config.format.unwrap_or_default() {
        SessionFormat::OpenAiChat => integrity::Format::OpenAiChat,
        SessionFormat::OpenAiResponses => integrity::Format::OpenAiResponses,
        SessionFormat::Gemini => integrity::Format::Gemini,
        SessionFormat::OpenClaw => integrity::Format::OpenClaw,
        _ => integrity::Format::AnthropicMessages,
    };
    let mut rules = integrity::Layer0Config::default();
    rules.enabled = config.enabled.unwrap_or(rules.enabled);
    rules.validate_before_call = config.validate_before_call.unwrap_or(rules.validate_before_call);
    rules.auto_repair = config.auto_repair.unwrap_or(rules.auto_repair);
    rules.checkpoint_retention =
        config.checkpoint_retention.map_or(rules.checkpoint_retention, |kept| kept as usize);
    rules.snapshot_messages = config.snapshot_messages.unwrap_or(rules.snapshot_messages);
    rules.verbose = config.verbose.unwrap_or(rules.verbose);
    let mode = same!(SessionMode => integrity::CycleMode { Preserve, Rollback });
    set!(Sessions::builder(format).config(rules), mode = config.mode.map(mode))
}
