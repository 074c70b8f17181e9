//! The stack and its builder.
mod faults;

use self::faults::Faults;
use crate::{
    adapter::AdapterLayer,
    cache::Records,
    checked::CheckedLayer,
    environment::Environment,
    hooks::{Hook, Hooks, HooksLayer, Place},
    observers,
    order::{Layers, Stacked},
    rollout::{KillSwitch, Rollout, ShadowEnd, ShadowEnds, routed},
    switch::{Shared, Switch},
};
use std::{fmt, sync::Arc, time::Duration};
use tower_layer::Layer;
use tr_breaker::Registry;
use tr_config::ToolCatalog;
use tr_core::{ConfigError, Observer, ToolOutcome, internal::Sharded, setters};
use tr_idempotency::{DerivedKeys, Handle, IdempotencyLayer};
use tr_integrity::{IntegrityLayer, Sessions, WhenStoreFails};
use tr_loopguard::{LoopGuardLayer, Turns};
use tr_retry::RetryLayer;
use tr_telemetry::{Signals, TelemetryLayer};
use tr_timeout::{AttemptTimeoutBuilder, AttemptTimeoutLayer, DeadlineLayer, DefaultDeadlineLayer};

/// A tool `T` with the stack around it.
pub type Guarded<T> = Switch<Stacked<T>, T>;

/// The layers in their order, with the default settings unless the
/// builder changed them.
///
/// All services of a stack share its breakers, records, turns and switch: build one stack, and put it
/// around each tool.
#[derive(Clone)]
pub struct ToolStack {
    layers: Layers,
    hooks: Hooks,
    sessions: Option<Sessions>,
    pub(crate) shared: Sharded<Shared>,
}

impl ToolStack {
    /// Starts from the default settings.
    pub fn builder() -> Builder {
        Builder {
            attempt_timeout: AttemptTimeoutLayer::builder(),
            deadline: None,
            breaker: tr_breaker::Builder::by_effect(),
            retry: RetryLayer::builder(),
            idempotency: IdempotencyLayer::builder(),
            loop_guard: LoopGuardLayer::builder(),
            sessions: None,
            when_sessions_fail: WhenStoreFails::default(),
            faults: Faults::default(),
            telemetry: None,
            hooks: Vec::new(),
            observers: Vec::new(),
            shadow_observers: Vec::new(),
            shadow_ends: None,
            switch: None,
            rollout: None,
            normalise: true,
            silent_failures: true,
            environment: Environment::from_env(),
            tools: None,
        }
    }

    /// Puts the stack around `tool`.
    pub fn service<T: Clone>(&self, tool: T) -> Guarded<T> {
        let bare = HooksLayer::new(&self.hooks, Place::Bare).layer(tool.clone());
        Switch::new(self.layers.around(tool), bare, self.shared.shard())
    }

    /// The breakers: to read them, force them open, reset them.
    #[must_use]
    pub const fn breakers(&self) -> &Registry {
        self.layers.breaker.registry()
    }

    /// The records in memory: to read them, resolve unknown outcomes, flush them. Those in a store:
    /// [`in_store`](Handle::in_store).
    #[must_use]
    pub fn records(&self) -> Handle<ToolOutcome> {
        self.layers.idempotency.handle()
    }

    /// The turns with failures; `None` if the loop guard is off.
    #[must_use]
    pub fn turns(&self) -> Option<&Turns> {
        self.layers.loop_guard.turns()
    }

    /// The sessions whose tool cycles are recorded; `None` if there are none.
    #[must_use]
    pub const fn sessions(&self) -> Option<&Sessions> {
        self.sessions.as_ref()
    }

    /// Turns the stack off and on, and changes which calls it guards.
    #[must_use]
    pub fn kill_switch(&self) -> &KillSwitch {
        &self.shared.switch
    }
}

impl fmt::Debug for ToolStack {
    /// The settings of each layer, outermost first, each on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ToolStack");
        shown.field("switch", &format_args!("{:?}", self.shared.switch));
        shown.field("hooks", &self.hooks.len());
        self.layers.show(&mut shown);
        shown.finish()
    }
}

impl Default for ToolStack {
    fn default() -> Self {
        Self::builder().build().expect("the preset is valid")
    }
}

impl<T: Clone> Layer<T> for ToolStack {
    type Service = Guarded<T>;

    fn layer(&self, tool: T) -> Guarded<T> {
        self.service(tool)
    }
}

