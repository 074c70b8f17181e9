//! What breakers have decided since somebody looked.
use crate::sync::held;
use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex},
    time::Instant,
};
use tokio::sync::Notify;

/// What breakers have decided since somebody looked, and a bell for it. Touched when a breaker changes its state
/// or its mode, never by a call that passes or is refused.
#[derive(Debug, Default)]
pub(crate) struct News {
    touched: Mutex<Touched>,
    /// Rung also when others have decided something.
    pub(crate) bell: Notify,
}

/// The breakers that changed, and when they last did.
pub(crate) type Touched = HashMap<Arc<str>, Instant>;

impl News {
    pub(crate) fn touch(&self, name: &str, now: Instant) {
        {
            let mut touched = held(self.touched.lock());
            match touched.get_mut(name) {
                Some(at) => *at = now,
                None => drop(touched.insert(name.into(), now)),
            }
        }
        self.bell.notify_one();
    }

    pub(crate) fn take(&self) -> Touched {
        mem::take(&mut *held(self.touched.lock()))
    }
}
