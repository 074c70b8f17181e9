//! Settings.
mod checks;

use crate::settings::{Derived, EFFECTS, FOREVER, Jitter, Mode, Rules, Settings, Slow, own_seed};
use std::{sync::Arc, time::Duration};
use tr_policy::{BreakerOverride, DefaultPolicy, Effect, Observer, setters};

/// Configures a [`BreakerLayer`](crate::BreakerLayer).
///
/// | setting | default |
/// |---|---|
/// | [`consecutive_failures`](Self::consecutive_failures) | 5 |
/// | [`failure_rate`](Self::failure_rate) | 0.5 |
/// | [`window`](Self::window), [`min_calls`](Self::min_calls) | 20 calls, 10 |
/// | [`rolling`](Self::rolling) | 120 s |
/// | [`slow_calls`](Self::slow_calls) | off |
/// | [`cooldown`](Self::cooldown) | 30 s |
/// | [`max_probes`](Self::max_probes), [`successes_to_close`](Self::successes_to_close) | 1, 2 |
/// | [`probe_lease`](Self::probe_lease) | the cooldown |
/// | [`cooldown_jitter`](Self::cooldown_jitter), [`ramp`](Self::ramp) | off |
/// | [`count_rate_limits`](Self::count_rate_limits) | yes |
/// | [`mode`](Self::mode), [`forced_open`](Self::forced_open) | [`Mode::Enforce`], no |
/// | [`capacity`](Self::capacity) | 10,000 breakers |
///
/// What is set for an [effect](Self::for_effect) wins over what is set for all calls, and that over
/// what a preset has for effects.
///
/// Numbers are from 1 to 10,000, `min_calls` to the window, the capacity to a million, times from 1 ms
/// to 365 days, shares more than 0 and at most 1; [`build`](Self::build) names whatever is not.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder<A = DefaultPolicy> {
    pub(crate) options: Options,
    pub(crate) policy: A,
}

/// What is set, whatever the policy.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// All but what is below and follows from it.
    settings: Settings,
    rules: Rules,
    /// A preset's, for those effects and settings of which the user has said nothing general.
    preset: [BreakerOverride; 3],
    changes: [BreakerOverride; 3],
    rolling: Option<Duration>,
    jitter: Option<f64>,
    seed: Option<u64>,
    pub(crate) capacity: usize,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
}

impl Default for Options {
    fn default() -> Self {
        let rules =
            Rules { consecutive: Some(5), rate: Some(0.5), cooldown: Duration::from_secs(30) };
        let settings = Settings {
            rules: [rules; EFFECTS.len()],
            window: 20,
            min_calls: 10,
            rolling: FOREVER,
            slow: None,
            max_probes: 1,
            successes_to_close: 2,
            probe_lease: None,
            jitter: None,
            ramp: None,
            count_rate_limits: true,
            mode: Mode::Enforce,
            force_open: false,
            derived: Derived::default(),
        };
        Self {
            settings,
            rules,
            preset: Default::default(),
            changes: Default::default(),
            rolling: Some(Duration::from_secs(120)),
            jitter: None,
            seed: None,
            capacity: 10_000,
            observers: Vec::new(),
        }
    }
}

impl Options {
    /// In the form that breakers use.
    pub(crate) fn settings(&self) -> Settings {
        let rules_for = |effect: Option<Effect>| {
            let mut rules = self.rules;
            if let Some(effect) = effect {
                rules.apply(self.preset[effect as usize]);
                rules.apply(self.changes[effect as usize]);
            }
            rules
        };
        let seed = || self.seed.unwrap_or_else(own_seed);
        Settings {
            rules: EFFECTS.map(rules_for),
            rolling: self.rolling.unwrap_or(FOREVER),
            jitter: self.jitter.map(|share| Jitter { share, seed: seed() }),
            ..self.settings.clone()
        }
        .derive()
    }
}

impl Builder {
    /// Starts from the defaults, with the same thresholds for every effect.
    pub(crate) fn new() -> Self {
        Self { options: Options::default(), policy: DefaultPolicy }
    }

    /// Starts from thresholds by declared effect: read-only calls open the breaker at 8 failures in
    /// a row, for 20 s; mutating calls at a failure rate of 0.3, for 15 s; everything else is the
    /// default. A value set for all calls or for an effect replaces the preset's.
    pub fn by_effect() -> Self {
        let mut builder = Self::new();
        let reading = &mut builder.options.preset[Effect::ReadOnly as usize];
        reading.consecutive = Some(8);
        reading.cooldown = Some(Duration::from_secs(20));
        let mutating = &mut builder.options.preset[Effect::Mutating as usize];
        mutating.failure_rate = Some(0.3);
        mutating.cooldown = Some(Duration::from_secs(15));
        builder
    }

    /// Starts from the defaults, except that one successful probe closes the breaker.
    pub fn close_on_first_success() -> Self {
        Self::new().successes_to_close(1)
    }
}

