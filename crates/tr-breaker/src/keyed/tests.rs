//! Against a slow obvious model: it keeps every call of the period and counts anew each time.
use super::*;
use crate::{Builder, settings::EFFECTS};
use proptest::prelude::*;
use std::{sync::Mutex, time::Duration};
use tr_policy::{BreakerState as Is, CallInfo, Effect, Event, Observer, internal::CoarseInstant};

/// A schedule's next event.
#[derive(Clone, Copy, Debug)]
enum Step {
    Admit(Option<Effect>),
    /// Ends one of the calls in flight.
    End(usize, End),
    Advance(u64),
    Look,
    ForceOpen,
    Reset,
    Mode(Mode),
}

impl Step {
    /// Drawn by a number: a million of these are drawn faster than by strategies.
    fn drawn(mut chance: u64) -> Self {
        let mut below = |most: u64| {
            let drawn = chance % most;
            chance /= most;
            drawn
        };
        match below(52) {
            0..20 => Self::Admit(EFFECTS[below(4) as usize]),
            20..40 => {
                let slow = below(5) == 0;
                let end = match below(15) {
                    0..6 => End::Success { slow },
                    6..12 => End::Failure { slow },
                    12 => End::Permanent { answered: true },
                    13 => End::Permanent { answered: false },
                    _ => End::Neither,
                };
                Self::End(below(1 << 16) as usize, end)
            }
            40..44 => Self::Advance(below(40)),
            44..47 => Self::Advance(below(700)),
            47..51 => Self::Look,
            _ => match below(9) {
                0..3 => Self::ForceOpen,
                3..6 => Self::Reset,
                which => {
                    Self::Mode([Mode::Enforce, Mode::Shadow, Mode::Disabled][which as usize - 6])
                }
            },
        }
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    let rules = (1_u32..7, 0.1..=1.0_f64, 1_u64..400, any::<[bool; 4]>());
    let probes = (1_u32..3, 1_u32..4, prop::option::of(1_u64..300));
    let slow = prop::option::of(0.3..=1.0_f64);
    (rules, 1_u32..12, 1_u32..6, 1_u64..1_000, probes, slow).prop_map(
        |((run, rate, cooldown, on), window, min_calls, rolling, probes, slow)| {
            let (max_probes, wins, lease) = probes;
            let ms = Duration::from_millis;
            let mut builder = Builder::by_effect()
                .consecutive_failures(on[0].then_some(run))
                .failure_rate((on[1] || !on[0]).then_some(rate))
                .cooldown(ms(cooldown))
                .window(window)
                .min_calls(min_calls.min(window))
                .rolling((on[3] || rolling > 100).then_some(ms(rolling)))
                .max_probes(max_probes)
                .successes_to_close(wins);
            if let Some(lease) = lease {
                builder = builder.probe_lease(ms(lease));
            }
            if let Some(rate) = slow.filter(|_| on[2]) {
                builder = builder.slow_calls(ms(1), rate);
            }
            builder.clone().build().expect("within the ranges");
            builder.options.settings()
        },
    )
}

/// What the circuit should be, the long way.
struct Model {
    settings: Settings,
    mode: Mode,
    is: Is,
    /// Counts the changes.
    epoch: u32,
    /// Every call of the period, with the time at which it is taken to have ended.
    calls: Vec<(Instant, End)>,
    /// When the clock was last looked at for a call.
    noted: Option<Instant>,
    open_until: Option<Instant>,
    /// Number of the call, and when its lease ends.
    probes: Vec<(usize, Instant, Option<Effect>)>,
    wins: u32,
    edges: Vec<(Is, Is)>,
}

impl Model {
    fn go(&mut self, to: Is) {
        if self.is != to {
            self.edges.push((self.is, to));
        }
        (self.is, self.epoch, self.wins) = (to, self.epoch + 1, 0);
        self.probes.clear();
        if to == Is::Closed {
            self.calls.clear();
            self.noted = None;
        }
    }

    fn open(&mut self, at: Instant, effect: Option<Effect>) {
        self.open_until = Some(at + self.settings.rules(effect).cooldown);
        self.go(Is::Open);
    }

