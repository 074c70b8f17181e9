//! One round of clients over HTTP: payments; kills of guards and servers, and cut connections, at random moments;
//! and what must hold afterwards.
use crate::{
    agent::{Agent, Heard, Said},
    call::Call,
    payment::{Cut, Payment, Unnamed},
    process::{Listener, PATIENCE, kill, now},
    round::{Pace, STEP, Victim},
    shop::{Shop, Way},
    tally::Tally,
};
use fastrand::Rng;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::Instant,
};

/// How often a call that did not run is sent again before something is wrong.
const TRIES: usize = 20;

/// A guard, and its client.
struct Guard {
    agent: Arc<Agent>,
    address: String,
    process: Option<Listener>,
    /// The number of its start among all of the round.
    start: usize,
}

/// A request.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: usize,
    guard: usize,
    /// Whether its client knew the end of the call when it sent this.
    is_known: bool,
}

struct Round<'a> {
    shop: &'a Shop,
    way: Way,
    bank: Option<Listener>,
    guards: Vec<Guard>,
    heard: Receiver<Heard>,
    mark: String,
    rng: Rng,
    payments: Vec<Payment>,
    asked: HashMap<u64, Asked>,
    /// The requests whose connections the client has cut.
    cuts: HashMap<u64, Cut>,
    last_id: u64,
    starts: usize,
    tally: Tally,
    /// What happened, as a failure prints it.
    story: Vec<String>,
}

/// Measures one calm round in this shop.
pub(crate) fn pace(shop: &Shop, way: Way) -> Result<Pace, String> {
    let mut rng = Rng::with_seed(0);
    let call = Call::random(&mut rng, format!("calm-{}", Shop::mark()));
    let mut round = Round::new(shop, way, rng, 1, vec![call]);
    round.open_bank();
    let begin = now();
    round.open_guards(false);
    let start = begin.elapsed();
    let begin = now();
    let mut open = round.send(true);
    round.hear_all(&mut open)?;
    let pace = Pace { start, calls: begin.elapsed() };
    round.end();
    Ok(pace)
}

/// Plays a round; its number is in the names of its payments, and in an error.
///
/// # Errors
/// If a payment was made twice, or never although its receipt was read; if an answer is missing, is of no known
/// form, or contradicts an earlier one; or if the records' file is damaged.
pub(crate) fn play(
    shop: &Shop,
    way: Way,
    pace: Pace,
    mut rng: Rng,
    number: u64,
) -> Result<Tally, String> {
    let (count, guards) = (rng.usize(1..=4), 1 + usize::from(rng.u8(0..3) == 0));
    let calls = (0..count).map(|call| {
        let kind = rng.u8(0..5).saturating_sub(1);
        Call::of(kind, &mut rng, format!("{number}-{call}"))
    });
    let calls: Vec<_> = calls.collect();
    let mut round = Round::new(shop, way, rng, guards, calls);
    match round.run(pace) {
        Ok(()) => Ok(round.tally),
        Err(wrong) => {
            let story = round.story.join("\n");
            Err(format!("round {number}, {way:?}: {wrong}\n{story}\n{:?}", round.payments))
        }
    }
}

impl<'a> Round<'a> {
    fn new(shop: &'a Shop, way: Way, mut rng: Rng, guards: usize, calls: Vec<Call>) -> Self {
        let (sender, heard) = channel();
        let is_modern = rng.u8(0..3) == 0;
        let open = |number: usize| {
            let address = shop.address(number + 1);
            let agent = Agent::new(address.clone(), is_modern, sender.clone());
            Guard { agent, address, process: None, start: 0 }
        };
        let all = (0..guards).map(open).collect();
        let mut tally = Tally::of(way, calls.len());
        tally.pairs = u64::from(guards > 1);
        let payments = calls.into_iter().map(|call| Payment::new(call, rng.usize(0..guards)));
        Self {
            shop,
            way,
            bank: None,
            guards: all,
            heard,
            mark: Shop::mark(),
            payments: payments.collect(),
            rng,
            asked: HashMap::new(),
            cuts: HashMap::new(),
            last_id: 0,
            starts: 0,
            tally,
            story: Vec::new(),
        }
    }

    fn run(&mut self, pace: Pace) -> Result<(), String> {
        self.strike(pace)?;
        while self.rng.u8(0..3) == 0 {
            self.strike(pace)?;
        }
        self.settle()?;
        self.end();
        self.shop.check()?;
        for payment in &self.payments {
            let call = &payment.call;
            let end = payment.end().ok_or_else(|| format!("{} was never answered", call.order))?;
            self.tally.end(call, end, self.shop.paid(&call.order))?;
        }
        Ok(())
    }

