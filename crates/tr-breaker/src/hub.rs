//! Who listens to the breakers of one layer.
use crate::sync::held;
use std::sync::{
    Arc, RwLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};
use tr_core::{CallInfo, Event, Observer};

/// Who listens to the breakers of one layer. Asked only where something happened.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    /// There is no way back: whoever subscribed stays.
    has_observers: AtomicBool,
    observers: RwLock<Arc<[Arc<dyn Observer>]>>,
}

impl Hub {
    pub(crate) fn add(&self, observer: Arc<dyn Observer>) {
        let mut observers = held(self.observers.write());
        *observers = observers.iter().cloned().chain([observer]).collect();
        self.has_observers.store(true, Relaxed);
    }

    #[inline]
    pub(crate) fn listens(&self) -> bool {
        self.has_observers.load(Relaxed) && self.all().iter().any(|observer| observer.enabled())
    }

    pub(crate) fn tell(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        for observer in self.all().iter().filter(|observer| observer.enabled()) {
            observer.on_event(call, event);
        }
    }

    /// A copy, so that observers may do as they like while they are told.
    fn all(&self) -> Arc<[Arc<dyn Observer>]> {
        held(self.observers.read()).clone()
    }
}
