//! One round of a client on standard input and output: payments, kills at random moments, and what must hold afterwards.
use crate::{
    call::{Answer, Call},
    process::{Heard, Listener, PATIENCE, Process, kill, now},
    shop::{Shop, Way},
    tally::Tally,
};
use fastrand::Rng;
use serde_json::Value;
use std::{collections::HashMap, time::Duration};

/// How often it is looked for a moment that matters most: a payment is made and not answered. Some kills wait for it,
/// since it is short.
pub(crate) const STEP: Duration = Duration::from_micros(300);

/// How long things take here without a kill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) start: Duration,
    pub(crate) calls: Duration,
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Guard,
    Server,
    Client,
}

impl Victim {
    pub(crate) const ALL: [Self; 3] = [Self::Guard, Self::Server, Self::Client];
}

impl Pace {
    /// Measures one calm round in this shop.
    pub(crate) fn of(shop: &Shop, way: Way) -> Result<Self, String> {
        let mut rng = Rng::with_seed(0);
        let call = Call::random(&mut rng, format!("calm-{}", Shop::mark()));
        let mut round = Round::new(shop, way, rng, vec![call]);
        round.open_bank();
        let begin = now();
        let mut guard = round.start(false);
        round.greet(&guard)?;
        let start = begin.elapsed();
        let begin = now();
        let mut open = round.send(&mut guard, true);
        round.answers(&guard, &mut open)?;
        let pace = Self { start, calls: begin.elapsed() };
        guard.leave();
        Ok(pace)
    }

    /// A random moment of a guard's start, or of its calls, and a while after.
    pub(crate) fn moment(self, rng: &mut Rng, in_start: bool) -> Duration {
        let span = if in_start { self.start } else { self.calls };
        rng.u32(0..1_500) * span / 1_000
    }
}

struct Round<'a> {
    shop: &'a Shop,
    way: Way,
    /// The server, if it is one over HTTP.
    bank: Option<Listener>,
    mark: String,
    rng: Rng,
    calls: Vec<Call>,
    /// Which call each JSON-RPC ID asks for.
    asked: HashMap<u64, usize>,
    last_id: u64,
    starts: usize,
    tally: Tally,
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
    let count = rng.usize(1..=4);
    let calls = (0..count).map(|call| Call::random(&mut rng, format!("{number}-{call}")));
    let calls: Vec<_> = calls.collect();
    let mut round = Round::new(shop, way, rng, calls);
    match round.run(pace) {
        Ok(()) => Ok(round.tally),
        Err(wrong) => Err(format!("round {number}, {way:?}: {wrong}\n{:#?}", round.calls)),
    }
}

impl<'a> Round<'a> {
    fn new(shop: &'a Shop, way: Way, rng: Rng, calls: Vec<Call>) -> Self {
        let tally = Tally::of(way, calls.len());
        let (asked, mark) = (HashMap::new(), Shop::mark());
        Self { shop, way, bank: None, mark, rng, calls, asked, last_id: 0, starts: 0, tally }
    }

    /// Starts the server over HTTP, if there is to be one.
    fn open_bank(&mut self) {
        if self.way.has_address() && self.bank.is_none() {
            self.bank = Some(self.shop.bank(&self.mark));
        }
    }

    fn run(&mut self, pace: Pace) -> Result<(), String> {
        self.kill_one(pace)?;
        while self.rng.u8(0..3) == 0 {
            self.kill_one(pace)?;
        }
        self.settle()?;
        drop(self.bank.take());
        self.shop.until_empty(&self.mark);
        self.shop.check()?;
        for call in &self.calls {
            let end = call.end().ok_or_else(|| format!("{} was never answered", call.order))?;
            self.tally.end(call, end, self.shop.paid(&call.order))?;
        }
        Ok(())
    }

