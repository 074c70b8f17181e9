//! The stack's records, as telemetry's gauges show them.
use std::sync::Mutex;
use tr_core::{ToolOutcome, internal::lock};
use tr_idempotency::{Handle, StateCount, StoreHandle};
use tr_telemetry::{CacheReadings, RecordCount, Refresh};

/// The records of the stack's store; without one, those of this process.
pub(crate) struct Records {
    handle: Handle<ToolOutcome>,
    store: Option<StoreHandle<ToolOutcome>>,
    /// Those of the store, as they were last read.
    last: Mutex<Vec<StateCount>>,
}

impl Records {
    pub(crate) fn new(handle: Handle<ToolOutcome>) -> Self {
        Self { store: handle.in_store(), handle, last: Mutex::default() }
    }
}

impl CacheReadings for Records {
    fn read(&self, report: &mut dyn FnMut(RecordCount<'_>)) {
        let counts = match self.store {
            None => self.handle.state_counts(),
            Some(_) => lock(&self.last).clone(),
        };
        for StateCount { tool, scope, state, records, stale, ttl, .. } in counts {
            let state = state.as_str();
            report(RecordCount { tool: &tool, scope, state, records, stale, ttl });
        }
    }

    fn refresh(&self) -> Option<Refresh<'_>> {
        let store = self.store.as_ref()?;
        Some(Box::pin(async {
            // A store that cannot be reached shows what it last had.
            if let Ok(counts) = store.state_counts().await {
                *lock(&self.last) = counts;
            }
        }))
    }
}
