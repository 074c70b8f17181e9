//! Several observers as one.
use std::sync::Arc;
use tr_core::{CallInfo, Event, Observer};

/// All of `observers`, in their order.
pub(crate) fn all(mut observers: Vec<Arc<dyn Observer>>) -> Arc<dyn Observer> {
    match observers.len() {
        1 => observers.remove(0),
        _ => Arc::new(All(observers)),
    }
}

#[derive(Debug)]
struct All(Vec<Arc<dyn Observer>>);

impl Observer for All {
    fn enabled(&self) -> bool {
        self.0.iter().any(|observer| observer.enabled())
    }

    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        let listening = self.0.iter().filter(|observer| observer.enabled());
        listening.for_each(|observer| observer.on_event(call, event));
    }
}