/// Configures a [`ToolStack`] through the builders of its layers.
///
/// ```
/// use std::time::Duration;
/// use tool_reliability::{ToolStack, breaker, retry};
///
/// let stack = ToolStack::builder()
///     .retry(|retry| retry.config(retry::RetryConfig::per_request()))
///     .breaker(|breaker| breaker.cooldown(Duration::from_secs(5)))
///     .build()?;
/// # Ok::<_, tool_reliability::ConfigError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Builder {
    attempt_timeout: AttemptTimeoutBuilder,
    deadline: Option<Duration>,
    breaker: tr_breaker::Builder,
    retry: tr_retry::Builder,
    idempotency: tr_idempotency::Builder,
    loop_guard: tr_loopguard::Builder,
    sessions: Option<Sessions>,
    when_sessions_fail: WhenStoreFails,
    pub(crate) faults: Faults,
    pub(crate) telemetry: Option<Signals>,
    hooks: Vec<Arc<dyn Hook>>,
    observers: Vec<Arc<dyn Observer>>,
    shadow_observers: Vec<Arc<dyn Observer>>,
    shadow_ends: Option<ShadowEnds>,
    switch: Option<KillSwitch>,
    rollout: Option<Rollout>,
    normalise: bool,
    silent_failures: bool,
    environment: Environment,
    pub(crate) tools: Option<ToolCatalog>,
}

