//! The requests to a store, and its replies.
use crate::protocol::{Ask, Millis, Phase, Record, Reply, State, Token, Ttls};
use std::{borrow::Cow, ops::RangeInclusive};
use tr_core::canonical::{Digest, Key};

/// A state, with what is kept of the call as bytes.
pub type StoredState = State<Vec<u8>, Vec<u8>>;

/// A record's protocol fields, and what is kept of the call as bytes.
pub type StoredRecord = Record<Vec<u8>, Vec<u8>>;

/// A request to run a call.
#[derive(Clone)]
pub struct ClaimRequest {
    /// The key of the call.
    pub key: Key,
    /// The digest of its params.
    pub digest: Digest,
    /// Whether a second run may do harm.
    pub mutating: bool,
    /// Whether to run it again if it failed and may succeed now.
    pub again: bool,
    /// Whether to run it with other params than one that failed.
    pub corrects: bool,
    /// A new random number for each claim, never [`Token::BY_HAND`].
    pub owner: u64,
    /// How long each state lasts.
    pub ttls: Ttls,
    /// The tool's label, by whose prefix operators list and flush.
    pub tool: String,
    /// The session, or a keyed hash of it, by which operators list and flush.
    pub session: Option<String>,
    /// Further notes about the request, for operators.
    pub notes: Vec<u8>,
}

/// The reply to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The call may run.
    Run(Grant),
    /// Another owner runs it: watch, then claim again.
    Busy {
        /// What to watch.
        seen: Seen,
        /// How long the other owner's lease lasts: claim again after it at the latest.
        lease_left: Millis,
    },
    /// It is done or has failed: replay that.
    Settled(Box<Stored>),
    /// It may have run: neither run it nor replay it.
    Unknown(Box<Stored>),
    /// The key was used with other params.
    Conflict,
    /// The store is full.
    Full,
}

/// A claim that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The proof of the claim.
    pub token: Token,
    /// How long the lease lasts from the store's reply on. A caller counts it from when it sent the
    /// request, so that the lease ends for the caller before it ends for the store.
    pub lease_left: Millis,
    /// Which run this is, from 1.
    pub runs: u32,
    /// The state of the record before, if there was one.
    pub before: Option<Box<Before>>,
}

/// The state of a record before it was claimed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// The state of the call.
    pub state: StoredState,
    /// When that claim was granted.
    pub claimed_at: Millis,
    /// When it entered that state.
    pub changed_at: Millis,
}

/// The version of a record that a caller saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The token of the claim in force.
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

/// A change of the record of one key. It may be sent again, in case its reply was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'c> {
    /// Prolongs the lease of this claim to so many milliseconds from now, each time.
    Renew(Token, Millis),
    /// Deletes a claim under which the call was not started. It is identified by its owner alone,
    /// since a process that lost the reply to its claim does not know the epoch. Sent again, it
    /// changes nothing, and the reply is `false`.
    Release(u64),
    /// Records how the call ended under this claim. A late end is accepted while no other process
    /// has claimed or settled the call. Sent again, it changes nothing, and the reply is `true`.
    Finalize(Token, Cow<'c, End>),
    /// Records how a call of unknown outcome ended, if it is that of this claim, or whichever it is.
    /// The record passes to [`Token::BY_HAND`] at a higher epoch, so that its former owner has lost
    /// the claim. Sent again, it changes nothing, and the reply is `false`.
    Settle(Option<Token>, Cow<'c, End>),
}

/// What the store does with the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It stays as it is; whether that is what was asked for.
    Not(bool),
    /// It writes the record.
    Written,
    /// It deletes the record.
    Deleted,
}

/// A record in a store.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    /// The key of the call.
    pub key: Key,
    /// Its protocol fields.
    pub record: StoredRecord,
    /// The tool's label.
    pub tool: String,
    /// The session, or a keyed hash of it.
    pub session: Option<String>,
    /// Further notes about the request, for operators.
    pub notes: Vec<u8>,
    /// The store's time at which this was read.
    pub now: Millis,
}

/// The records that a query found, and those that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The records that match.
    pub records: Vec<Stored>,
    /// Records that may match: what they say cannot be read.
    pub unreadable: Vec<UnreadableRecord>,
}

/// A record that cannot be read: a newer version wrote it, or it is damaged. Its call may have run, and may
/// still run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRecord {
    /// The key of the call, by which [`clear`](super::RecordStore::clear) deletes the record.
    pub key: Key,
    /// The tool's label, if it can be read.
    pub tool: Option<String>,
    /// When the record last changed, if that can be read.
    pub changed_at: Option<Millis>,
    /// Why it cannot be read.
    pub why: String,
}

/// Selects records that match both filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Which calls.
    pub selector: Selector,
    /// In which states.
    pub state: StateFilter,
}

/// Selects records by key, session, params or tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// All records.
    #[default]
    All,
    /// The record of this key.
    Key(Key),
    /// The records whose keys are in this range, to look a record up by a prefix of its key.
    Keys(RangeInclusive<Key>),
    /// The records of this session, as in [`ClaimRequest::session`].
    Session(String),
    /// The records of this session with these params.
    Equal(String, Digest),
    /// The records of tools whose label has this prefix.
    Tool(String),
}

