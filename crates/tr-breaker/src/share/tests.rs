//! Models processes that share breakers through one Redis over a network that loses, delays and repeats requests: in
//! the end all processes agree.
use super::{entry::Entry, fleet::Fleet, merge::Offer};
use crate::{
    BreakerLayer, Mode, Registry,
    changed::{Changed, ChangedBreakers},
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

/// What the scripts keep: by breaker, the epoch, the process that published it, its offer, and when it arrived.
#[derive(Default)]
struct Redis {
    entries: BTreeMap<String, (u64, usize, Offer, u64)>,
    era: u32,
}

/// A request to publish.
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
    changed: Arc<ChangedBreakers>,
    fleet: Fleet,
    era: u32,
}

/// What the network does with the requests of one sync.
#[derive(Clone, Copy, Debug)]
enum Network {
    Delivered,
    Lost,
    ReplyLost,
    Delayed,
    Duplicated,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    Fail(usize, usize),
    Succeed(usize, usize),
    Force(usize, usize),
    Reset(usize, usize),
    Order(usize, usize, Mode),
    Sync(usize, Network),
    /// A delayed request arrives.
    Arrive(usize),
    /// A process receives again what some process has read.
    Echo(usize, usize),
    LoseData,
}

struct World {
    redis: Redis,
    processes: Vec<Process>,
    delayed: Vec<Request>,
    /// What was read, and when.
    replies: Vec<(std::time::Instant, Vec<(String, Entry)>)>,
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
            let (registry, changed) = (layer.registry().clone(), Arc::<ChangedBreakers>::default());
            assert!(registry.breakers().observers().set_changes(&changed));
            let mut fleet = Fleet::new(registry.breakers());
            fleet.begin(clock::now());
            Process { registry, changed, fleet, era: 0 }
        };
        Self {
            redis: Redis::default(),
            processes: (0..PROCESSES).map(process).collect(),
            delayed: Vec::new(),
            replies: Vec::new(),
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

    fn read_and_receive(&mut self, process: usize) {
        let entries = self.read(process);
        self.receive(process, &entries);
        self.replies.push((clock::now(), entries));
    }

    fn receive(&mut self, process: usize, entries: &[(String, Entry)]) {
        for (name, entry) in entries {
            assert!(self.processes[process].fleet.receive(name, entry, clock::now()));
        }
    }

    /// One round of a process, as `rounds.rs` runs it.
    fn sync(&mut self, index: usize, network: Network) {
        let now = clock::now();
        let Process { changed, fleet, .. } = &mut self.processes[index];
        fleet.look(changed.take(), now);
        if matches!(network, Network::Lost) {
            return;
        }
        self.read_and_receive(index);
        if self.processes[index].era != self.redis.era {
            self.processes[index].era = self.redis.era;
            for (name, offer) in self.processes[index].fleet.repeats(now) {
                self.publish(index, name, offer, network);
            }
        }
        for name in self.processes[index].fleet.pending() {
            for _ in 0..3 {
                let offer = self.processes[index].fleet.offer(&name, now);
                let Some(offer) = offer else { break };
                self.publish(index, name.clone(), offer, network);
            }
        }
        if matches!(network, Network::ReplyLost | Network::Delayed) {
            // Its next connection leads to a Redis that it does not know.
            self.processes[index].era = u32::MAX;
        }
    }

    fn publish(&mut self, from: usize, name: Arc<str>, offer: Offer, network: Network) {
        let request = Request { from, name, offer, latest: self.micros() + 2_000_000 };
        if let Network::Delayed = network {
            return self.delayed.push(request);
        }
        let answer = self.arrive(&request);
        if let Network::Duplicated = network {
            self.arrive(&request);
        }
        match answer {
            _ if matches!(network, Network::ReplyLost) => {}
            Answer::Done(epoch) if offer.is_new => {
                self.processes[from].fleet.taken(&request.name, &offer, epoch, clock::now());
            }
            Answer::Have => self.read_and_receive(from),
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
            Step::Sync(process, network) => self.sync(process, network),
            Step::Arrive(at) if !self.delayed.is_empty() => {
                let request = self.delayed.swap_remove(at % self.delayed.len());
                self.arrive(&request);
            }
            Step::Echo(process, at) if !self.replies.is_empty() => {
                let (then, mut entries) = self.replies[at % self.replies.len()].clone();
                // `mine` is true only for the process that read it.
                entries.retain(|(_, entry)| !entry.mine);
                let passed = clock::now() - then;
                for (_, Entry { age, decision, .. }) in &mut entries {
                    *age = age.saturating_add(passed);
                    if let State::Open { left } = &mut decision.state {
                        *left = left.saturating_sub(passed);
                    }
                }
                self.receive(process, &entries);
            }
            Step::Arrive(_) | Step::Echo(..) => {}
            Step::LoseData => {
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
    let network = prop_oneof![
        4 => Just(Network::Delivered), 1 => Just(Network::Lost), 1 => Just(Network::ReplyLost),
        1 => Just(Network::Delayed), 1 => Just(Network::Duplicated),
    ];
    let step = prop_oneof![
        4 => (1..3_000_u64).prop_map(Step::Wait),
        1 => (50_000..70_000_u64).prop_map(Step::Wait),
        6 => both.clone().prop_map(|(process, name)| Step::Fail(process, name)),
        3 => both.clone().prop_map(|(process, name)| Step::Succeed(process, name)),
        1 => both.clone().prop_map(|(process, name)| Step::Force(process, name)),
        2 => both.clone().prop_map(|(process, name)| Step::Reset(process, name)),
        1 => (both, mode).prop_map(|((process, name), mode)| Step::Order(process, name, mode)),
        9 => (process.clone(), network).prop_map(|(process, network)| Step::Sync(process, network)),
        2 => any::<usize>().prop_map(Step::Arrive),
        2 => (process, any::<usize>()).prop_map(|(process, at)| Step::Echo(process, at)),
        1 => Just(Step::LoseData),
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
            // From here on the network delivers everything.
            advance(Duration::from_millis(1)).await;
            for _ in 0..4 {
                (0..PROCESSES).for_each(|process| world.sync(process, Network::Delivered));
            }
            for name in NAMES {
                let views = world.views(name);
                let agree = |one: &(State, Mode), other: &(State, Mode)| match (one, other) {
                    ((State::Open { left: a }, m), (State::Open { left: b }, n)) => {
                        // The longest time that a request may take.
                        m == n && a.abs_diff(*b) <= Duration::from_millis(2_001)
                    }
                    _ => one == other,
                };
                assert!(views.windows(2).all(|two| agree(&two[0], &two[1])), "{name}: {views:?}");
            }
            // Requests and replies that arrive later than that change nothing.
            let before: Vec<_> = NAMES.iter().map(|name| world.views(name)).collect();
            advance(Duration::from_millis(2_001)).await;
            for request in std::mem::take(&mut world.delayed) {
                assert!(matches!(world.arrive(&request), Answer::Late));
            }
            for (_, entries) in std::mem::take(&mut world.replies) {
                let others: Vec<_> = entries.into_iter().filter(|(_, entry)| !entry.mine).collect();
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

#[tokio::test(start_paused = true)]
async fn after_more_changes_than_names_are_kept_all_breakers_are_inspected() {
    let layer = BreakerLayer::builder().build().unwrap();
    let mut fleet = Fleet::new(layer.registry().breakers());
    layer.registry().breaker(KeyRef::new("one")).force_open();
    let now = clock::now();
    fleet.look(Changed::default(), now);
    assert!(fleet.pending().is_empty());
    fleet.look(Changed { is_cut: true, ..Changed::default() }, now);
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
