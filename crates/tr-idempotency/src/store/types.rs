//! What a store is asked, and what it answers.
use crate::protocol::{Ask, Millis, Phase, Record, Reply, State, Token, Ttls};
use std::{fmt, ops::RangeInclusive};
use tr_core::canonical::{Digest, Key};

/// A state with what is kept of the call, as bytes.
pub type StoredState = State<Vec<u8>, Vec<u8>>;

/// A record's protocol fields, and what is kept of the call as bytes.
pub type StoredRecord = Record<Vec<u8>, Vec<u8>>;

/// A wish to run a call.
#[derive(Clone)]
pub struct ClaimRequest {
    /// Names the call.
    pub key: Key,
    /// What it asks for.
    pub digest: Digest,
    /// A second run may do harm.
    pub mutating: bool,
    /// Run it again if it failed and may succeed now.
    pub again: bool,
    /// Drawn anew for each claim, and never [`Token::BY_HAND`].
    pub owner: u64,
    /// How long each state lasts.
    pub ttls: Ttls,
    /// The tool's label: for operators, who list and flush by its beginning.
    pub tool: String,
    /// The session, or a keyed hash of it: for operators, who list and flush by it.
    pub session: Option<String>,
    /// What else operators are told of the request.
    pub notes: Vec<u8>,
}

/// What a claim meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Run it.
    Run(Grant),
    /// Somebody else runs it: watch, then claim again.
    Busy {
        /// What to watch.
        seen: Seen,
        /// When to look again at the latest.
        lease_left: Millis,
    },
    /// It is done or has failed: give that again.
    Settled(Box<Stored>),
    /// It may have run: neither run it nor answer for it.
    Unknown(Box<Stored>),
    /// The key is another call's.
    Conflict,
    /// There is no room for another record.
    Full,
}

/// A claim that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Proves it.
    pub token: Token,
    /// How long the lease lasts from the store's reply on. Counted from when the request was sent,
    /// it ends before the store thinks so, whatever the reply took.
    pub lease_left: Millis,
    /// Which run this is, from 1.
    pub runs: u32,
    /// What the record said before, if it said anything.
    pub before: Option<Box<Before>>,
}

/// What a record said before it was claimed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// How the call stood.
    pub state: StoredState,
    /// When that claim was granted.
    pub claimed_at: Millis,
    /// When it got into that state.
    pub changed_at: Millis,
}

/// A record as somebody saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Of the claim in force.
    pub token: Token,
    /// Its version.
    pub version: u64,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The state to record.
    pub state: StoredState,
    /// How long it lasts, in milliseconds.
    pub ttl: Millis,
}

/// A record as a store has it.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    /// Names the call.
    pub key: Key,
    /// Its protocol fields.
    pub record: StoredRecord,
    /// The tool's label.
    pub tool: String,
    /// The session, or a keyed hash of it.
    pub session: Option<String>,
    /// What else operators are told of the request.
    pub notes: Vec<u8>,
    /// The store's time when this was read.
    pub now: Millis,
}

/// Which records are meant: those of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Whose calls.
    pub selector: Selector,
    /// How they stand.
    pub state: StateFilter,
}

/// Whose calls' records are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// Everybody's.
    #[default]
    All,
    /// That of this key.
    Key(Key),
    /// Those whose keys lie in this range: for operators, who know the beginning of one.
    Keys(RangeInclusive<Key>),
    /// Those of this session, as [`ClaimRequest::session`] spells it.
    Session(String),
    /// Those of this session that have these params.
    Equal(String, Digest),
    /// Those of the tools whose label starts so.
    Tool(String),
}

/// Records of which state are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateFilter {
    /// All.
    #[default]
    Any,
    /// Calls that have been in flight for at least so long, in milliseconds.
    Inflight {
        /// Since their claim was granted.
        at_least: Millis,
    },
    /// Calls of unknown outcome, leases that have ended included.
    Unknown,
}

impl ClaimRequest {
    /// The protocol's question, once a store has drawn the epoch and looked at its clock.
    #[must_use]
    pub const fn ask(&self, epoch: u64, now: Millis) -> Ask {
        let Self { digest, mutating, again, owner, ttls, .. } = *self;
        Ask { digest, mutating, again, token: Token { epoch, owner }, now, ttls }
    }