    /// Starts a guard, sends all payments, and kills a process at a random moment.
    fn kill_one(&mut self, pace: Pace) -> Result<(), String> {
        let victim = Victim::ALL[self.rng.usize(0..3)];
        let early = self.rng.u8(0..5) == 0;
        self.open_bank();
        let mut guard = self.start(victim == Victim::Client);
        let is_child = victim == Victim::Server && !self.way.has_address();
        let server = is_child.then(|| self.server());
        if !early {
            self.greet(&guard)?;
        }
        let mut open = self.send(&mut guard, true);
        let aims = self.rng.u8(0..3) == 0;
        let moment = now()
            + pace.moment(&mut self.rng, early && server.is_none()) * if aims { 4 } else { 1 };
        while now() < moment && !(aims && self.is_between(&open)) {
            match guard.hear(if aims { moment.min(now() + STEP) } else { moment }) {
                Heard::Line(line) => self.take(&line, &mut open)?,
                Heard::Nothing => {}
                Heard::End => break,
            }
        }
        match (victim, server) {
            (Victim::Server, Some(server)) => kill(server),
            (Victim::Server, None) => drop(self.bank.take()),
            _ => guard.kill(),
        }
        let is_made = |id: &&u64| self.shop.paid(&self.calls[self.asked[*id]].order) > 0;
        *self.tally.between.entry(victim).or_default() +=
            u64::from(open.iter().any(|id| is_made(&id)));
        let when = if early { "as it starts" } else { "in its calls" };
        *self.tally.kills.entry((victim, when)).or_default() += 1;
        // What was written before the end is read, and so binds the guards to come.
        let in_flight = open.len();
        if self.rng.bool() {
            self.open_bank();
        }
        let end = now() + PATIENCE;
        while victim != Victim::Server || !open.is_empty() {
            match guard.hear(end) {
                Heard::Line(line) => self.take(&line, &mut open)?,
                Heard::End => break,
                Heard::Nothing => return Err(format!("no end after the {victim:?}'s")),
            }
        }
        if victim == Victim::Server {
            if !open.is_empty() {
                return Err(format!("{open:?} were in flight, and the guard did not answer"));
            }
            self.tally.answered += in_flight as u64;
            guard.leave();
        }
        if self.rng.u8(0..4) == 0 {
            self.shop.check()?;
        }
        Ok(())
    }

    /// Whether the payment of one of these requests is made, and the server does not answer it yet.
    fn is_between(&self, open: &[u64]) -> bool {
        open.iter().any(|id| self.shop.is_between(&self.calls[self.asked[id]].order))
    }

    /// Starts a guard that lives, and sends payments until each has its answer.
    fn settle(&mut self) -> Result<(), String> {
        self.open_bank();
        let begin = now();
        let mut guard = self.start(false);
        let mut open = self.send(&mut guard, true);
        self.tally.kept += self.calls.iter().filter(|call| call.read.is_some()).count() as u64;
        loop {
            self.answers(&guard, &mut open)?;
            open = self.send(&mut guard, false);
            if open.is_empty() {
                break;
            }
            self.tally.not_run += open.len() as u64;
        }
        self.tally.longest = begin.elapsed();
        guard.leave();
        Ok(())
    }

    /// Waits until each of these requests is answered.
    fn answers(&mut self, guard: &Process, open: &mut Vec<u64>) -> Result<(), String> {
        let end = now() + PATIENCE;
        while !open.is_empty() {
            match guard.hear(end) {
                Heard::Line(line) => self.take(&line, open)?,
                heard => return Err(format!("{heard:?}, and {open:?} are not answered")),
            }
        }
        Ok(())
    }

    fn start(&mut self, by_client: bool) -> Process {
        self.starts += 1;
        self.shop.open(self.way, &self.mark, self.starts, by_client)
    }

    fn server(&self) -> u32 {
        self.shop.server(&self.mark, self.starts)
    }

    /// Waits until the guard and its server are there.
    fn greet(&mut self, guard: &Process) -> Result<(), String> {
        match guard.hear(now() + PATIENCE) {
            Heard::Line(line) if line["id"] == "hello" => Ok(()),
            heard => Err(format!("no answer to initialize: {heard:?}")),
        }
    }

    /// Sends all payments, or those that have no answer yet, and gives the IDs of the requests.
    fn send(&mut self, guard: &mut Process, all: bool) -> Vec<u64> {
        let mut due: Vec<_> = (0..self.calls.len()).collect();
        due.retain(|&at| all || (self.calls[at].read.is_none() && !self.calls[at].unknown));
        self.rng.shuffle(&mut due);
        let mut ids = Vec::new();
        let mut requests = Vec::new();
        for at in due {
            self.last_id += 1;
            self.asked.insert(self.last_id, at);
            ids.push(self.last_id);
            requests.push(self.calls[at].request(self.last_id));
        }
        guard.send(&requests);
        ids
    }

    /// Takes a line of the guard's in.
    fn take(&mut self, line: &Value, open: &mut Vec<u64>) -> Result<(), String> {
        if line["id"] == "hello" || line.get("method").is_some() {
            return Ok(());
        }
        let id = line["id"].as_u64().unwrap_or_default();
        let at = *self.asked.get(&id).ok_or_else(|| format!("who asked for {line}?"))?;
        if !open.contains(&id) {
            return Err(format!("a second answer: {line}"));
        }
        open.retain(|other| *other != id);
        self.calls[at].hear(&Answer::of(line, true)?)
    }
}
