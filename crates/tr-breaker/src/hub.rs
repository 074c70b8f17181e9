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
    /// Observers cannot unsubscribe.
    has_observers: AtomicBool,
    observers: RwLock<Arc<[Arc<dyn Observer>]>>,
    /// Who tells other processes; at most one.
    #[cfg(feature = "redis")]
    news: std::sync::OnceLock<std::sync::Weak<crate::share::News>>,
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
        if let Some(news) = self.news.get().and_then(std::sync::Weak::upgrade) {
            news.touch(name, crate::clock::now());
        }
        #[cfg(not(feature = "redis"))]
        let _ = name;
    }

    /// Sets the receiver of changes; `false` if there is one already.
    #[cfg(feature = "redis")]
    pub(crate) fn share(&self, news: &Arc<crate::share::News>) -> bool {
        self.news.set(Arc::downgrade(news)).is_ok()
    }

    /// A copy, so that observers may use the breakers while they are notified.
    fn all(&self) -> Arc<[Arc<dyn Observer>]> {
        held(self.observers.read()).clone()
    }
}