    /// Ends all guards and the server, and waits until nothing is left of them.
    fn end(&mut self) {
        for guard in &mut self.guards {
            if let Some(process) = guard.process.take() {
                process.leave();
            }
        }
        drop(self.bank.take());
        self.shop.until_empty(&self.mark);
    }

    /// Starts the server over HTTP, if there is to be one and it is down.
    fn open_bank(&mut self) {
        if self.way.has_address() && self.bank.is_none() {
            self.bank = Some(self.shop.bank(&self.mark));
        }
    }

    /// Starts the guards that are down, and waits for sessions with all unless it is `early`.
    fn open_guards(&mut self, early: bool) {
        for guard in &mut self.guards {
            if guard.process.is_none() {
                self.starts += 1;
                guard.start = self.starts;
                let (mark, address) = (&self.mark, &guard.address);
                guard.process = Some(self.shop.listen(self.way, mark, self.starts, address));
                guard.agent.guard_is_up(true);
            }
            if let Some(process) = guard.process.as_mut().filter(|_| !early) {
                process.listen();
                guard.agent.greet();
            }
        }
    }

    /// Sends all payments, and kills a process, or cuts connections, at a random moment.
    fn strike(&mut self, pace: Pace) -> Result<(), String> {
        let victim = Victim::ALL[self.rng.usize(0..3)];
        let target = self.rng.usize(0..self.guards.len());
        let is_new = self.guards[target].process.is_none();
        let early = is_new && victim == Victim::Guard && self.rng.u8(0..4) == 0;
        self.open_bank();
        self.open_guards(early);
        let mut open = self.send(true);
        let aims = self.rng.u8(0..3) == 0;
        let moment = now() + pace.moment(&mut self.rng, early) * if aims { 4 } else { 1 };
        while now() < moment && !(aims && self.is_between(&open)) {
            let step = if aims { now() + STEP } else { moment };
            if let Some(heard) = self.hear(step.min(moment)) {
                self.take(heard, &mut open)?;
            }
        }
        let in_flight = open.len() as u64;
        self.story.push(format!("{victim:?} {target} is struck, {open:?} are in flight"));
        match victim {
            Victim::Guard => {
                let guard = &mut self.guards[target];
                guard.agent.guard_is_up(false);
                guard.process.take().into_iter().for_each(|mut process| process.kill());
            }
            Victim::Server if self.way.has_address() => {
                drop(self.bank.take());
                self.tally.answered += in_flight;
            }
            Victim::Server => {
                let server = self.shop.last_server(&self.mark, self.guards[target].start);
                server.into_iter().for_each(kill);
                self.tally.answered += in_flight;
            }
            Victim::Client => self.cut(&open),
        }
        let when = if early { "as it starts" } else { "in its calls" };
        *self.tally.kills.entry((victim, when)).or_default() += 1;
        let is_hit = open.iter().any(|id| {
            let is_hit = victim == Victim::Server || self.cuts.contains_key(id);
            (is_hit || self.asked[id].guard == target)
                && self.shop.paid(&self.payments[self.asked[id].at].call.order) > 0
        });
        *self.tally.between.entry(victim).or_default() += u64::from(is_hit);
        // A server that is back soon, or after the guards have given it up.
        if self.rng.u8(0..4) > 0 {
            self.open_bank();
        }
        self.hear_all(&mut open)?;
        if self.rng.u8(0..4) == 0 {
            self.shop.check()?;
        }
        Ok(())
    }

    /// Whether the payment of one of these requests is made, and the server does not answer it yet.
    fn is_between(&self, open: &[u64]) -> bool {
        let order = |id: &u64| &self.payments[self.asked[id].at].call.order;
        open.iter().any(|id| self.shop.is_between(order(id)))
    }

    /// Cuts most of these requests' connections.
    fn cut(&mut self, open: &[u64]) {
        for &id in open {
            if self.rng.u8(0..4) == 0 {
                continue;
            }
            let Asked { at, guard, .. } = self.asked[&id];
            let session = self.guards[guard].agent.cut(id);
            // Read after the cut: what is not there yet comes later.
            let was_answered = self.shop.answers(&self.payments[at].call.order);
            self.story.push(format!("{id} is cut in {session:?}, answered: {was_answered}"));
            self.cuts.insert(id, Cut { id, session, was_answered, is_same_bytes: false });
        }
    }

