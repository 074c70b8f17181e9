//! Long random walks over the real table: small, so that it is always full, with callers that
//! claim, wait, leave, fail, vanish and are cleared.
//!
//! The protocol's own tests cover one record. These cover what the table adds: slots, eviction,
//! waiters and successors. After each step the table must be consistent and keep its promises.
use super::{
    budget::Budget,
    slots::hash,
    table::{Caller, Common, Entry, LocalClaim, Settled, Table, Task, Wait, Waiters},
};
use crate::{
    clock::Clock,
    end::{Failure, Refusal, State},
    failure::RecordedFailure,
    protocol::{Again, Millis, Token, Ttls},
};
use proptest::prelude::*;
use std::{collections::HashSet, sync::Arc};
use tokio::sync::oneshot::{Receiver, error::TryRecvError};
use tr_core::{
    Classification, DedupeKey, Ran, SystemClock, Verdict,
    canonical::{Digest, FingerprintKey, Key},
};

const QUOTA: usize = 3;
const WAITERS: usize = 2;
const TTLS: Ttls = Ttls { done: 60, failed: 20, inflight: 10, unknown: 40 };

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask { key: u8, again: bool, wait: bool, cut_off: bool, other: bool },
    Finish { claim: usize, end: u8 },
    Lose { claim: usize },
    Release { claim: usize },
    Detach { claim: usize },
    Leave { waiter: usize },
    Take { ready: usize },
    Drop { ready: usize },
    Settle { key: u8, done: bool },
    Clear { key: u8 },
    Flush,
    Sweep,
    Pass(Millis),
}

/// A claim that was granted and not released.
#[derive(Clone, Copy, Debug)]
struct Held {
    key: u8,
    at: usize,
    token: Token,
}

struct Walk {
    table: Table<u32, ()>,
    common: Common,
    now: Millis,
    held: Vec<Held>,
    /// With the epoch of the claim that is waited for.
    waiting: Vec<(u8, Receiver<()>, u64)>,
    /// The waiters with a result that is given once.
    ready: Vec<(u8, Receiver<()>, u64)>,
    /// The claims whose result was given.
    given: HashSet<u64>,
    /// Mutating calls of unknown outcome, and until when they stay.
    unknown: Vec<(u8, Millis)>,
    epoch: u64,
}

/// Keys from here on are all derived.
const MIXED: u8 = 3;

/// Calls with even keys are mutating.
const fn is_mutating(key: u8) -> bool {
    key.is_multiple_of(2)
}

fn key_of(key: u8) -> Key {
    Key::from_bytes([key; 32])
}

fn state(end: u8) -> Option<State<u32>> {
    let recorded =
        RecordedFailure::new(Classification::new(Verdict::TRANSIENT, Ran::Yes, "x"), None);
    let failure = Failure::of_error(Arc::new(recorded));
    Some(match end {
        0 | 1 => State::Done(Some(7)),
        2 => State::Done(None),
        3 => State::Failed(failure, Again::Never),
        4 => State::Failed(failure, Again::WhenAsked),
        5 => State::Failed(failure, Again::Freely),
        6 => State::Cancelled(Some(failure)),
        7 => State::Unknown(Some(failure)),
        _ => return None,
    })
}

impl Walk {
    fn new() -> Self {
        let clock = Clock::new(&SystemClock);
        let common = Common {
            clock,
            fingerprints: FingerprintKey::new([1; 32]),
            max_waiters: WAITERS,
            budget: Budget::new(usize::MAX, usize::MAX),
        };
        let (held, waiting, unknown) = (Vec::new(), Vec::new(), Vec::new());
        let table = Table::new(QUOTA, 1_000);
        let (ready, given) = (Vec::new(), HashSet::new());
        Self { table, common, now: 0, held, waiting, ready, given, unknown, epoch: 0 }
    }