/// Methods that change the builder of a layer.
macro_rules! changes {
    ($($(#[$doc:meta])* fn $layer:ident($builder:ty);)*) => {$(
        $(#[$doc])*
        pub fn $layer(mut self, change: impl FnOnce($builder) -> $builder) -> Self {
            self.$layer = change(self.$layer);
            self
        }
    )*};
}

impl Builder {
    changes! {
        /// Changes the attempt timeout.
        fn attempt_timeout(AttemptTimeoutBuilder);

        /// Changes the breaker.
        fn breaker(tr_breaker::Builder);

        /// Changes the retry layer.
        fn retry(tr_retry::Builder);

        /// Changes deduplication, and where its records are: in this process, unless a
        /// [store](tr_idempotency::Builder::store) is given.
        fn idempotency(tr_idempotency::Builder);

        /// Changes the loop guard.
        fn loop_guard(tr_loopguard::Builder);
    }

    setters! {
        /// Adds a hook after the others.
        fn hook(hook: impl Hook + 'static) { hooks.push(Arc::new(hook)) }

        /// Reports the events of all layers to `observer`, too.
        fn observer(observer: Arc<dyn Observer>) { observers.push(observer) }

        /// Reports to `observer` what the layers would have done to calls in [shadow mode](crate::Mode). The
        /// other observers get no events of such calls, except changes of a breaker's state, which are
        /// real and reported to them alone.
        fn shadow_observer(observer: Arc<dyn Observer>) { shadow_observers.push(observer) }

        /// Tells `on_end` how each call in [shadow mode](crate::Mode) would have ended under the stack; the
        /// caller gets the tool's own end. Called on the path of the call, so it must not block.
        fn on_shadow_end(on_end: impl Fn(&ShadowEnd<'_>) + Send + Sync + 'static) {
            shadow_ends = Some(ShadowEnds(Arc::new(on_end)))
        }

        /// Records the tool cycles of these sessions; none by default. A user's message that is pushed
        /// to one of them begins a turn for the loop guard, where calls do not name their turn. The
        /// stack's observers hear what is done when one of them is loaded.
        fn sessions(sessions: Sessions) { sessions = Some(sessions) }

        /// Sets what to do with a call whose intent the store of [`sessions`](Self::sessions) does not
        /// record; it is refused by default.
        fn when_sessions_fail(when: WhenStoreFails) { when_sessions_fail = when }

        /// Sets the deadline of calls that have none, for all attempts, backoffs and waits together: 1 ms to
        /// 24 h; no limit by default. At the deadline the caller gets a `timeout` that says whether the
        /// tool may have run.
        fn deadline(after: Duration) { deadline = Some(after) }

        /// Sends events, metrics and spans to `signals`; by default only events, to tracing's target
        /// `tool_reliability`. The metrics include this stack's records, for as long as the meter is
        /// read.
        fn telemetry(signals: Signals) { telemetry = Some(signals) }

        /// Sets the switch; by default the stack has its own, from its [environment](Self::environment). Stacks
        /// with the same switch are turned on and off together.
        fn kill_switch(switch: KillSwitch) { switch = Some(switch) }

        /// Which calls are guarded; all by default. It becomes the
        /// [switch's](KillSwitch::set_rollout).
        fn rollout(rollout: Rollout) { rollout = Some(rollout) }

        /// Sets whether tools' failures are converted to [`ToolError`](tr_core::ToolError)s; they
        /// are by default. If not, callers and hooks get the tool's own error, after retries that
        /// of the last attempt. The codes in a manifest are ignored, and no answer is searched for
        /// [silent failures](Self::silent_failures).
        ///
        /// The stack's error stays if it says more: that the call was refused or cancelled, or that
        /// an earlier attempt may have run though the last one did not. The note of the loop guard
        /// wraps the tool's error. An error has one owner: callers that waited for the same run,
        /// and repeats of the call, get an error of the stack with the tool's text.
        fn normalise(normalise: bool) { normalise = normalise }

        /// Sets whether tools' answers are searched for silent failures; they are by default.
        /// `null`, `ok: false`, an `error` that is not empty and an exit code other than 0 are
        /// failures then, and an envelope of either form is what it says
        /// ([`Normaliser`](tr_wire::Normaliser)). For single tools their manifests say it:
        /// `silent_failures`, `null_is_success`. Off where failures are not
        /// [normalised](Self::normalise).
        fn silent_failures(look: bool) { silent_failures = look }

        /// Sets the switches; by default those of the process's environment apply.
        fn environment(environment: Environment) { environment = environment }
    }

    /// Validates all settings.
    ///
    /// # Errors
    /// If any layer's settings are out of range; the faults of all layers are named at once.
    pub fn build(mut self) -> Result<ToolStack, ConfigError> {
        let mut faults = std::mem::take(&mut self.faults);
        let signals = match self.telemetry {
            Some(signals) => signals,
            None => Signals::builder().build().expect("the defaults are valid"),
        };
        if !self.environment.open_mode {
            self.breaker = self.breaker.mode(tr_breaker::Mode::Shadow);
        }
        if !self.environment.derive_idempotency {
            self.idempotency = self.idempotency.derived_keys(DerivedKeys::Off);
        }
        let shadow_signals = signals.shadow();
        self.observers.insert(0, signals.observer());
        self.shadow_observers.insert(0, shadow_signals.observer());
        let observer =
            routed(observers::all(self.observers), observers::all(self.shadow_observers));
        let integrity = IntegrityLayer::builder()
            .when_store_fails(self.when_sessions_fail)
            .observer(observer.clone());
        let integrity = set!(integrity, sessions = self.sessions.clone()).build();
        let session_observer = observer.clone();
        let redactor = signals.redactor();
        let loop_guard = self.loop_guard.log_cleaning(move |text| redactor.redact(text).into());
        let loop_guard = faults.gather(loop_guard.observer(observer.clone()).build());
        let idempotency = faults.gather(self.idempotency.observer(observer.clone()).build());
        let default_deadline = faults.gather(DefaultDeadlineLayer::new(self.deadline));
        let deadline = faults.gather(DeadlineLayer::builder().observer(observer.clone()).build());
        let retry = faults.gather(self.retry.observer(observer.clone()).build());
        let breaker = faults.gather(self.breaker.observer(observer.clone()).build());
        let attempt_timeout = faults.gather(self.attempt_timeout.observer(observer).build());
        let hooks: Hooks = self.hooks.into();
        let layers = || {
            Some(Layers {
                call_telemetry: TelemetryLayer::call(&signals),
                call_hooks: HooksLayer::new(&hooks, Place::Call),
                default_deadline: default_deadline?,
                integrity,
                loop_guard: loop_guard?,
                checked: CheckedLayer,
                idempotency: idempotency?,
                deadline: deadline?,
                retry: retry?,
                attempt_telemetry: TelemetryLayer::attempt(&signals),
                attempt_hooks: HooksLayer::new(&hooks, Place::Attempt),
                breaker: breaker?,
                attempt_timeout: attempt_timeout?,
                cancel: Default::default(),
                adapter: AdapterLayer::new()
                    .normalise(self.normalise && self.environment.normalise)
                    .silent_failures(self.silent_failures),
            })
        };
        let layers = match (layers(), faults.0) {
            (Some(layers), None) => layers,
            (_, faults) => return Err(faults.expect("what is not built has a fault")),
        };
        if let Some(sessions) = &self.sessions {
            sessions.observe_by_default(session_observer);
            if let Some(turns) = layers.loop_guard.turns().cloned() {
                sessions.on_turn(move |session| turns.begin(Some(session)));
            }
        }
        let switch = self.switch.unwrap_or_else(|| KillSwitch::new(self.environment.enabled));
        if let Some(rollout) = self.rollout {
            switch.set_rollout(rollout);
        }
        signals.observe_cache(Records::new(layers.idempotency.handle()));
        let signals = (&signals, &shadow_signals);
        let shared = Shared::new(switch, &layers, signals, self.shadow_ends, self.tools);
        let shared = Sharded::new(shared);
        Ok(ToolStack { layers, hooks, sessions: self.sessions, shared })
    }
}
