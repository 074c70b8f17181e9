//! The observers of one layer's breakers.
use crate::sync::held;
use std::sync::{
    Arc, RwLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};
use tr_core::{CallInfo, Event, Observer};

/// The observers of one layer's breakers. Asked only where something happened.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    /// Observers cannot unsubscribe.
    has_any: AtomicBool,
    all: RwLock<Arc<[Arc<dyn Observer>]>>,
    #[cfg(feature = "redis")]
    changes: std::sync::OnceLock<std::sync::Weak<dyn Changes>>,
}

/// Receives the name of each breaker that changed its state or its mode.
#[cfg(feature = "redis")]
pub(crate) trait Changes: std::fmt::Debug + Send + Sync {
    fn changed(&self, name: &str);
}

impl Observers {
    pub(crate) fn add(&self, observer: Arc<dyn Observer>) {
        let mut all = held(self.all.write());
        *all = all.iter().cloned().chain([observer]).collect();
        self.has_any.store(true, Relaxed);
    }

    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.has_any.load(Relaxed) && self.all().iter().any(|observer| observer.enabled())
    }

    pub(crate) fn notify(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        if let Event::Breaker { breaker, .. } = event {
            self.changed(breaker);
        }
        for observer in self.all().iter().filter(|observer| observer.enabled()) {
            observer.on_event(call, event);
        }
    }

    /// A breaker has changed its state, or its mode.
    pub(crate) fn changed(&self, name: &str) {
        #[cfg(feature = "redis")]
        if let Some(changes) = self.changes.get().and_then(std::sync::Weak::upgrade) {
            changes.changed(name);
        }
        #[cfg(not(feature = "redis"))]
        let _ = name;
    }

    /// Sets the receiver of changes; `false` if there is one already.
    #[cfg(feature = "redis")]
    pub(crate) fn set_changes(&self, changes: std::sync::Weak<dyn Changes>) -> bool {
        self.changes.set(changes).is_ok()
    }

    /// A copy, so that observers may use the breakers while they are notified.
    fn all(&self) -> Arc<[Arc<dyn Observer>]> {
        held(self.all.read()).clone()
    }
}
