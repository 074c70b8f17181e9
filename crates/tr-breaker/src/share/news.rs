//! Breakers note here that they changed; the sharing task (`rounds.rs`) takes the notes and is woken by them.
use crate::{clock, observers::Changes, sync::held};
use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, Weak},
    time::Instant,
};
use tokio::sync::Notify;

/// Which breakers changed since the last round, and a notification for them. Used when a breaker changes its state
/// or its mode, never by a call that is admitted or rejected.
#[derive(Debug, Default)]
pub(crate) struct News {
    touched: Mutex<Touched>,
    /// Notified also when another process has published.
    pub(crate) bell: Notify,
}

/// The breakers that changed, and when they last did.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) at: HashMap<Arc<str>, Instant>,
    /// There were more.
    pub(crate) is_cut: bool,
}

/// The bound of remembered names while no round runs; callers may choose the names.
const MOST: usize = 10_000;

impl News {
    pub(crate) fn touch(&self, name: &str, now: Instant) {
        {
            let mut touched = held(self.touched.lock());
            let known = touched.at.len();
            match touched.at.get_mut(name) {
                Some(at) => *at = now,
                None if known == MOST => touched.is_cut = true,
                None => drop(touched.at.insert(name.into(), now)),
            }
        }
        self.bell.notify_one();
    }

    /// What the observers of a layer hold of it.
    pub(crate) fn as_changes(self: &Arc<Self>) -> Weak<dyn Changes> {
        let weak: Weak<Self> = Arc::downgrade(self);
        weak
    }

    pub(crate) fn take(&self) -> Touched {
        mem::take(&mut *held(self.touched.lock()))
    }
}

impl Changes for News {
    fn changed(&self, name: &str) {
        self.touch(name, clock::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_remembered_up_to_a_bound_and_that_there_were_more() {
        let (news, now) = (News::default(), crate::clock::now());
        for n in 0..MOST {
            news.touch(&n.to_string(), now);
        }
        news.touch("0", now);
        let touched = news.take();
        assert_eq!((touched.at.len(), touched.is_cut), (MOST, false));
        for n in 0..=MOST {
            news.touch(&n.to_string(), now);
        }
        let touched = news.take();
        assert_eq!((touched.at.len(), touched.is_cut), (MOST, true));
        assert!(!news.take().is_cut);
    }
}