/// Selects records by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateFilter {
    /// All.
    #[default]
    Any,
    /// Calls that have been in flight for at least this long, in milliseconds.
    Inflight {
        /// The time since their claim was granted.
        at_least: Millis,
    },
    /// Calls of unknown outcome, leases that have ended included.
    Unknown,
}

impl ClaimRequest {
    /// Applies the claim to the record under its key, for stores that are written in Rust. The
    /// store writes `found` back if it has changed: with [`Claimed::Run`], or because a lease has
    /// ended. If nothing was `found`, the store checks its capacity first.
    ///
    /// `epoch` must be above all earlier ones of this key.
    pub fn apply(&self, found: &mut Option<Stored>, epoch: u64, now: Millis) -> Claimed {
        let Self { digest, mutating, again, corrects, owner, ttls, .. } = *self;
        let token = Token { epoch, owner };
        let ask = Ask { digest, mutating, again, corrects, token, now, ttls };
        let Some(stored) = found.as_mut().filter(|stored| stored.record.over_at() > now) else {
            let stored = found.insert(self.stored(Record::new(&ask), now));
            return Claimed::Run(stored.grant(None));
        };
        stored.now = now;
        let Record { digest, claimed_at, changed_at, .. } = stored.record;
        match stored.record.claim(&ask) {
            Reply::Claimed(None) => Claimed::Run(stored.grant(None)),
            Reply::Claimed(Some(state)) => {
                // The run of a call with other params is no earlier run of this one.
                let before = (digest == self.digest)
                    .then(|| Box::new(Before { state, claimed_at, changed_at }));
                *stored = self.stored(stored.record.clone(), now);
                Claimed::Run(stored.grant(before))
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

impl Change<'_> {
    /// Applies the change to the record as it stands at the store's time, for stores that are
    /// written in Rust. `epoch` is above all earlier ones of the key.
    pub fn apply(self, record: &mut StoredRecord, epoch: u64, now: Millis) -> Changed {
        let is_written = match self {
            Self::Renew(token, lease) => record.renew(token, now, lease),
            Self::Release(owner) if record.is_released_by(owner) => return Changed::Deleted,
            Self::Release(_) => false,
            Self::Finalize(token, end) => {
                let End { state, ttl } = end.into_owned();
                match record.finalize(token, state, now, ttl) {
                    Ok(None) => return Changed::Not(true), // Sent again.
                    end => end.is_ok(),
                }
            }
            Self::Settle(of, end) => {
                let (by, End { state, ttl }) =
                    (Token { epoch, owner: Token::BY_HAND }, end.into_owned());
                let is_meant = of.is_none_or(|of| of == record.token);
                is_meant && record.settle(by, state, now, ttl).is_ok()
            }
        };
        if is_written { Changed::Written } else { Changed::Not(false) }
    }

    /// The same change, which borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Change<'static> {
        match self {
            Self::Renew(token, lease) => Change::Renew(token, lease),
            Self::Release(owner) => Change::Release(owner),
            Self::Finalize(token, end) => Change::Finalize(token, Cow::Owned(end.into_owned())),
            Self::Settle(of, end) => Change::Settle(of, Cow::Owned(end.into_owned())),
        }
    }
}

impl Stored {
    /// What [`watch`](super::RecordStore::watch) compares.
    #[must_use]
    pub const fn seen(&self) -> Seen {
        Seen { token: self.record.token, version: self.record.version }
    }

    /// The record as it stands at `now`; `None` if it has expired.
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

    /// Whether a record, as it stands now, matches.
    #[must_use]
    pub fn matches(&self, stored: &Stored) -> bool {
        self.selector.matches(stored) && self.state.matches(&stored.record, stored.now)
    }
}

impl Selector {
    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        match self {
            Self::All => true,
            Self::Key(key) => stored.key == *key,
            Self::Keys(keys) => keys.contains(&stored.key),
            Self::Session(session) => stored.session.as_ref() == Some(session),
            Self::Equal(session, digest) => {
                stored.session.as_ref() == Some(session) && stored.record.digest == *digest
            }
            Self::Tool(prefix) => stored.tool.starts_with(prefix),
        }
    }

    /// Whether a record of which only this key can be read may be selected.
    #[cfg(feature = "redis")]
    pub(crate) fn may_be_of(&self, key: &Key) -> bool {
        match self {
            Self::All => true,
            Self::Key(wanted) => key == wanted,
            Self::Keys(keys) => keys.contains(key),
            Self::Session(_) | Self::Equal(..) | Self::Tool(_) => false,
        }
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

tr_core::debug_parts! { ClaimRequest, |it|
    key = it.key,
    tool = it.tool,
    mutating = it.mutating,
    owner = format_args!("{:016x}",
    it.owner)
}

tr_core::debug_parts! { Stored, |it|
    key = it.key,
    tool = it.tool,
    phase = it.record.state.phase(),
    token = it.record.token,
    version = it.record.version,
    until = it.record.until
}
