//! What the tests of this crate share: an observer that remembers.
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tr_core::{CallInfo, Event, Observer, Ran};

/// Tool, request id and what `TimedOut` said, of each event.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<Vec<(String, Option<String>, Duration, Ran)>>);

impl Heard {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn events(&self) -> Vec<(String, Option<String>, Duration, Ran)> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Heard {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        let &Event::TimedOut { after, ran } = event else { panic!("unexpected: {event:?}") };
        let id = call.request_id.map(Into::into);
        self.0.lock().unwrap().push((call.tool.into(), id, after, ran));
    }
}
