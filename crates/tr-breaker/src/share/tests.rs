//! Processes that share, with a Redis and a network that do all they may do: all agree in the end.
use super::{
    entry::Entry,
    fleet::Fleet,
    merge::Offer,
    news::{News, Touched},
};
use crate::{
    BreakerLayer, Mode, Registry,
    circuit::End,
    clock,
    decision::{State, View},
    settings::EffectClass,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{runtime::Builder, time::advance};
use tr_core::KeyRef;

const NAMES: [&str; 2] = ["one", "other"];
const PROCESSES: usize = 3;
const COOLDOWN: Duration = Duration::from_secs(60);

/// What the scripts do, as a table: an entry, and when it ends.
#[derive(Default)]
struct Redis {
    entries: BTreeMap<String, (u64, usize, Offer, u64)>,
    era: u32,
}

/// A request on its way.
#[derive(Clone)]
struct Request {
    from: usize,
    name: Arc<str>,
    offer: Offer,
    latest: u64,
}

enum Answer {
    Done(u64),
    Have,
    Late,
}

struct Process {
    registry: Registry,
    news: Arc<News>,
    fleet: Fleet,
    era: u32,
}

/// What becomes of the requests of one turn.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Fine,
    Lost,
    ReplyLost,
    Late,
    Twice,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    Fail(usize, usize),
    Succeed(usize, usize),
    Force(usize, usize),
    Reset(usize, usize),
    Order(usize, usize, Mode),
    Turn(usize, Fate),
    /// A request that was late arrives.
    Arrive(usize),
    /// A process hears once more what some process heard before.
    Echo(usize, usize),
    Empty,
}

struct World {
    redis: Redis,
    processes: Vec<Process>,
    late: Vec<Request>,
    /// What was heard, and when: a reply that takes long is dropped, so how long is known.
    heard: Vec<(std::time::Instant, Vec<(String, Entry)>)>,
    zero: std::time::Instant,
    /// Requests so far: no two arrive in one microsecond.
    arrived: u64,
}

impl World {
    fn new() -> Self {
        let process = |_| {
            let layer = BreakerLayer::builder()
                .consecutive_failures(1)
                .cooldown(COOLDOWN)
                .successes_to_close(1)
                .build()
                .unwrap();
            let (registry, news) = (layer.registry().clone(), Arc::<News>::default());
            assert!(registry.breakers().observers().set_changes(news.as_changes()));
            let mut fleet = Fleet::new(registry.breakers());
            fleet.begin(clock::now());
            Process { registry, news, fleet, era: 0 }
        };
        Self {
            redis: Redis::default(),
            processes: (0..PROCESSES).map(process).collect(),
            late: Vec::new(),
            heard: Vec::new(),
            zero: clock::now(),
            arrived: 0,
        }
    }

    /// The server's clock: far from any other.
    fn micros(&self) -> u64 {
        1_000_000_000 + (clock::now() - self.zero).as_micros() as u64 + self.arrived
    }

    fn arrive(&mut self, request: &Request) -> Answer {
        self.arrived += 1;
        let now = self.micros();
        if now > request.latest {
            return Answer::Late;
        }
        let Request { from, name, offer, .. } = request;
        let current = self.redis.entries.get(&**name).map_or(0, |entry| entry.0);
        if current > offer.epoch || (current == offer.epoch && !offer.is_new) {
            return Answer::Have;
        }
        let epoch = if offer.is_new { now.max(offer.epoch + 1) } else { offer.epoch };
        self.redis.entries.insert(name.to_string(), (epoch, *from, *offer, now));
        Answer::Done(epoch)
    }

    fn read(&self, process: usize) -> Vec<(String, Entry)> {
        let now = self.micros();
        let entry = |(name, (epoch, origin, offer, at)): (&String, &(u64, usize, Offer, u64))| {
            let passed = Duration::from_micros(now - at);
            let mut decision = offer.decision;
            if let State::Open { left } = &mut decision.state {
                *left = left.saturating_sub(passed);
            }
            let age = offer.age.saturating_add(passed);
            (name.clone(), Entry { epoch: *epoch, mine: *origin == process, age, decision })
        };
        self.redis.entries.iter().map(entry).collect()
    }

    fn hear(&mut self, process: usize) {
        let heard = self.read(process);
        self.receive(process, &heard);
        self.heard.push((clock::now(), heard));
    }