    fn pass_time(&mut self, now: Instant) {
        loop {
            let hung =
                self.probes.iter().map(|(_, end, effect)| (*end, *effect)).min_by_key(|p| p.0);
            match (self.is, self.open_until, hung) {
                (Is::Open, Some(until), _) if now >= until => self.go(Is::HalfOpen),
                (Is::HalfOpen, _, Some((end, effect))) if now >= end => self.open(end, effect),
                _ => return,
            }
        }
    }

    /// `None`: refused.
    fn admit(&mut self, call: usize, effect: Option<Effect>, now: Instant) -> Option<Admitted> {
        match self.is {
            Is::Closed if self.mode == Mode::Disabled => Some(Admitted::Free),
            Is::Closed => Some(Admitted::Counted(self.epoch)),
            Is::HalfOpen if self.probes.len() < self.settings.max_probes as usize => {
                self.probes.push((call, now + self.settings.lease(effect), effect));
                Some(Admitted::Counted(self.epoch))
            }
            _ => None,
        }
    }

    fn end(&mut self, call: usize, epoch: u32, effect: Option<Effect>, end: End, now: Instant) {
        if epoch != self.epoch {
            return;
        }
        if self.is == Is::HalfOpen {
            self.probes.retain(|(probe, ..)| *probe != call);
            match end {
                End::Success { slow: false } | End::Permanent { answered: true }
                    if self.wins + 1 == self.settings.successes_to_close =>
                {
                    self.go(Is::Closed);
                }
                End::Success { slow: false } | End::Permanent { answered: true } => self.wins += 1,
                End::Success { .. } | End::Failure { .. } => self.open(now, effect),
                End::Permanent { answered: false } | End::Neither => {}
            }
            return;
        }
        let lap_is_over = self.noted.is_none_or(|noted| now >= noted + self.settings.derived.lap);
        match end {
            End::Success { slow: false } if lap_is_over => self.noted = Some(now),
            End::Success { slow: true } | End::Failure { .. } => self.noted = Some(now),
            _ => {}
        }
        self.calls.push((self.noted.unwrap_or(now), end));
        if matches!(end, End::Success { .. } | End::Failure { .. }) && self.should_open(effect, now)
        {
            self.open(now, effect);
        }
    }

