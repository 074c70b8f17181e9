//! A property test of the lease protocol: random events, checked against a model of one key.
//!
//! The model keeps the key's history, every claim with its result, and derives from it what each
//! caller must get. The tested [`Record`] keeps only its fields. Workers crash, sleep through their
//! leases, send claims twice and report ends late; operators settle and delete records.
use super::*;
use proptest::prelude::*;

const TTLS: Ttls = Ttls { done: 100, failed: 20, inflight: 10, unknown: 50 };
const WORKERS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Event {
    Ask { worker: usize, again: bool, other_digest: bool },
    Resend { worker: usize },
    Start { worker: usize },
    Renew { worker: usize },
    Finish { worker: usize, end: End },
    Crash { worker: usize },
    Release { worker: usize, successor: Option<usize> },
    Settle { done: bool },
    Clear,
    Pass(Millis),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Failed(Again),
    Cancelled,
    Unknown,
}

/// One claim in the history.
#[derive(Clone, Copy, Debug)]
struct Claim {
    token: Token,
    digest: bool,
    started: bool,
    lease: Millis,
    /// What was recorded, and when.
    end: Option<(End, Millis)>,
}

#[derive(Default)]
struct World {
    now: Millis,
    mutating: bool,
    record: Option<Record<(), ()>>,
    /// Claims since the key was last forgotten.
    history: Vec<Claim>,
    /// The claim that each worker believes to hold.
    held: [Option<Token>; WORKERS],
    tokens: u64,
    effects: usize,
}

fn state(end: End) -> State<(), ()> {
    match end {
        End::Done => State::Done(()),
        End::Failed(again) => State::Failed((), again),
        End::Cancelled => State::Cancelled(Some(())),
        End::Unknown => State::Unknown(None),
    }
}

fn ttl(end: End) -> Millis {
    match end {
        End::Done => 100,
        End::Failed(_) | End::Cancelled => 20,
        End::Unknown => 50,
    }
}

impl World {
    /// How the last claim stands now; `None` if it still runs under its lease.
    fn last(&self) -> Option<(Claim, Option<(End, Millis)>)> {
        let claim = *self.history.last()?;
        let lapsed = (self.now >= claim.lease).then_some((End::Unknown, claim.lease));
        Some((claim, claim.end.or(lapsed)))
    }

    /// Whether the record has expired: the next caller finds the key unused.
    fn is_over(&self) -> bool {
        matches!(self.last(), Some((_, Some((end, at)))) if self.now >= at + ttl(end))
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token { epoch: self.tokens, owner: 1_000 + self.tokens }
    }

    fn claim_of(&mut self, token: Token) -> Option<&mut Claim> {
        self.history.last_mut().filter(|claim| claim.token == token)
    }