    /// Applies the claim to what lies under its key, for stores that are written in Rust. `found`
    /// is to be written back if it has changed: with [`Claimed::Run`], or because a lease has
    /// ended. Where nothing was `found`, the store sees to room first.
    ///
    /// `epoch` is above all earlier ones of this key.
    pub fn apply(&self, found: &mut Option<Stored>, epoch: u64, now: Millis) -> Claimed {
        let ask = self.ask(epoch, now);
        let Some(stored) = found.as_mut().filter(|stored| stored.record.over_at() > now) else {
            let stored = found.insert(self.stored(Record::new(&ask), now));
            return Claimed::Run(stored.grant(None));
        };
        stored.now = now;
        let Record { claimed_at, changed_at, .. } = stored.record;
        match stored.record.claim(&ask) {
            Reply::Claimed(None) => Claimed::Run(stored.grant(None)),
            Reply::Claimed(Some(state)) => {
                let before = Box::new(Before { state, claimed_at, changed_at });
                *stored = self.stored(stored.record.clone(), now);
                Claimed::Run(stored.grant(Some(before)))
            }
            Reply::Busy => Claimed::Busy {
                seen: stored.seen(),
                lease_left: stored.record.until.saturating_sub(now),
            },
            Reply::Settled => Claimed::Settled(Box::new(stored.clone())),
            Reply::Unknown => Claimed::Unknown(Box::new(stored.clone())),
            Reply::Conflict => Claimed::Conflict,
        }
    }

    fn stored(&self, record: StoredRecord, now: Millis) -> Stored {
        Stored {
            key: self.key,
            record,
            tool: self.tool.clone(),
            session: self.session.clone(),
            notes: self.notes.clone(),
            now,
        }
    }
}

impl Stored {
    /// By what a change is told.
    #[must_use]
    pub const fn seen(&self) -> Seen {
        Seen { token: self.record.token, version: self.record.version }
    }

    /// The record as it stands at `now`; `None` if its time is over.
    #[must_use]
    pub fn at(mut self, now: Millis) -> Option<Self> {
        self.now = now;
        let over = self.record.expire(now);
        (!over).then_some(self)
    }

    const fn grant(&self, before: Option<Box<Before>>) -> Grant {
        let Record { token, until, runs, .. } = self.record;
        Grant { token, lease_left: until.saturating_sub(self.now), runs, before }
    }
}

impl Query {
    /// All records.
    pub const ALL: Self = Self { selector: Selector::All, state: StateFilter::Any };

    /// Whether a record, as it stands now, is meant.
    #[must_use]
    pub fn matches(&self, stored: &Stored) -> bool {
        let theirs = match &self.selector {
            Selector::All => true,
            Selector::Key(key) => stored.key == *key,
            Selector::Keys(keys) => keys.contains(&stored.key),
            Selector::Session(session) => stored.session.as_ref() == Some(session),
            Selector::Equal(session, digest) => {
                stored.session.as_ref() == Some(session) && stored.record.digest == *digest
            }
            Selector::Tool(prefix) => stored.tool.starts_with(prefix),
        };
        theirs && self.state.matches(&stored.record, stored.now)
    }
}

impl StateFilter {
    fn matches(self, record: &StoredRecord, now: Millis) -> bool {
        let phase = record.state.phase();
        match self {
            Self::Any => true,
            Self::Unknown => phase == Phase::Unknown,
            Self::Inflight { at_least } => {
                phase == Phase::Inflight && now.saturating_sub(record.claimed_at) >= at_least
            }
        }
    }
}

impl fmt::Debug for ClaimRequest {
    /// Shows nothing of the request but whom it is for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimRequest")
            .field("key", &self.key)
            .field("tool", &self.tool)
            .field("mutating", &self.mutating)
            .field("owner", &format_args!("{:016x}", self.owner))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Stored {
    /// Shows the protocol's fields, and nothing that is kept.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("key", &self.key)
            .field("tool", &self.tool)
            .field("phase", &self.record.state.phase())
            .field("token", &self.record.token)
            .field("version", &self.record.version)
            .field("until", &self.record.until)
            .finish_non_exhaustive()
    }
}