    fn should_open(&self, effect: Option<Effect>, now: Instant) -> bool {
        let (rules, settings) = (self.settings.rules(effect), &self.settings);
        let young = |at: &Instant| now.duration_since(*at) <= settings.rolling;
        let said = || self.calls.iter().rev().filter(|(_, end)| *end != End::Neither);
        let run = said().take_while(|(_, end)| matches!(end, End::Failure { .. }));
        let run = run.filter(|(at, _)| young(at)).count();

        let window = said().filter(|(at, end)| young(at) && !matches!(end, End::Permanent { .. }));
        let window: Vec<End> = window.take(settings.window as usize).map(|call| call.1).collect();
        let share = |is: fn(&End) -> bool| {
            window.iter().filter(|end| is(end)).count() as f64 / window.len() as f64
        };
        let failed = share(|end| matches!(end, End::Failure { .. }));
        let slow =
            share(|end| matches!(end, End::Failure { slow: true } | End::Success { slow: true }));
        rules.consecutive.is_some_and(|n| run >= n as usize)
            || window.len() >= settings.min_calls as usize
                && (rules.rate.is_some_and(|rate| failed >= rate)
                    || settings.slow.is_some_and(|rule| slow >= rule.rate))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Admitted {
    Free,
    Counted(u32),
}

#[derive(Debug, Default)]
struct Edges(Mutex<Vec<(Is, Is)>>);

impl Observer for Edges {
    fn on_event(&self, _: &CallInfo<'_>, event: &Event<'_>) {
        if let Event::Breaker { from, to, .. } = event {
            self.0.lock().unwrap().push((*from, *to));
        }
    }
}

fn check(settings: Settings, steps: &[Step]) -> Result<(), TestCaseError> {
    let (edges, observers) = (Arc::new(Edges::default()), Observers::default());
    observers.add(edges.clone());
    let mut now = crate::clock::now();
    let key = KeyRef::new("tool");
    let circuit = KeyedCircuit::new(key, "tool", Arc::new(settings.clone()), Arc::new(observers));
    let mut model = Model {
        mode: settings.mode,
        settings,
        is: Is::Closed,
        epoch: 0,
        calls: Vec::new(),
        noted: None,
        open_until: None,
        probes: Vec::new(),
        wins: 0,
        edges: Vec::new(),
    };
    let mut flying = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        model.pass_time(now);
        match *step {
            Step::Advance(ms) => now += Duration::from_millis(ms),
            Step::Look => prop_assert_eq!(circuit.state(now), model.is),
            Step::Admit(effect) => {
                match (circuit.admit(effect, None, || now), model.admit(number, effect, now)) {
                    (Ok(None), expected) => prop_assert_eq!(expected, Some(Admitted::Free)),
                    (Ok(Some(ticket)), Some(Admitted::Counted(epoch))) => {
                        flying.push((ticket, number, epoch));
                    }
                    (Err(refusal), None) => {
                        prop_assert_eq!(refusal.state, model.is);
                        prop_assert_eq!(refusal.shadow, model.mode == Mode::Shadow);
                        let until = model.open_until.filter(|_| model.is == Is::Open);
                        prop_assert_eq!(refusal.left, until.map(|until| until - now));
                    }
                    (got, expected) => prop_assert!(false, "{got:?}, expected {expected:?}"),
                }
            }
            Step::End(which, end) if !flying.is_empty() => {
                let (ticket, call, epoch) = flying.swap_remove(which % flying.len());
                match end {
                    End::Success { slow: false } => {
                        circuit.succeed(ticket, None, || CoarseInstant::at(now));
                    }
                    end => circuit.end(ticket, end, now, None),
                }
                model.end(call, epoch, ticket.effect, end, now);
            }
            Step::End(..) => {}
            Step::ForceOpen => {
                circuit.control(now, Circuit::force_open);
                if model.mode == Mode::Disabled {
                    model.mode = Mode::Enforce;
                }
                model.go(Is::ForcedOpen);
            }
            Step::Reset => {
                circuit.control(now, Circuit::reset);
                model.mode = Mode::Enforce;
                model.go(Is::Closed);
            }
            Step::Mode(mode) => {
                circuit.control(now, |circuit| circuit.set_mode(mode));
                if mode == Mode::Disabled {
                    model.go(Is::Closed);
                }
                model.mode = mode;
            }
        }
    }
    model.pass_time(now);
    prop_assert_eq!(circuit.state(now), model.is);
    prop_assert_eq!(&*edges.0.lock().unwrap(), &model.edges);
    Ok(())
}

#[test]
fn a_clock_put_back_prolongs_no_refusal_and_a_stale_stamp_ends_none() {
    let ms = Duration::from_millis;
    let mut settings = Builder::close_on_first_success().consecutive_failures(1).options.settings();
    settings.rules.iter_mut().for_each(|rules| rules.cooldown = ms(30));
    let settings = settings.derive();
    let circuit =
        KeyedCircuit::new(KeyRef::new("tool"), "tool", Arc::new(settings), Arc::default());
    let opened = crate::clock::now() + Duration::from_secs(1_000);
    let admit = |at: Instant| circuit.admit(None, None, || at);
    let ticket = admit(opened).unwrap().expect("it is closed");
    circuit.end(ticket, End::Failure { slow: false }, opened, None);

    let left = |at: Instant| {
        let refusal = circuit.refuse(|| CoarseInstant::at(at));
        refusal.map(|refusal| refusal.left)
    };
    assert_eq!(left(opened), Some(Some(ms(30))));
    assert_eq!(left(opened + ms(29)), Some(Some(ms(1))));
    assert_eq!(left(opened + ms(30)), None, "somebody has to decide");
    assert_eq!(left(opened - ms(1)), None, "it was not open then");

    // The clock itself was put back, far.
    let back = opened - Duration::from_secs(900);
    assert!(admit(back).is_err());
    assert_eq!(left(back + ms(10)), Some(Some(ms(20))), "it starts again, and is no longer");
    assert!(matches!(admit(back + ms(30)), Ok(Some(_))));
    assert_eq!(circuit.state(back + ms(30)), Is::HalfOpen);
}

proptest! {
    // More than a million steps; more by PROPTEST_CASES. Long schedules, so that a breaker comes
    // around many times.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(800),
        ..ProptestConfig::default()
    })]

    #[test]
    fn does_what_the_obvious_model_does(
        settings in settings(),
        chances in prop::collection::vec(any::<u64>(), 1_000..2_000),
    ) {
        let steps: Vec<_> = chances.into_iter().map(Step::drawn).collect();
        check(settings, &steps)?;
    }
}
