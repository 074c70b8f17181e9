//! The list of observers of one layer's breakers, and how an event reaches them.
use std::sync::{
    Arc, RwLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};
use tr_policy::{CallInfo, Event, Observer, internal::ignore_poison};

/// The observers of one layer's breakers. Read only when a breaker has an event, not on each call.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    /// Spares the lock while there are none. Never reset: observers cannot unsubscribe.
    has_any: AtomicBool,
    all: RwLock<Arc<[Arc<dyn Observer>]>>,
}

impl Observers {
    pub(crate) fn add(&self, observer: Arc<dyn Observer>) {
        let mut all = ignore_poison(self.all.write());
        *all = all.iter().cloned().chain([observer]).collect();
        self.has_any.store(true, Relaxed);
    }

    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.has_any.load(Relaxed) && self.all().iter().any(|observer| observer.enabled())
    }

    pub(crate) fn notify(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        for observer in self.all().iter().filter(|observer| observer.enabled()) {
            observer.on_event(call, event);
        }
    }

    /// A copy, so that observers may use the breakers while they are notified.
    fn all(&self) -> Arc<[Arc<dyn Observer>]> {
        ignore_poison(self.all.read()).clone()
    }
}