impl<A> Builder<A> {
    /// Opens at this many failures in a row; `None`: never because of failures in a row. Applies to all
    /// effects, except those with an [override](Self::for_effect).
    pub fn consecutive_failures(mut self, failures: impl Into<Option<u32>>) -> Self {
        self.options.rules.consecutive = failures.into();
        self.options.preset.iter_mut().for_each(|change| change.consecutive = None);
        self
    }

    /// Opens when this share of the calls in the window has failed, more than 0 and at most 1; `None`:
    /// never because of the rate. Applies to all effects, except those with an
    /// [override](Self::for_effect).
    pub fn failure_rate(mut self, rate: impl Into<Option<f64>>) -> Self {
        self.options.rules.rate = rate.into();
        self.options.preset.iter_mut().for_each(|change| change.failure_rate = None);
        self
    }

    /// Sets how long it stays open before it admits a probe. Applies to all effects, except those with
    /// an [override](Self::for_effect).
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.options.rules.cooldown = cooldown;
        self.options.preset.iter_mut().for_each(|change| change.cooldown = None);
        self
    }

    /// Overrides the thresholds for calls of this declared effect. Fields that `change` leaves out stay
    /// as they are; the others override the thresholds for all calls, in whichever order they are set.
    ///
    /// A failure is judged by the thresholds for the effect of its call, so calls of different
    /// effects can share a breaker. Calls of undeclared effect use the thresholds for all calls; a
    /// tool's manifest overrides both.
    pub fn for_effect(mut self, effect: Effect, change: BreakerOverride) -> Self {
        let current = &mut self.options.changes[effect as usize];
        *current = change.or(*current);
        self
    }

    setters! {
        /// Sets the size of the window: rates are computed over this many last successes and failures;
        /// permanent errors do not count.
        fn window(calls: u32) { options.settings.window = calls }

        /// Sets how many calls the window needs before a rate applies.
        fn min_calls(calls: u32) { options.settings.min_calls = calls }

        /// Sets the age above which calls no longer count, neither for rates nor for failures in a row;
        /// `None`: only the number of calls bounds the window. The age of a failure is exact, that of a
        /// success to a sixteenth of this.
        ///
        /// With `None`, or without a rate, a success reads no clock, which is half of its cost unless the
        /// request carries a [time](tr_policy::RequestPolicy::stamp). For a window by time alone, set
        /// [`window`](Self::window) above the number of calls in this time.
        fn rolling(rolling: impl Into<Option<Duration>>) { options.rolling = rolling.into() }

        /// Sets how many probes may be in flight while half open.
        fn max_probes(probes: u32) { options.settings.max_probes = probes }

        /// Sets how many probes must succeed, without a failure, before it closes.
        fn successes_to_close(successes: u32) { options.settings.successes_to_close = successes }

        /// Sets the time after which a probe counts as hung and reopens. It must be longer than the attempt
        /// timeout: the late end of a hung probe is ignored.
        fn probe_lease(lease: Duration) { options.settings.probe_lease = Some(lease) }

        /// Makes each cooldown longer by up to this share of it, so that breakers that opened together
        /// do not probe together.
        fn cooldown_jitter(share: f64) { options.jitter = Some(share) }

        /// Draws the jitter under `seed`: the same breaker gets the same cooldowns in the same order,
        /// whichever process it is in. Without it each layer has a seed of its own.
        fn seed(seed: u64) { options.seed = Some(seed) }

        /// After probes have closed it, lets pass a share of the calls that grows from a tenth to all
        /// within this time, and refuses the others; its state is `CLOSED`.
        fn ramp(lasts: Duration) { options.settings.ramp = Some(lasts) }

        /// Whether errors of the code [`RATE_LIMITED`](tr_policy::code::RATE_LIMITED), such as a 429,
        /// are failures. Else they count for nothing.
        fn count_rate_limits(count: bool) { options.settings.count_rate_limits = count }

        /// What the breakers do with their decisions, until told otherwise by a handle.
        fn mode(mode: Mode) { options.settings.mode = mode }

        /// Whether breakers start in `FORCED_OPEN`. Not together with [`Mode::Disabled`], which would
        /// let all calls pass.
        fn forced_open(forced: bool) { options.settings.force_open = forced }

        /// How many breakers are kept. At capacity, an idle closed breaker without failures is evicted; if
        /// there is none, the calls of new keys pass and do not count, and observers get an event
        /// ([`Event::BreakerUncounted`](tr_policy::Event::BreakerUncounted)).
        /// The first 256, and at most half of all, are never evicted, and found without a lock.
        ///
        /// A breaker whose tool succeeds takes up less than 256 bytes, however many there are.
        fn capacity(breakers: usize) { options.capacity = breakers }

        /// Also opens when this share of the calls in the window took longer than `longer_than`; a slow
        /// probe reopens. Costs a clock read for each call.
        fn slow_calls(longer_than: Duration, rate: f64) { options.settings.slow = Some(Slow { longer_than, rate }) }

        /// Tells `observer` of every step and every refused call; may be called several times.
        fn observer(observer: Arc<dyn Observer>) { options.observers.push(observer) }
    }

    pub(crate) fn read_by<B>(self, change: impl FnOnce(A) -> B) -> Builder<B> {
        Builder { options: self.options, policy: change(self.policy) }
    }
}
