//! Breakers note here that they changed; the sharing task (`share/rounds.rs`) takes the notes and is woken by them.
use crate::sync::ignore_poison;
use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex},
    time::Instant,
};
use tokio::sync::Notify;

/// Which breakers changed since the last round, and a notification for them. Used when a breaker changes its state
/// or its mode, never by a call that is admitted or rejected.
#[derive(Debug, Default)]
pub(crate) struct ChangedBreakers {
    changed: Mutex<Changed>,
    /// Notified also when another process has published.
    pub(crate) notify: Notify,
}

/// The breakers that changed, and when they last did.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) at: HashMap<Arc<str>, Instant>,
    /// There were more.
    pub(crate) is_cut: bool,
}

/// The bound of remembered names while no round runs; callers may choose the names.
const MOST: usize = 10_000;

impl ChangedBreakers {
    pub(crate) fn note(&self, name: &str, now: Instant) {
        {
            let mut changed = ignore_poison(self.changed.lock());
            let known = changed.at.len();
            match changed.at.get_mut(name) {
                Some(at) => *at = now,
                None if known == MOST => changed.is_cut = true,
                None => drop(changed.at.insert(name.into(), now)),
            }
        }
        self.notify.notify_one();
    }

    pub(crate) fn take(&self) -> Changed {
        mem::take(&mut *ignore_poison(self.changed.lock()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_remembered_up_to_a_bound_and_that_there_were_more() {
        let (breakers, now) = (ChangedBreakers::default(), crate::clock::now());
        for n in 0..MOST {
            breakers.note(&n.to_string(), now);
        }
        breakers.note("0", now);
        let taken = breakers.take();
        assert_eq!((taken.at.len(), taken.is_cut), (MOST, false));
        for n in 0..=MOST {
            breakers.note(&n.to_string(), now);
        }
        let taken = breakers.take();
        assert_eq!((taken.at.len(), taken.is_cut), (MOST, true));
        assert!(!breakers.take().is_cut);
    }
}