    fn ask(&mut self, key: u8, again: bool, wait: bool, cut_off: bool, other: bool) {
        let id = DedupeKey { key: key_of(key), digest: Digest::of_bytes([u8::from(other)]) };
        let (mutating, now, ttls) = (is_mutating(key), self.now, TTLS);
        let local = LocalClaim {
            id: &id,
            mutating,
            again,
            corrects: false,
            wait,
            cut_off,
            in_process: cut_off,
            now,
            ttls,
        };
        let at = self.table.find(&id.key);
        if let Some(at) = at
            && self.table.hit(at, &id, now, &self.common).is_some()
        {
            assert!(self.held.iter().all(|held| held.key != key), "a replay of a call in flight");
            return;
        }
        let before = self.table.get(&id.key).map(|(entry, _)| (entry.caller, entry.record.token));
        let found = match at {
            Some(at) => self.table.claim(at, &local, &self.common, |_| {}).0,
            None if self.table.has_room() => {
                let (_, token, _) = self.table.open(hash(&id.key), &local, |_| {});
                Task::Run(token)
            }
            None => Task::Refuse(Refusal::Full(None)),
        };
        let is_held = self.held.iter().any(|held| held.key == key);
        let is_unknown = self.unknown.iter().any(|&(it, until)| it == key && now < until);
        match found {
            Task::Run(token) => {
                let at = self.table.find(&id.key).expect("a claim has a record");
                assert!(!is_held, "claimed twice");
                assert!(!is_unknown, "a mutating call of unknown outcome is claimed again");
                assert!(token.epoch > self.epoch, "epochs grow");
                self.epoch = token.epoch;
                self.held.push(Held { key, at, token });
            }
            Task::Wait(Wait { served, of, .. }, _) => {
                assert!(is_held && wait, "no run to wait for");
                self.waiting.push((key, served, of));
            }
            Task::Refuse(Refusal::InFlight) => assert!(is_held && !wait),
            Task::Refuse(Refusal::TooManyWaiters) => assert!(is_held && wait),
            Task::Unrecorded => {
                assert!(is_held || self.ready.iter().any(|(ready, ..)| *ready == key));
            }
            Task::Refuse(Refusal::Unknown(_)) => assert!(mutating && !is_held),
            Task::Replay(..) => {
                assert!(!is_held);
                let (caller, token) = before.expect("an answer is replayed from a record");
                if caller != Caller::Any {
                    assert!(self.given.insert(token.epoch), "an answer is given twice");
                }
            }
            Task::Refuse(Refusal::Conflict) => {}
            Task::Refuse(Refusal::Full(_)) => {
                let pinned = self.table.slots().filter(|(entry, _)| entry.record.is_pinned());
                assert_eq!(pinned.count(), QUOTA, "full, and something could be forgotten");
            }
            Task::Refuse(other) => panic!("a refusal of a store: {other:?}"),
        }
    }

    /// A claim that its holder finishes.
    fn take(&mut self, claim: usize) -> Option<Held> {
        let at = claim.checked_rem(self.held.len())?;
        Some(self.held.swap_remove(at))
    }

    fn served(&mut self, key: u8, waiters: Waiters<()>) {
        let (before, count) = (self.waiting.len(), waiters.len());
        drop(waiters);
        let is_served = |served: &mut Receiver<()>| served.try_recv() == Err(TryRecvError::Closed);
        let served: Vec<_> = self.waiting.extract_if(.., |(_, it, _)| is_served(it)).collect();
        assert_eq!(before - self.waiting.len(), count, "a waiter is served twice");
        assert!(self.waiting.iter().all(|(waits, ..)| *waits != key), "a waiter is left waiting");
        let found = self.table.get(&key_of(key));
        // Every caller gets an unknown outcome.
        let is_once =
            |entry: &Entry<u32, ()>| entry.caller != Caller::Any && !entry.record.is_pinned();
        if found.is_some_and(|(entry, _)| is_once(entry)) {
            assert!(served.len() <= 1, "an answer lies ready for one");
            self.ready.extend(served);
        }
    }

    fn note_unknown(&mut self, key: u8, cut_off: bool) {
        self.unknown.retain(|(it, _)| *it != key);
        if is_mutating(key) && !cut_off {
            self.unknown.push((key, self.now + TTLS.unknown));
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Ask { key, again, wait, cut_off, other } => {
                self.ask(key, again, wait, cut_off, other);
            }
            Step::Finish { claim, end } => {
                let Some(Held { key, at, token }) = self.take(claim) else { return };
                let end = state(end);
                let is_unknown = matches!(end, Some(State::Unknown(_)));
                let ttl = end.as_ref().map(|end| TTLS.of(end));
                let Settled { waiters, held, .. } =
                    self.table.finish(at, token, end, self.now, ttl);
                assert!(held, "a live claim was lost");
                self.served(key, waiters);
                let is_there = self.table.find(&key_of(key)).is_some();
                if is_unknown && is_there {
                    self.note_unknown(key, false);
                }
            }
            Step::Lose { claim } => {
                let Some(Held { key, at, token }) = self.take(claim) else { return };
                let (waiters, before) = self.table.lose(at, token, self.now, Some(TTLS.unknown));
                assert!(before.is_some(), "a live claim was lost");
                self.served(key, waiters);
                let (entry, _) = self.table.get(&key_of(key)).expect("lost, not forgotten");
                let once = entry.caller != Caller::Any;
                self.note_unknown(key, once);
            }
            Step::Release { claim } => {
                let Some(Held { key, at, token }) = self.take(claim) else { return };
                let (successor, forgotten) = self.table.release(at, token, self.now, &TTLS);
                assert!(successor.is_some() != forgotten.is_some(), "it is passed on or goes");
                if let Some((waiter, token)) = successor {
                    waiter.send(()).expect("who left is no successor");
                    let index =
                        self.waiting.iter_mut().position(|(_, it, _)| it.try_recv().is_ok());
                    self.waiting.remove(index.expect("the successor waits"));
                    assert!(token.epoch > self.epoch, "epochs grow");
                    self.epoch = token.epoch;
                    self.held.push(Held { key, at, token });
                }
            }
            Step::Detach { claim } => {
                let Some(at) = claim.checked_rem(self.held.len()) else { return };
                self.table.detach(self.held[at].at, self.held[at].token);
            }
            Step::Leave { waiter } => {
                let Some(at) = waiter.checked_rem(self.waiting.len()) else { return };
                let (key, served, of) = self.waiting.swap_remove(at);
                drop(served);
                self.table.leave(&key_of(key), of);
            }
            Step::Take { ready } => {
                let Some(at) = ready.checked_rem(self.ready.len()) else { return };
                let (key, _, of) = self.ready.swap_remove(at);
                self.table.consume(&key_of(key), of);
                assert!(self.given.insert(of), "an answer is given twice");
            }
            Step::Drop { ready } => {
                let Some(at) = ready.checked_rem(self.ready.len()) else { return };
                let (key, _, of) = self.ready.swap_remove(at);
                self.table.leave(&key_of(key), of);
            }
            Step::Settle { key, done } => {
                let Some(at) = self.table.find(&key_of(key)) else { return };
                let to = if done { State::Done(Some(7)) } else { State::Cancelled(None) };
                if self.table.settle(at, to, self.now, TTLS.done).is_ok() {
                    self.unknown.retain(|(it, _)| *it != key);
                }
                self.epoch = self.table.epoch.max(self.epoch);
            }
            Step::Clear { key } => {
                if let Some((waiters, _)) = self.table.clear(&key_of(key)) {
                    self.served(key, waiters);
                    self.held.retain(|held| held.key != key);
                    self.unknown.retain(|(it, _)| *it != key);
                }
            }
            Step::Flush => {
                self.table.forget_all(|entry, _| !entry.record.is_pinned());
            }
            Step::Sweep => {
                self.table.sweep(self.now);
            }
            Step::Pass(time) => self.now += time,
        }
        self.audit();
    }

