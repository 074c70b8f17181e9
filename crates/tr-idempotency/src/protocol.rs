//! The lease protocol: who may run a call, and what its duplicates find.
//!
//! Pure: time, tokens and settings are arguments, and nothing here locks, waits or stores. Any
//! store that applies these transitions atomically, one record at a time, keeps the promise that a
//! mutating call is not run again while nobody knows how it ended.
//!
//! ```text
//!                 claim                finalise
//!   (nothing) ───────────▶ in flight ───────────▶ done · failed · cancelled · unknown
//!        ▲                  │  ▲  │ lease ends
//!        └── release ───────┘  │  └─────────────▶ unknown ── settle ──▶ done · cancelled
//!            (never started)   └── claim again: cancelled; failed, if it may be;
//!                                               unknown, unless the call is mutating
//! ```
use std::mem;
use tr_core::canonical::Digest;

/// Milliseconds on the store's clock.
pub(crate) type Millis = u64;

/// Proves a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Grows with every claim of a key: whoever holds an older one has lost it.
    pub(crate) epoch: u64,
    /// Drawn anew for each claim, so that a claim sent twice is recognised as one.
    pub(crate) owner: u64,
}

/// How long each state lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ttls {
    pub(crate) done: Millis,
    pub(crate) failed: Millis,
    pub(crate) inflight: Millis,
    pub(crate) unknown: Millis,
}

/// A wish to run a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) digest: Digest,
    /// A second run may do harm.
    pub(crate) mutating: bool,
    /// Run it again if it failed and may succeed now.
    pub(crate) again: bool,
    /// The claim's token, if it is granted. Its epoch is above all earlier ones of the key.
    pub(crate) token: Token,
    pub(crate) now: Millis,
    pub(crate) ttls: Ttls,
}

/// How a call stands. `D` is what is kept of a success, `F` of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State<D, F> {
    /// Somebody runs it.
    Inflight,
    /// It succeeded.
    Done(D),
    /// It failed, and whether it ran and how far is known, or does not matter.
    Failed(F, Again),
    /// It was withdrawn before it started.
    Cancelled(Option<F>),
    /// It may have run, and nobody recorded its end.
    Unknown(Option<F>),
}

/// Whether a failed call may be run again before its record expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It would fail again.
    Never,
    /// If the caller wishes so.
    WhenAsked,
    /// It never started.
    Freely,
}

/// One call's record.
#[derive(Clone, Debug)]
pub(crate) struct Record<D, F> {
    pub(crate) digest: Digest,
    pub(crate) mutating: bool,
    pub(crate) token: Token,
    pub(crate) state: State<D, F>,
    /// Counts changes.
    pub(crate) version: u64,
    /// Counts runs.
    pub(crate) runs: u32,
    pub(crate) claimed_at: Millis,
    pub(crate) changed_at: Millis,
    /// In flight: when the lease ends. Else: when the record does.
    pub(crate) until: Millis,
}

/// What a wish to run a call meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply<D, F> {
    /// Run it, as [`Record::token`] says. With what the record said before, if it said anything.
    Claimed(Option<State<D, F>>),
    /// Somebody else runs it.
    Busy,
    /// It is done or has failed: give that again.
    Settled,
    /// It may have run: neither run it nor answer for it.
    Unknown,
    /// The key is another call's.
    Conflict,
}

impl Ttls {
    pub(crate) const fn of<D, F>(&self, state: &State<D, F>) -> Millis {
        match state {
            State::Inflight => self.inflight,
            State::Done(_) => self.done,
            State::Failed(..) | State::Cancelled(_) => self.failed,
            State::Unknown(_) => self.unknown,
        }
    }
}

impl<D, F> Record<D, F> {
    /// The first claim of a key.
    pub(crate) const fn new(ask: &Ask) -> Self {
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
        }
    }

    /// A further claim.
    pub(crate) fn claim(&mut self, ask: &Ask) -> Reply<D, F> {
        if self.expire(ask.now, ask.ttls.unknown) {
            return Reply::Claimed(Some(mem::replace(self, Self::new(ask)).state));
        }
        if self.digest != ask.digest {
            return Reply::Conflict;
        }
        let free = match &self.state {
            State::Inflight if self.token.owner == ask.token.owner => return Reply::Claimed(None),
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

    /// Whether `token` is the claim in force.
    pub(crate) fn is_held_by(&self, token: Token) -> bool {
        self.token == token && matches!(self.state, State::Inflight)
    }

    /// Prolongs a lease; `false` if it is lost.
    pub(crate) fn renew(&mut self, token: Token, now: Millis, lease: Millis) -> bool {
        let held = self.is_held_by(token);
        if held {
            self.until = self.until.max(now.saturating_add(lease));
        }
        held
    }

    /// Passes a claim under which nothing was started to somebody else.
    pub(crate) fn pass(&mut self, from: Token, to: Token, now: Millis, lease: Millis) -> bool {
        let held = self.is_held_by(from);
        if held {
            debug_assert!(to.epoch > from.epoch, "epochs grow");
            (self.token, self.claimed_at, self.changed_at) = (to, now, now);
            self.until = now.saturating_add(lease);
            self.version += 1;
        }
        held
    }

    /// Records the end. Late is fine while nobody else has claimed or settled it: the owner knows
    /// best. Gives back what was there before, or `end` itself if the claim is lost.
    pub(crate) fn finalise(
        &mut self,
        token: Token,
        end: State<D, F>,
        now: Millis,
        ttl: Millis,
    ) -> Result<State<D, F>, State<D, F>> {
        let open = matches!(self.state, State::Inflight | State::Unknown(_));
        if self.token != token || !open {
            return Err(end);
        }
        Ok(self.turn(end, now, ttl))
    }

    /// Says how a call of unknown outcome ended. Gives back `to` if its outcome is not unknown.
    pub(crate) fn settle(
        &mut self,
        to: State<D, F>,
        now: Millis,
        ttl: Millis,
    ) -> Result<State<D, F>, State<D, F>> {
        if !matches!(self.state, State::Unknown(_)) {
            return Err(to);
        }
        Ok(self.turn(to, now, ttl))
    }

    /// Lets time pass: a lease that has ended leaves `unknown`. Says whether the record is over.
    pub(crate) fn expire(&mut self, now: Millis, unknown: Millis) -> bool {
        if matches!(self.state, State::Inflight) && now >= self.until {
            self.turn(State::Unknown(None), self.until, unknown);
        }
        !matches!(self.state, State::Inflight) && now >= self.until
    }

    /// Whether forgetting this record could run a call twice or lose an answer.
    pub(crate) const fn is_pinned(&self) -> bool {
        match self.state {
            State::Inflight => true,
            State::Unknown(_) => self.mutating,
            _ => false,
        }
    }

    fn turn(&mut self, to: State<D, F>, at: Millis, ttl: Millis) -> State<D, F> {
        self.version += 1;
        self.changed_at = at;
        self.until = at.saturating_add(ttl);
        mem::replace(&mut self.state, to)
    }
}

#[cfg(test)]
mod tests;
