//! Which of two decisions about a breaker holds, its own process's or the one in Redis: pure, with the time as an
//! argument. `fleet.rs` has a [`Record`] for each shared breaker.
use super::entry::Entry;
use crate::{
    decision::{Decision, State, View},
    settings::Mode,
};
use std::time::{Duration, Instant};

/// How long a past decision is remembered, here and in Redis, so that an old one is not taken for a new one.
pub(crate) const KEEP: Duration = Duration::from_secs(10 * 60);

/// What a process knows of a breaker that is shared.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The last epoch it knows of; 0 if none.
    pub(crate) epoch: u64,
    /// What that decided.
    known: Known,
    /// How the breaker was when it was last looked at.
    mark: Option<(u32, Mode)>,
    /// The mode that an operator set, here or in another process.
    order: Option<Mode>,
    /// The decision since then that is not published yet.
    pending: Option<Pending>,
}

/// A decision, by this process's clock.
#[derive(Clone, Copy, Debug)]
struct Known {
    decision: Decision,
    /// When it was decided; `None` if before this clock began.
    at: Option<Instant>,
    /// When it was published: the rest of a cooldown counts from here.
    published_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    /// `None`: before we shared anything.
    since: Option<Instant>,
    is_standing: bool,
}

/// A decision that a process publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The epoch that it follows, or the one that it repeats.
    pub(crate) epoch: u64,
    pub(crate) is_new: bool,
    pub(crate) age: Duration,
    pub(crate) decision: Decision,
}

/// What to do about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// Nothing: it is no news.
    Old,
    /// Do as it says.
    Adopt,
    /// Publish our own decision over it.
    Keep,
}

impl Record {
    pub(crate) const fn new(now: Instant) -> Self {
        let decision = Decision { state: State::Closed, order: None };
        let known = Known { decision, at: None, published_at: now };
        Self { epoch: 0, known, mark: None, order: None, pending: None }
    }

    /// Notices what the breaker has decided by itself since it was last looked at.
    pub(crate) fn look(&mut self, view: &View, since: Option<Instant>, now: Instant) {
        let is_news = match self.mark {
            Some((generation, mode)) => {
                mode != view.mode || (generation != view.generation && view.state.is_some())
            }
            // It was created since, with the known state.
            None if self.epoch > 0 => {
                view.mode != self.order.unwrap_or(view.configured)
                    || view.state.is_some_and(|state| !self.is_known(state, now))
            }
            None => view.order.is_some() || view.state.is_some() && !view.is_as_configured,
        };
        if is_news {
            // A mode that was ordered stays an order where it is also configured.
            if self.mark.is_none_or(|(_, mode)| mode != view.mode) {
                self.order = view.order;
            }
            let is_standing = self.decision(view).is_standing();
            self.pending = Some(Pending { since, is_standing });
        } else if view.state.is_none() {
            // It was open, and is not any more: that is not shared. An operator's order is.
            self.pending = self.pending.filter(|pending| pending.is_standing);
        }
        if self.mark.is_none() || is_news {
            self.mark = Some((view.generation, view.mode));
        }
    }

    /// Whether it is the decision of another process, and not a new one of the same kind.
    fn is_known(&self, state: State, now: Instant) -> bool {
        let known = self.known.decision.state;
        match (state, known) {
            (State::Open { left }, State::Open { left: known }) => {
                let known =
                    known.saturating_sub(now.saturating_duration_since(self.known.published_at));
                left.abs_diff(known) < Duration::from_millis(1)
            }
            _ => state == known,
        }
    }

    fn decision(&self, view: &View) -> Decision {
        let state = view.state.unwrap_or(State::Open { left: Duration::ZERO });
        Decision { state, order: self.order }
    }

    /// What to do about an entry.
    pub(crate) fn judge(&self, entry: &Entry, now: Instant) -> Merge {
        if entry.epoch <= self.epoch {
            return Merge::Old;
        }
        // What was decided before this process shared anything yields to what others decided.
        let Some(Pending { since: Some(since), is_standing }) = self.pending else {
            return Merge::Adopt;
        };
        // The reply to it was lost: ours is later in any case.
        if entry.mine {
            return Merge::Keep;
        }
        match (is_standing, entry.decision.is_standing()) {
            // Only a process that has read an order can undo it.
            (true, false) => Merge::Keep,
            (false, true) => Merge::Adopt,
            // Else the later one holds.
            _ if now.saturating_duration_since(since) < entry.age => Merge::Keep,
            _ => Merge::Adopt,
        }
    }

    /// Our own decision follows this one.
    pub(crate) fn keep(&mut self, entry: &Entry, now: Instant) {
        self.epoch = entry.epoch;
        self.known =
            Known { decision: entry.decision, at: now.checked_sub(entry.age), published_at: now };
    }

    /// The breaker does as this entry says, and is like this now.
    pub(crate) fn adopt(&mut self, entry: &Entry, view: &View, now: Instant) {
        self.leave(entry, now);
        self.mark = Some((view.generation, view.mode));
    }

    /// The breaker will do as this entry says, when it is made.
    pub(crate) fn leave(&mut self, entry: &Entry, now: Instant) {
        self.keep(entry, now);
        (self.mark, self.order, self.pending) = (None, entry.decision.order, None);
    }

    /// What to publish of this breaker; `None` if nothing is pending.
    pub(crate) fn offer(&self, view: &View, now: Instant) -> Option<Offer> {
        let since = self.pending?.since;
        let age = since.map_or(Duration::MAX, |since| now.saturating_duration_since(since));
        Some(Offer { epoch: self.epoch, is_new: true, age, decision: self.decision(view) })
    }

    /// An offer was taken, under this epoch; the breaker may have gone on since.
    pub(crate) fn taken(&mut self, offer: &Offer, epoch: u64, now: Instant) {
        self.epoch = epoch;
        self.known =
            Known { decision: offer.decision, at: now.checked_sub(offer.age), published_at: now };
        self.pending = None;
    }

    /// The known state, for a Redis that has lost its data.
    pub(crate) fn repeat(&self, now: Instant) -> Option<Offer> {
        let Known { mut decision, at, published_at } = self.known;
        if let State::Open { left } = &mut decision.state {
            *left = left.saturating_sub(now.saturating_duration_since(published_at));
        }
        let age = at.map_or(Duration::MAX, |at| now.saturating_duration_since(at));
        (self.epoch > 0).then_some(Offer { epoch: self.epoch, is_new: false, age, decision })
    }

    /// Its breaker is gone, and with it what it had decided.
    pub(crate) const fn give_up(&mut self) {
        self.pending = None;
    }

    pub(crate) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether it may be dropped: Redis has expired it, too.
    pub(crate) fn is_over(&self, now: Instant, keep: Duration) -> bool {
        let Known { decision, published_at, .. } = self.known;
        let until = published_at + decision.left();
        self.pending.is_none()
            && !decision.is_standing()
            && now.saturating_duration_since(until) > keep
    }
}
