//! The state of the model: one key, its servers, and its callers.
use super::{
    super::{Again, Ask, Millis, Record, Reply, State, Token, Ttls},
    bugs::Bug,
};
use std::{
    hash::{Hash, Hasher},
    mem,
    sync::LazyLock,
};
use tr_core::canonical::Digest;

pub(super) const CALLERS: usize = 3;

/// Times are in half leases. Records last until they are deleted.
pub(super) const LEASE: Millis = 2;
/// Now: other times are relative to it.
pub(super) const NOON: Millis = 100;
pub(super) const TTLS: Ttls = Ttls { done: 100, failed: 100, inflight: LEASE, unknown: 100 };

pub(super) type Rec = Record<(), ()>;

/// The whole state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// The callers' clock.
    pub(super) now: Millis,
    /// How far the store's clock is ahead of theirs.
    pub(super) ahead: i8,
    pub(super) primary: Server,
    /// The replica, with the writes that it has applied.
    pub(super) replica: Option<Server>,
    /// A replaced primary, and the caller that still uses it.
    pub(super) deposed: Option<(Server, usize)>,
    pub(super) callers: [Caller; CALLERS],
    /// A message that is considered lost, and may still arrive.
    pub(super) late: Option<Late>,
    /// The faults left.
    pub(super) faults: u8,
    /// The number of claims granted by any server, in place of a server's wall clock.
    pub(super) claims: u64,
    /// The highest epoch that a caller may have run under, and whether a later claim ever had none
    /// above it.
    pub(super) top: u64,
    pub(super) stalled: bool,
}

/// The state of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) record: Option<Rec>,
    /// The claims that this server knows.
    pub(super) claims: u64,
}

impl Hash for Server {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.claims.hash(state);
        if let Some(record) = &self.record {
            (record.digest, record.token, record.until).hash(state);
            mem::discriminant(&record.state).hash(state);
        }
    }
}

/// One caller: it claims, if need be several times, and runs at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Caller {
    pub(super) step: Step,
    pub(super) run: Run,
    /// Whether it has other params.
    pub(super) other: bool,
}

/// The state of a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Step {
    #[default]
    Fresh,
    /// Sent a claim and got no reply.
    Unsure,
    /// Another caller runs it; looks again.
    Waits,
    /// Read the record as free; only with [`Bug::RecoveryOverwrites`].
    Peeked,
    /// The claim is granted and not replicated yet.
    Claims {
        token: Token,
        until: Millis,
    },
    /// May run it until this time of its own clock.
    Holds {
        token: Token,
        until: Millis,
    },
    Runs {
        token: Token,
        until: Millis,
    },
    /// It ended, and the end has to be recorded.
    Ended {
        token: Token,
        end: End,
    },
    /// The end is recorded and not replicated yet.
    Records {
        token: Token,
        end: End,
    },
    Told(Answer),
    /// Killed, or gone with its result.
    Over,
}

/// What happened to a caller's run, whether or not a caller knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Run {
    #[default]
    Never,
    Under,
    Succeeded,
    /// It had no effect, or none that a repeat would double.
    Failed,
    /// Unknown to every caller.
    Lost,
    /// From before the record was deleted: no promise covers it any more.
    Past,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    Done,
    Failed,
    /// A timeout.
    Unknown,
}

/// What a caller gets, and whose run that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Own {
        recorded: bool,
    },
    Replay(Option<usize>),
    Conflict(Option<usize>),
    Unknown,
    InFlight,
    /// Not run: the store was unavailable, or the claim was lost before the start.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Late {
    Claim(usize),
    Finish { token: Token, end: End },
}

impl World {
    pub(super) fn new(faults: u8, replicated: bool) -> Self {
        Self {
            now: NOON,
            ahead: 0,
            primary: Server::default(),
            replica: replicated.then(Server::default),
            deposed: None,
            callers: [Caller::default(); CALLERS],
            late: None,
            faults,
            claims: 0,
            top: 0,
            stalled: false,
        }
    }

    /// The time on the store's clock.
    pub(super) fn store_now(&self) -> Millis {
        self.now.saturating_add_signed(self.ahead.into())
    }