    /// Starts guards that live, and sends payments until each has its answer.
    fn settle(&mut self) -> Result<(), String> {
        self.open_bank();
        let begin = now();
        self.open_guards(false);
        let read = |payment: &&Payment| payment.call.read.is_some();
        self.tally.kept += self.payments.iter().filter(read).count() as u64;
        let mut open = self.send(true);
        for _ in 0..TRIES {
            self.hear_all(&mut open)?;
            self.open_guards(false);
            open = self.send(false);
            self.tally.not_run += open.len() as u64;
            if open.is_empty() {
                self.tally.longest = begin.elapsed();
                return Ok(());
            }
        }
        Err(format!("after {TRIES} tries {open:?} have no answer"))
    }

    /// Waits until each of these requests has ended.
    fn hear_all(&mut self, open: &mut Vec<u64>) -> Result<(), String> {
        let end = now() + PATIENCE;
        while !open.is_empty() {
            let heard = self.hear(end);
            self.take(heard.ok_or_else(|| format!("{open:?} are not answered"))?, open)?;
        }
        Ok(())
    }

    fn hear(&self, until: Instant) -> Option<Heard> {
        match self.heard.recv_timeout(until.saturating_duration_since(now())) {
            Ok(heard) => Some(heard),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("the guards' clients have it"),
        }
    }

    /// Sends all payments, or those whose ends are not known, and gives the IDs of the requests.
    fn send(&mut self, all: bool) -> Vec<u64> {
        let mut due: Vec<_> = (0..self.payments.len()).collect();
        self.rng.shuffle(&mut due);
        let mut ids = Vec::new();
        for at in due {
            let Payment { call, unnamed, home } = &self.payments[at];
            let (is_known, home) = (call.end().is_some(), *home);
            match unnamed.clone() {
                None if !all && is_known => {}
                None => {
                    let first = self.rng.usize(0..self.guards.len());
                    ids.push(self.post(at, first, None));
                    if self.guards.len() > 1 && self.rng.bool() {
                        ids.push(self.post(at, 1 - first, None));
                    }
                }
                Some(Unnamed::Over) => {}
                Some(Unnamed::Due) => ids.push(self.post(at, home, None)),
                Some(Unnamed::Cut(mut cut)) => {
                    let session = self.guards[home].agent.session();
                    let may_be_same = session.is_some() && session == cut.session;
                    cut.is_same_bytes = may_be_same && (cut.was_answered || self.rng.bool());
                    let next = if cut.is_same_bytes {
                        ids.push(self.post(at, home, Some(cut.id)));
                        Unnamed::Cut(cut)
                    } else if !cut.was_answered {
                        ids.push(self.post(at, home, None));
                        Unnamed::Cut(cut)
                    } else {
                        Unnamed::Over
                    };
                    self.payments[at].unnamed = Some(next);
                }
            }
        }
        ids
    }

    /// Sends a request for this payment, under an ID of an earlier one or a new one.
    fn post(&mut self, at: usize, guard: usize, id: Option<u64>) -> u64 {
        let id = id.unwrap_or_else(|| {
            self.last_id += 1;
            self.last_id
        });
        self.story.push(format!("{id} asks guard {guard} for payment {at}"));
        let call = &self.payments[at].call;
        self.asked.insert(id, Asked { at, guard, is_known: call.end().is_some() });
        self.guards[guard].agent.post(id, call.request(id));
        id
    }

    /// Takes the end of a request in.
    fn take(&mut self, Heard { id, said }: Heard, open: &mut Vec<u64>) -> Result<(), String> {
        let Asked { at, guard, is_known } = self.asked[&id];
        open.retain(|other| *other != id);
        self.story.push(format!("{id} got {said:?}"));
        let cut = self.cuts.remove(&id);
        let payment = &mut self.payments[at];
        let guard = &self.guards[guard];
        match said {
            Said::Answer(message) => {
                if message["id"] != id {
                    return Err(format!("{id} got {message}"));
                }
                payment.answered(&message, is_known, &mut self.tally)?;
            }
            Said::Status(404, _) => {
                guard.agent.forget();
                self.tally.lost_sessions += 1;
            }
            _ if guard.process.is_none() => {
                payment.unnamed = payment.unnamed.take().map(|_| Unnamed::Over);
            }
            said => match cut.filter(|_| matches!(said, Said::Cut)) {
                Some(cut) => {
                    payment.unnamed = payment.unnamed.take().map(|_| Unnamed::Cut(cut));
                }
                None => {
                    let said = match said {
                        Said::Status(status, text) => format!("{status} {text}"),
                        said => format!("{said:?}"),
                    };
                    return Err(format!("request {id} got {said}"));
                }
            },
        }
        Ok(())
    }
}