    fn receive(&mut self, process: usize, heard: &[(String, Entry)]) {
        for (name, entry) in heard {
            assert!(self.processes[process].fleet.receive(name, entry, clock::now()));
        }
    }

    /// As the sharing task does it.
    fn turn(&mut self, index: usize, fate: Fate) {
        let now = clock::now();
        let Process { news, fleet, .. } = &mut self.processes[index];
        fleet.look(news.take(), now);
        if matches!(fate, Fate::Lost) {
            return;
        }
        self.hear(index);
        if self.processes[index].era != self.redis.era {
            self.processes[index].era = self.redis.era;
            for (name, offer) in self.processes[index].fleet.repeats(now) {
                self.tell(index, name, offer, fate);
            }
        }
        for name in self.processes[index].fleet.pending() {
            for _ in 0..3 {
                let offer = self.processes[index].fleet.offer(&name, now);
                let Some(offer) = offer else { break };
                self.tell(index, name.clone(), offer, fate);
            }
        }
        if matches!(fate, Fate::ReplyLost | Fate::Late) {
            // Its next connection leads to a Redis that it does not know.
            self.processes[index].era = u32::MAX;
        }
    }

    fn tell(&mut self, from: usize, name: Arc<str>, offer: Offer, fate: Fate) {
        let request = Request { from, name, offer, latest: self.micros() + 2_000_000 };
        if let Fate::Late = fate {
            return self.late.push(request);
        }
        let answer = self.arrive(&request);
        if let Fate::Twice = fate {
            self.arrive(&request);
        }
        match answer {
            _ if matches!(fate, Fate::ReplyLost) => {}
            Answer::Done(epoch) if offer.is_new => {
                self.processes[from].fleet.taken(&request.name, &offer, epoch, clock::now());
            }
            Answer::Have => self.hear(from),
            Answer::Done(_) | Answer::Late => {}
        }
    }

    /// One call ends, if the breaker lets it through.
    fn call(&mut self, process: usize, name: usize, end: End) {
        let now = clock::now();
        let breakers = self.processes[process].registry.breakers();
        let circuit = breakers.get_or_make(KeyRef::new(NAMES[name]));
        circuit.inspect(now, |circuit, _| {
            if let Ok(Some(ticket)) = circuit.admit(EffectClass::Undeclared, now) {
                circuit.end(ticket, end, now);
            }
        });
    }

    async fn step(&mut self, step: Step) {
        let breaker = |process: usize, name: usize| {
            self.processes[process].registry.breaker(KeyRef::new(NAMES[name]))
        };
        match step {
            Step::Wait(millis) => advance(Duration::from_millis(millis)).await,
            Step::Fail(process, name) => self.call(process, name, End::Failure { slow: false }),
            Step::Succeed(process, name) => self.call(process, name, End::Success { slow: false }),
            Step::Force(process, name) => breaker(process, name).force_open(),
            Step::Reset(process, name) => breaker(process, name).reset(),
            Step::Order(process, name, mode) => match mode {
                Mode::Enforce => breaker(process, name).enforce(),
                Mode::Shadow => breaker(process, name).shadow(),
                Mode::Disabled => breaker(process, name).disable(),
            },
            Step::Turn(process, fate) => self.turn(process, fate),
            Step::Arrive(at) if !self.late.is_empty() => {
                let request = self.late.swap_remove(at % self.late.len());
                self.arrive(&request);
            }
            Step::Echo(process, at) if !self.heard.is_empty() => {
                let (then, mut heard) = self.heard[at % self.heard.len()].clone();
                // Whose it is depends on who hears it.
                heard.retain(|(_, entry)| !entry.mine);
                let passed = clock::now() - then;
                for (_, Entry { age, decision, .. }) in &mut heard {
                    *age = age.saturating_add(passed);
                    if let State::Open { left } = &mut decision.state {
                        *left = left.saturating_sub(passed);
                    }
                }
                self.receive(process, &heard);
            }
            Step::Arrive(_) | Step::Echo(..) => {}
            Step::Empty => {
                self.redis = Redis { era: self.redis.era + 1, ..Redis::default() };
            }
        }
    }

    fn view(&self, process: usize, name: &str) -> View {
        let circuit = self.processes[process].registry.breakers().get_or_make(KeyRef::new(name));
        circuit.inspect(clock::now(), |circuit, _| circuit.view(clock::now()))
    }