    /// The server that this caller reaches.
    pub(super) fn server(&mut self, caller: usize) -> &mut Server {
        match &mut self.deposed {
            Some((server, cut)) if *cut == caller => server,
            _ => &mut self.primary,
        }
    }

    pub(super) fn record_for(&self, caller: usize) -> Option<&Rec> {
        match &self.deposed {
            Some((server, cut)) if *cut == caller => server.record.as_ref(),
            _ => self.primary.record.as_ref(),
        }
    }

    /// This caller's claim. All its claims have one owner, so that a late one is its own.
    pub(super) fn ask(&self, caller: usize, mutating: bool, epoch: u64) -> Ask {
        Ask {
            digest: digest(self.callers[caller].other),
            mutating,
            // One of the callers uses best effort.
            again: caller == 1,
            corrects: false,
            token: Token { epoch, owner: owner(caller) },
            now: self.store_now(),
            ttls: TTLS,
        }
    }

    /// The record is deleted, and the promise with it.
    pub(super) fn forget(&mut self) {
        self.primary.record = None;
        for caller in &mut self.callers {
            if caller.run != Run::Never {
                caller.run = Run::Past;
            }
        }
    }
}

impl Server {
    /// The protocol's decision about a claim, or the wrong one with `bug`.
    pub(super) fn claim(&mut self, ask: &Ask, bug: Option<Bug>) -> Reply<(), ()> {
        let Some(record) = &mut self.record else {
            self.record = Some(Record::new(ask));
            return Reply::Claimed(None);
        };
        if let Some(reply) = bug.and_then(|bug| bug.claim(record, ask)) {
            return reply;
        }
        record.claim(ask)
    }

    /// Records an end; `false` if that was refused.
    pub(super) fn finish(&mut self, token: Token, end: End, now: Millis, bug: Option<Bug>) -> bool {
        if bug == Some(Bug::FailureDeletes) && end == End::Failed {
            self.record = None;
            return true;
        }
        let Some(record) = &mut self.record else { return false };
        let token = if bug == Some(Bug::FinishUnchecked) { record.token } else { token };
        let state = end.state();
        let ttl = TTLS.of(&state);
        record.finalize(token, state, now, ttl).is_ok()
    }
}

impl End {
    pub(super) const fn state(self) -> State<(), ()> {
        match self {
            Self::Done => State::Done(()),
            Self::Failed => State::Failed((), Again::WhenAsked),
            Self::Unknown => State::Unknown(Some(())),
        }
    }

    pub(super) const fn run(self) -> Run {
        match self {
            Self::Done => Run::Succeeded,
            Self::Failed => Run::Failed,
            Self::Unknown => Run::Lost,
        }
    }
}

impl Caller {
    /// The caller is gone with its result. A recorded success still matters.
    pub(super) fn leave(&mut self) {
        if matches!(self.step, Step::Told(answer) if answer != (Answer::Own { recorded: true })) {
            self.step = Step::Over;
        }
    }
}

impl Step {
    pub(super) const fn token_mut(&mut self) -> Option<&mut Token> {
        match self {
            Self::Claims { token, .. } | Self::Holds { token, .. } => Some(token),
            Self::Runs { token, .. } | Self::Ended { token, .. } | Self::Records { token, .. } => {
                Some(token)
            }
            _ => None,
        }
    }

    /// When a lease ends, by the caller's clock.
    pub(super) const fn until_mut(&mut self) -> Option<&mut Millis> {
        match self {
            Self::Claims { until, .. } | Self::Holds { until, .. } | Self::Runs { until, .. } => {
                Some(until)
            }
            _ => None,
        }
    }
}

pub(super) const fn owner(caller: usize) -> u64 {
    caller as u64 + 1
}

/// Whose claim this is; `None` if the record was settled by hand.
pub(super) const fn caller(token: Token) -> Option<usize> {
    (token.owner as usize).checked_sub(1)
}

pub(super) fn digest(other: bool) -> Digest {
    static DIGESTS: LazyLock<[Digest; 2]> =
        LazyLock::new(|| [b"these", b"other"].map(Digest::of_bytes));
    DIGESTS[usize::from(other)]
}
