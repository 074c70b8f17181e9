//! The lease protocol: which caller may run a call, and what its duplicates get.
//!
//! Pure: time, tokens and settings are arguments, and nothing here locks, waits or stores. Any
//! store that applies these transitions atomically, one record at a time, keeps the promise that a
//! mutating call is not run again while its outcome is unknown.
//!
//! ```text
//!                 claim                finalize
//!   (nothing) ───────────▶ in flight ───────────▶ done · failed · cancelled · unknown
//!        ▲                  │  ▲  │ lease ends
//!        └── release ───────┘  │  └─────────────▶ unknown ── settle ──▶ done · cancelled
//!            (never started)   └── claim again: cancelled; failed, if it may be, or with other params;
//!                                               unknown, unless the call is mutating
//! ```
//!
//! # When to use
//!
//! To write a [`RecordStore`](crate::store::RecordStore): read the record, apply one of its
//! methods, write it back, all in one transaction; or do the same in the engine's own language.
//!
//! A store computes states when it reads. A record that is written as in flight and whose lease has
//! ended *is* unknown, whether or not that has been written: call [`Record::expire`] first.
use std::{fmt, mem};
use tr_core::canonical::Digest;

mod state;

#[cfg(feature = "redis")]
pub(crate) use self::state::ALL;
pub use self::state::{Again, Millis, Phase, State, Ttls, UnknownPhase};

/// The proof of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    /// Grows with every claim of a key, also past deleted records: the owner of a smaller epoch has
    /// lost its claim. The fencing token for what the tool writes elsewhere.
    pub epoch: u64,
    /// A new random number for each claim, so that a claim sent twice is recognized as one.
    pub owner: u64,
}

/// A claim of a call: the input of [`Record::claim`].
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The digest of the call's params.
    pub digest: Digest,
    /// Whether a second run may do harm.
    pub mutating: bool,
    /// Whether to run it again if it failed and may succeed now.
    pub again: bool,
    /// Whether to run it with other params than one that failed.
    pub corrects: bool,
    /// The claim's token, if it is granted. Its epoch is above all earlier ones of the key.
    pub token: Token,
    /// The store's time.
    pub now: Millis,
    /// How long the claim's states last.
    pub ttls: Ttls,
}

/// One call's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<D, F> {
    /// The digest of the call's params: another digest is another call.
    pub digest: Digest,
    /// Whether a second run may do harm.
    pub mutating: bool,
    /// The token of the claim in force, or of the last one.
    pub token: Token,
    /// The state of the call.
    pub state: State<D, F>,
    /// Counts changes, except renewals.
    pub version: u64,
    /// Counts runs.
    pub runs: u32,
    /// When the claim in force, or the last one, was granted.
    pub claimed_at: Millis,
    /// When the state last changed.
    pub changed_at: Millis,
    /// In flight: when the lease ends. Otherwise: when the record expires.
    pub until: Millis,
    /// How long the record stays unknown once its lease has ended.
    pub unknown_ttl: Millis,
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<D, F> {
    /// The call may run, under [`Record::token`]. With the state before, if there was one.
    Claimed(Option<State<D, F>>),
    /// Another owner runs it.
    Busy,
    /// It is done or has failed: replay that.
    Settled,
    /// It may have run: neither run it nor replay it.
    Unknown,
    /// The key was used with other params, and that call has not failed or this one does not correct it.
    Conflict,
}

impl Token {
    /// The owner of records that were settled by hand; it holds no claim.
    pub const BY_HAND: u64 = 0;
}

impl<D, F> Record<D, F> {
    /// The first claim of a key.
    #[must_use]
    pub const fn new(ask: &Ask) -> Self {
        Self {
            digest: ask.digest,
            mutating: ask.mutating,
            token: ask.token,
            state: State::Inflight,
            version: 1,
            runs: 1,
            claimed_at: ask.now,
            changed_at: ask.now,
            until: ask.now.saturating_add(ask.ttls.inflight),
            unknown_ttl: ask.ttls.unknown,
        }
    }

    /// A further claim.
    pub fn claim(&mut self, ask: &Ask) -> Reply<D, F> {
        if self.expire(ask.now) {
            return Reply::Claimed(Some(mem::replace(self, Self::new(ask)).state));
        }
        let is_other = self.digest != ask.digest;
        let free = match &self.state {
            State::Failed(..) | State::Cancelled(_) if is_other && ask.corrects => true,
            _ if is_other => return Reply::Conflict,
            // The reply to this claim was lost, and the claim is sent again; the call has not
            // started.
            State::Inflight if self.is_of(ask) => return Reply::Claimed(None),
            State::Unknown(None) if self.is_of(ask) => {
                self.change_to(State::Inflight, ask.now, ask.ttls.inflight);
                return Reply::Claimed(None);
            }
            State::Inflight => return Reply::Busy,
            State::Done(_) => false,
            State::Failed(_, Again::Never) => false,
            State::Failed(_, Again::WhenAsked) => ask.again,
            State::Failed(_, Again::Freely) | State::Cancelled(_) => true,
            State::Unknown(_) if self.mutating || ask.mutating => return Reply::Unknown,
            State::Unknown(_) => true,
        };
        if !free {
            return Reply::Settled;
        }
        debug_assert!(ask.token.epoch > self.token.epoch, "epochs grow");
        let (version, runs) = (self.version + 1, self.runs + 1);
        let claimed = Self { version, runs, ..Self::new(ask) };
        Reply::Claimed(Some(mem::replace(self, claimed).state))
    }

