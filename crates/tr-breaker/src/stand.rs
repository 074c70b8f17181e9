//! Where calls leave their successes, without counting references.
use crate::{
    gate::Gate,
    lane::Lane,
    pace::Pace,
    settings::Settings,
    sync::{Mutex, STRIPES, held},
};
use std::{
    array, mem,
    ops::Deref,
    sync::{Arc, Weak},
};
use tr_core::CoarseInstant;

/// Where the calls of one breaker leave their successes.
///
/// It lives as long as the process, so that a call in flight can refer to it for nothing; a shared
/// reference count would cost more than all the rest of a success. When its breaker is gone it
/// serves another one, whose generations follow: a call that comes too late is of an older
/// generation, and changes nothing. There are never more stands than breakers had one at once.
#[derive(Debug)]
pub(crate) struct Stand {
    pub(crate) pace: Pace,
    lanes: [Apart; STRIPES],
    tenant: Mutex<Tenant>,
}

/// A lane on a line of its own (two, since processors fetch pairs), so that threads of different
/// stripes do not disturb one another.
#[derive(Debug)]
#[repr(align(128))]
struct Apart(Lane);

#[derive(Debug)]
struct Tenant {
    gate: Weak<Gate>,
    /// Which generation it begins with; each is used by one breaker at most.
    first: u32,
}

impl Stand {
    fn new(settings: &Settings) -> Self {
        Self {
            pace: Pace::new(settings),
            lanes: array::from_fn(|_| Apart(Lane::shut_from_the_start())),
            tenant: Mutex::new(Tenant { gate: Weak::new(), first: 0 }),
        }
    }

    /// Counts a success, or says that the machine has to be asked.
    #[inline]
    pub(crate) fn count(
        &self,
        generation: u32,
        stripe: usize,
        began: Option<CoarseInstant>,
        now: impl Fn() -> CoarseInstant,
    ) -> bool {
        (self.pace.is_timeless() || self.pace.allows(began, now()))
            && self.lanes[stripe].0.add(generation, self.pace.enough())
    }

    /// The same where the clock does not matter.
    #[inline]
    pub(crate) fn count_timeless(&self, generation: u32, stripe: usize) -> bool {
        self.pace.is_timeless() && self.lanes[stripe].0.add(generation, self.pace.enough())
    }

    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().map(|apart| &apart.0)
    }

    /// Whose it is now; `None` if that one is gone.
    #[cold]
    pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
        held(self.tenant.lock()).gate.upgrade()
    }
}

/// The right to a stand, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease(&'static Stand);

impl Lease {
    /// One that is free, or a new one.
    pub(crate) fn new(settings: &Settings) -> Self {
        let free = held(FREE.lock()).pop();
        let stand = match free {
            Some(stand) => {
                stand.pace.begin(settings);
                stand
            }
            None => Box::leak(Box::new(Stand::new(settings))),
        };
        Self(stand)
    }

    pub(crate) const fn stand(&self) -> &'static Stand {
        self.0
    }

    pub(crate) fn first_generation(&self) -> u32 {
        held(self.tenant.lock()).first
    }

    /// Whom calls find here that come to a bad end.
    pub(crate) fn settle(&self, gate: Weak<Gate>) {
        held(self.tenant.lock()).gate = gate;
    }

    /// The tenant goes, having come to this generation.
    pub(crate) fn leave(&self, generation: u32) {
        let mut tenant = held(self.tenant.lock());
        tenant.first = generation.wrapping_add(1);
        let gate = mem::take(&mut tenant.gate);
        drop(tenant);
        drop(gate);
        self.lanes().for_each(|lane| _ = lane.shut());
    }
}

impl Deref for Lease {
    type Target = Stand;

    fn deref(&self) -> &Stand {
        self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        held(FREE.lock()).push(self.0);
    }
}

/// The unused ones.
#[cfg(not(tr_loom))]
static FREE: Mutex<Vec<&'static Stand>> = Mutex::new(Vec::new());

#[cfg(tr_loom)]
loom::lazy_static! {
    static ref FREE: Mutex<Vec<&'static Stand>> = Mutex::new(Vec::new());
}