    /// What a caller is promised.
    fn expected(&self, again: bool, corrects: bool, digest: bool) -> &'static str {
        let Some((claim, end)) = self.last() else { return "claimed" };
        if claim.digest != digest {
            let has_failed = matches!(end, Some((End::Failed(_) | End::Cancelled, _)));
            return if corrects && has_failed { "claimed" } else { "conflict" };
        }
        match end {
            None => "busy",
            Some((End::Done | End::Failed(Again::Never), _)) => "settled",
            Some((End::Failed(Again::WhenAsked), _)) if !again => "settled",
            Some((End::Failed(_) | End::Cancelled, _)) => "claimed",
            Some((End::Unknown, _)) if self.mutating => "unknown",
            Some((End::Unknown, _)) => "claimed",
        }
    }

    fn ask(&mut self, worker: usize, again: bool, digest: bool) {
        if self.is_over() {
            self.history.clear();
        }
        let corrects = worker == 1;
        let expected = self.expected(again, corrects, digest);
        let ask = Ask {
            digest: Digest::of_bytes([u8::from(digest)]),
            mutating: self.mutating,
            again,
            corrects,
            token: self.token(),
            now: self.now,
            ttls: TTLS,
        };
        let reply = match &mut self.record {
            None => {
                self.record = Some(Record::new(&ask));
                "claimed"
            }
            Some(record) => match record.claim(&ask) {
                Reply::Claimed(_) => "claimed",
                Reply::Busy => "busy",
                Reply::Settled => "settled",
                Reply::Unknown => "unknown",
                Reply::Conflict => "conflict",
            },
        };
        assert_eq!(reply, expected, "asked at {}", self.now);
        if reply == "claimed" {
            let token = self.record.as_ref().unwrap().token;
            assert_eq!(token, ask.token);
            let lease = self.now + TTLS.inflight;
            self.history.push(Claim { token, digest, started: false, lease, end: None });
            self.held[worker] = Some(token);
        }
    }

    /// The reply to a claim got lost: sent again, it is the same claim or it is over.
    fn resend(&mut self, worker: usize) {
        let Some(token) = self.held[worker] else { return };
        let over = self.is_over();
        let Some(claim) = self.claim_of(token).copied() else { return };
        if claim.end.is_some() || claim.started || over {
            return;
        }
        let Some(record) = &mut self.record else { panic!("history without a record") };
        let digest = Digest::of_bytes([u8::from(claim.digest)]);
        let (mutating, now) = (self.mutating, self.now);
        let ask = Ask { digest, mutating, again: false, corrects: false, token, now, ttls: TTLS };
        assert_eq!(record.claim(&ask), Reply::Claimed(None));
        assert_eq!(record.token, token);
        if now >= claim.lease {
            self.claim_of(token).expect("claimed").lease = now + TTLS.inflight;
        }
    }

    /// Renews first, as a caller must that slept since its claim.
    fn start(&mut self, worker: usize) {
        let Some(token) = self.held[worker] else { return };
        if !self.renew(worker) || self.claim_of(token).is_none_or(|claim| claim.started) {
            return;
        }
        // The promise: the run before is known to have failed.
        let earlier = self.history.iter().filter(|claim| claim.started);
        let may_have_run =
            |claim: &Claim| !matches!(claim.end, Some((End::Failed(_) | End::Cancelled, _)));
        let doubtful = earlier.filter(|claim| may_have_run(claim)).count();
        assert!(!self.mutating || doubtful == 0, "a mutating effect is entered twice");
        self.claim_of(token).expect("renewed").started = true;
        self.effects += 1;
    }

    fn renew(&mut self, worker: usize) -> bool {
        let Some(token) = self.held[worker] else { return false };
        let now = self.now;
        let Some(record) = &mut self.record else { return false };
        // A lease that has ended may be renewed while no other owner has claimed the call.
        let renewed = record.renew(token, now, TTLS.inflight);
        let claim = self.claim_of(token).filter(|claim| claim.end.is_none());
        assert!(!renewed || claim.is_some(), "a lost claim is renewed");
        if renewed && let Some(claim) = claim {
            claim.lease = claim.lease.max(now + TTLS.inflight);
        }
        renewed
    }

    fn finish(&mut self, worker: usize, end: End) {
        let Some(token) = self.held[worker].take() else { return };
        let now = self.now;
        let started = self.claim_of(token).is_some_and(|claim| claim.started);
        let end = if started { end } else { End::Cancelled };
        let open = self.claim_of(token).is_some_and(|claim| match claim.end {
            None | Some((End::Unknown, _)) => true,
            Some(_) => false,
        });
        let Some(record) = &mut self.record else { return };
        let accepted = record.finalize(token, state(end), now, ttl(end)).is_ok();
        assert_eq!(accepted, open, "{end:?} by {token:?}");
        if accepted && end != End::Unknown {
            // The reply got lost: sent again, it is recognized.
            let before = record.clone();
            assert_eq!(record.finalize(token, state(end), now, ttl(end)), Ok(None));
            assert_eq!(*record, before);
        }
        if accepted {
            self.claim_of(token).expect("open").end = Some((end, now));
        }
    }

    fn release(&mut self, worker: usize, successor: Option<usize>) {
        let Some(token) = self.held[worker] else { return };
        if self.history.iter().any(|claim| claim.token == token && claim.started) {
            return;
        }
        self.held[worker] = None;
        let to = self.token();
        let over = self.is_over();
        let lapsed = self.last().is_some_and(|(_, end)| end.is_some());
        let Some(record) = self.record.as_mut().filter(|record| record.token == token) else {
            return;
        };
        record.expire(self.now);
        if over || lapsed || successor.is_none() {
            // It may go, whether its lease has ended or not.
            assert!(record.is_released_by(token.owner));
            self.record = None;
            self.history.clear();
            return;
        }
        let Some(successor) = successor else { return };
        assert!(record.pass(token, to, self.now, TTLS.inflight));
        let lease = self.now + TTLS.inflight;
        let claim = self.claim_of(token).expect("held");
        (claim.token, claim.lease) = (to, lease);
        self.held[successor] = Some(to);
    }

    fn settle(&mut self, done: bool) {
        let (now, over) = (self.now, self.is_over());
        let unknown = matches!(self.last(), Some((_, Some((End::Unknown, _)))));
        let by = Token { owner: Token::BY_HAND, ..self.token() };
        let Some(record) = &mut self.record else { return };
        assert_eq!(record.expire(now), over);
        if over {
            return;
        }
        let end = if done { End::Done } else { End::Cancelled };
        assert_eq!(record.settle(by, state(end), now, ttl(end)).is_ok(), unknown);
        if unknown {
            self.history.last_mut().expect("unknown").end = Some((end, now));
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Ask { worker, again, other_digest } => {
                if self.held[worker].is_none() {
                    self.ask(worker, again, other_digest);
                }
            }
            Event::Resend { worker } => self.resend(worker),
            Event::Start { worker } => self.start(worker),
            Event::Renew { worker } => drop(self.renew(worker)),
            Event::Finish { worker, end } => self.finish(worker, end),
            Event::Crash { worker } => self.held[worker] = None,
            Event::Release { worker, successor } => self.release(worker, successor),
            Event::Settle { done } => self.settle(done),
            Event::Clear => {
                self.record = None;
                self.history.clear();
            }
            Event::Pass(time) => self.now += time,
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let worker = 0..WORKERS;
    let end = prop_oneof![
        3 => Just(End::Done),
        1 => Just(End::Failed(Again::Never)),
        2 => Just(End::Failed(Again::WhenAsked)),
        1 => Just(End::Failed(Again::Freely)),
        1 => Just(End::Cancelled),
        1 => Just(End::Unknown),
    ];
    prop_oneof![
        8 => (worker.clone(), any::<bool>(), prop::bool::weighted(0.1)).prop_map(
            |(worker, again, other_digest)| Event::Ask { worker, again, other_digest }),
        1 => worker.clone().prop_map(|worker| Event::Resend { worker }),
        6 => worker.clone().prop_map(|worker| Event::Start { worker }),
        1 => worker.clone().prop_map(|worker| Event::Renew { worker }),
        4 => (worker.clone(), end).prop_map(|(worker, end)| Event::Finish { worker, end }),
        1 => worker.clone().prop_map(|worker| Event::Crash { worker }),
        1 => (worker.clone(), prop::option::of(worker)).prop_map(
            |(worker, successor)| Event::Release { worker, successor }),
        1 => any::<bool>().prop_map(|done| Event::Settle { done }),
        1 => Just(Event::Clear),
        4 => (0..15_u64).prop_map(Event::Pass),
        1 => (15..120_u64).prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn callers_are_told_what_history_says(
        mutating: bool,
        events in prop::collection::vec(event(), 1..80),
    ) {
        let mut world = World { mutating, ..World::default() };
        for event in events {
            world.apply(event);
        }
    }
}

#[test]
fn an_older_epoch_is_refused_everything() {
    let ask = |epoch| Ask {
        digest: Digest::of_bytes("x"),
        mutating: false,
        again: false,
        corrects: false,
        token: Token { epoch, owner: epoch },
        now: 10 * epoch,
        ttls: TTLS,
    };
    let mut record = Record::<(), ()>::new(&ask(1));
    assert_eq!(record.claim(&ask(2)), Reply::Claimed(Some(State::Unknown(None))));
    let old = ask(1).token;
    assert!(!record.renew(old, 21, 10));
    assert!(!record.pass(old, ask(3).token, 21, 10));
    assert_eq!(record.finalize(old, State::Done(()), 21, 100), Err(State::Done(())));
    assert!(record.is_held_by(ask(2).token));
    assert_eq!(record.finalize(ask(2).token, State::Done(()), 21, 100), Ok(Some(State::Inflight)));
}