    const fn is_of(&self, ask: &Ask) -> bool {
        self.token.owner == ask.token.owner
    }

    /// Whether `token` is the claim in force, whether or not its lease has ended.
    #[must_use]
    #[inline]
    pub fn is_held_by(&self, token: Token) -> bool {
        self.token == token && matches!(self.state, State::Inflight)
    }

    /// Renews a lease; `false` if it is lost. A lease that has ended is revived while no other
    /// owner has claimed or settled the call.
    #[must_use = "a lost lease is not renewed"]
    pub fn renew(&mut self, token: Token, now: Millis, lease: Millis) -> bool {
        let until = now.saturating_add(lease);
        let held = self.token == token;
        match self.state {
            State::Inflight if held => self.until = self.until.max(until),
            State::Unknown(None) if held => {
                self.change_to(State::Inflight, now, lease);
            }
            _ => return false,
        }
        true
    }

    /// Passes a claim under which the call was not started to another owner.
    pub fn pass(&mut self, from: Token, to: Token, now: Millis, lease: Millis) -> bool {
        let held = self.is_held_by(from);
        if held {
            debug_assert!(to.epoch > from.epoch, "epochs grow");
            (self.token, self.claimed_at, self.changed_at) = (to, now, now);
            self.until = now.saturating_add(lease);
            self.version += 1;
        }
        held
    }

    /// Whether this owner, which has not started the call, may delete the record: its claim is in
    /// force, or its lease has ended and no other owner has claimed or settled the call.
    #[must_use]
    pub const fn is_released_by(&self, owner: u64) -> bool {
        self.token.owner == owner && matches!(self.state, State::Inflight | State::Unknown(None))
    }

    /// Records the end, and returns the state before. A late end is accepted while no other owner
    /// has claimed or settled the call. Sent again, it is recognized and changes nothing
    /// (`Ok(None)`).
    ///
    /// # Errors
    /// `end` itself, if the claim is lost.
    #[inline]
    pub fn finalize(
        &mut self,
        token: Token,
        end: State<D, F>,
        now: Millis,
        ttl: Millis,
    ) -> Result<Option<State<D, F>>, State<D, F>> {
        if self.token != token {
            return Err(end);
        }
        match self.state {
            State::Inflight | State::Unknown(_) => Ok(Some(self.change_to(end, now, ttl))),
            _ => Ok(None),
        }
    }

    /// Records how a call of unknown outcome ended, as owner `by`, whose epoch is above all earlier
    /// ones: the former owner has lost the claim.
    ///
    /// # Errors
    /// `to` itself, if the outcome is not unknown.
    pub fn settle(
        &mut self,
        by: Token,
        to: State<D, F>,
        now: Millis,
        ttl: Millis,
    ) -> Result<State<D, F>, State<D, F>> {
        if !matches!(self.state, State::Unknown(_)) {
            return Err(to);
        }
        debug_assert!(by.epoch > self.token.epoch, "epochs grow");
        self.token = by;
        Ok(self.change_to(to, now, ttl))
    }

    /// Applies the time: a lease that has ended leaves `unknown`. Returns whether the record has
    /// expired.
    pub fn expire(&mut self, now: Millis) -> bool {
        if matches!(self.state, State::Inflight) && now >= self.until {
            self.change_to(State::Unknown(None), self.until, self.unknown_ttl);
        }
        !matches!(self.state, State::Inflight) && now >= self.until
    }

    /// When a store may delete the record, if nothing changes it before; later than the end of its
    /// lease.
    #[must_use]
    pub const fn over_at(&self) -> Millis {
        match self.state {
            State::Inflight => self.until.saturating_add(self.unknown_ttl),
            _ => self.until,
        }
    }

    /// Whether deleting this record before it expires could run a call twice.
    #[must_use]
    pub const fn is_pinned(&self) -> bool {
        match self.state {
            State::Inflight => true,
            State::Unknown(_) => self.mutating,
            _ => false,
        }
    }

    #[inline]
    pub(crate) fn change_to(&mut self, to: State<D, F>, at: Millis, ttl: Millis) -> State<D, F> {
        self.version += 1;
        self.changed_at = at;
        self.until = at.saturating_add(ttl);
        mem::replace(&mut self.state, to)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, {:016x})", self.epoch, self.owner)
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