    /// The state and the mode of a breaker in each process that is not half open.
    fn views(&self, name: &str) -> Vec<(State, Mode)> {
        let views = (0..PROCESSES).map(|process| self.view(process, name));
        views.filter_map(|view| Some((view.state?, view.mode))).collect()
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (process, name) = (0..PROCESSES, 0..NAMES.len());
    let both = (process.clone(), name);
    let mode = prop_oneof![Just(Mode::Enforce), Just(Mode::Shadow), Just(Mode::Disabled)];
    let fate = prop_oneof![
        4 => Just(Fate::Fine), 1 => Just(Fate::Lost), 1 => Just(Fate::ReplyLost),
        1 => Just(Fate::Late), 1 => Just(Fate::Twice),
    ];
    let step = prop_oneof![
        4 => (1..3_000_u64).prop_map(Step::Wait),
        1 => (50_000..70_000_u64).prop_map(Step::Wait),
        6 => both.clone().prop_map(|(process, name)| Step::Fail(process, name)),
        3 => both.clone().prop_map(|(process, name)| Step::Succeed(process, name)),
        1 => both.clone().prop_map(|(process, name)| Step::Force(process, name)),
        2 => both.clone().prop_map(|(process, name)| Step::Reset(process, name)),
        1 => (both, mode).prop_map(|((process, name), mode)| Step::Order(process, name, mode)),
        9 => (process.clone(), fate).prop_map(|(process, fate)| Step::Turn(process, fate)),
        2 => any::<usize>().prop_map(Step::Arrive),
        2 => (process, any::<usize>()).prop_map(|(process, at)| Step::Echo(process, at)),
        1 => Just(Step::Empty),
    ];
    prop::collection::vec(step, 1..80)
}

fn within(future: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tr_testkit::rounds(256, 20_000) as u32))]

    #[test]
    fn all_agree_in_the_end(steps in steps()) {
        within(async {
            let mut world = World::new();
            for step in steps {
                world.step(step).await;
            }
            // From here on all goes well.
            advance(Duration::from_millis(1)).await;
            for _ in 0..4 {
                (0..PROCESSES).for_each(|process| world.turn(process, Fate::Fine));
            }
            for name in NAMES {
                let views = world.views(name);
                let agree = |one: &(State, Mode), other: &(State, Mode)| match (one, other) {
                    ((State::Open { left: a }, m), (State::Open { left: b }, n)) => {
                        // As long as a request may be under way.
                        m == n && a.abs_diff(*b) <= Duration::from_millis(2_001)
                    }
                    _ => one == other,
                };
                assert!(views.windows(2).all(|two| agree(&two[0], &two[1])), "{name}: {views:?}");
            }
            // And nothing that comes late after that changes it.
            let before: Vec<_> = NAMES.iter().map(|name| world.views(name)).collect();
            advance(Duration::from_millis(2_001)).await;
            for request in std::mem::take(&mut world.late) {
                assert!(matches!(world.arrive(&request), Answer::Late));
            }
            for (_, heard) in std::mem::take(&mut world.heard) {
                let others: Vec<_> = heard.into_iter().filter(|(_, entry)| !entry.mine).collect();
                (0..PROCESSES).for_each(|process| world.receive(process, &others));
            }
            let kinds = |views: &[(State, Mode)]| {
                views.iter().map(|(state, mode)| (std::mem::discriminant(state), *mode)).collect::<Vec<_>>()
            };
            for (name, before) in NAMES.iter().zip(&before) {
                let after = world.views(name);
                // Some may have become half open meanwhile.
                if after.len() == before.len() {
                    assert_eq!(kinds(&after), kinds(before), "{name}");
                }
            }
        });
    }
}

mod rules;

/// So many breakers changed that not all of their names were kept.
#[tokio::test(start_paused = true)]
async fn where_names_were_not_kept_all_breakers_are_looked_at() {
    let layer = BreakerLayer::builder().build().unwrap();
    let mut fleet = Fleet::new(layer.registry().breakers());
    layer.registry().breaker(KeyRef::new("one")).force_open();
    let now = clock::now();
    fleet.look(Touched::default(), now);
    assert!(fleet.pending().is_empty());
    fleet.look(Touched { is_cut: true, ..Touched::default() }, now);
    assert_eq!(fleet.pending().len(), 1);
}

#[cfg(not(feature = "redis-tls"))]
#[test]
fn an_address_that_asks_for_tls_is_an_error_that_names_the_feature() {
    let layer = BreakerLayer::default();
    let error =
        super::Sharing::builder("rediss://:secret@host").build(layer.registry()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`redis-tls`") && !text.contains("secret"), "{text}");
}