    fn audit(&self) {
        self.table.audit();
        let now = self.now;
        for Held { key, token, .. } in &self.held {
            let (entry, _) = self.table.get(&key_of(*key)).expect("a live claim stays");
            assert!(entry.record.is_held_by(*token), "a live claim stays its owner's");
        }
        for (key, until) in &self.unknown {
            let found = self.table.get(&key_of(*key));
            let is = |state: &State<u32>| matches!(state, State::Unknown(_));
            let stays = found.is_some_and(|(entry, _)| is(&entry.record.state));
            let is_claimed = self.held.iter().any(|held| held.key == *key);
            assert!(stays || now >= *until, "a mutating call of unknown outcome was forgotten");
            assert!(!is_claimed || now >= *until);
        }
        let waiting: usize = self.table.slots().map(|(entry, _)| entry.waiters.len()).sum();
        assert_eq!(waiting, self.waiting.len(), "who waits is served or waits on");
    }
}

impl Table<u32, ()> {
    /// The invariants between its parts.
    fn audit(&self) {
        let places: HashSet<_> =
            self.slots().map(|(entry, _)| self.find(&entry.key).expect("found by key")).collect();
        assert_eq!(places.len(), self.len(), "each record has one place");
        assert!(self.len() <= QUOTA, "the table is bounded");
        for (entry, _) in self.slots() {
            let is_live = matches!(entry.record.state, State::Inflight);
            assert!(is_live || entry.waiters.is_empty(), "who waits, waits for a call in flight");
            assert!(entry.waiters.len() <= WAITERS);
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..6_u8;
    let which = 0..8_usize;
    let rare = || prop::bool::weighted(0.1);
    prop_oneof![
        12 => (key.clone(), any::<bool>(), prop::bool::weighted(0.8), rare(), rare()).prop_map(
            |(key, again, wait, cut_off, other)| {
                let cut_off = cut_off || key >= MIXED;
                Step::Ask { key, again, wait, cut_off, other }
            }),
        6 => (which.clone(), 0..9_u8).prop_map(|(claim, end)| Step::Finish { claim, end }),
        1 => which.clone().prop_map(|claim| Step::Lose { claim }),
        2 => which.clone().prop_map(|claim| Step::Release { claim }),
        4 => which.clone().prop_map(|claim| Step::Detach { claim }),
        1 => which.clone().prop_map(|waiter| Step::Leave { waiter }),
        2 => which.clone().prop_map(|ready| Step::Take { ready }),
        1 => which.prop_map(|ready| Step::Drop { ready }),
        1 => (key.clone(), any::<bool>()).prop_map(|(key, done)| Step::Settle { key, done }),
        1 => key.prop_map(|key| Step::Clear { key }),
        1 => Just(Step::Flush),
        1 => Just(Step::Sweep),
        4 => (0..15_u64).prop_map(Step::Pass),
        1 => (15..70_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: tr_testkit::rounds(64, 2_000) as u32,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_table_keeps_what_it_promised(steps in prop::collection::vec(step(), 1..600)) {
        let mut walk = Walk::new();
        for step in steps {
            walk.step(step);
        }
    }
}
