//! What the tests of this crate share: an observer that remembers.
use std::sync::{Arc, Mutex};
use tr_core::{CallInfo, Event, Observer};

/// One line for each event.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Heard {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        let &Event::TimedOut { after, ran } = event else { panic!("unexpected: {event:?}") };
        let line = format!("{} {}: {after:?}, {ran:?}", call.tool, call.request_id.unwrap_or("-"));
        self.0.lock().unwrap().push(line);
    }
}
