//! Observers of the calls besides the events: the attribution log and the summary.
use super::{
    Mode,
    attribution::ClientLog,
    call::McpCall,
    message::Message,
    meta::Said,
    records,
    summary::{Counted, Counts},
};
use std::{path::Path, sync::Arc};
use tool_reliability::{Builder, telemetry::TARGET};
use tr_core::{CallParts, ToolCall, canonical::Key};

/// The observers; none by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watching {
    attribution: Option<Arc<ClientLog>>,
    counts: Option<Arc<Counts>>,
    /// Whether the summary is of what the stack would have done.
    shadow: bool,
}

impl Watching {
    /// Opens the attribution log, if it has a path, and counts for the summary, if there is a log for it.
    pub(crate) fn new(mode: Mode, path: Option<&Path>, logs: bool) -> anyhow::Result<Self> {
        if mode == Mode::Off {
            return Ok(Self::default());
        }
        let attribution = path.map(ClientLog::open).transpose()?.map(Arc::new);
        Ok(Self { attribution, counts: logs.then(Arc::default), shadow: mode == Mode::Shadow })
    }

    /// Registers them with the stack.
    pub(crate) fn watch(&self, mut builder: Builder) -> Builder {
        if let Some(log) = self.attribution.clone() {
            builder = builder.loop_guard(|guard| guard.log(log));
        }
        match self.counts.clone() {
            Some(counts) if self.shadow => builder
                .shadow_observer(counts.clone())
                .on_shadow_end(move |end| counts.would_have_ended(end)),
            Some(counts) => builder.observer(counts),
            None => builder,
        }
    }

    /// Handles a request of the client's that is no call.
    pub(crate) fn on_request(&self, message: &Message<'_>) {
        if let Some(log) = &self.attribution {
            log.on_request(message);
        }
    }

    /// Adds to the call what its client says about its model.
    pub(crate) fn attribute(&self, parts: &mut CallParts, said: &Said) {
        if let Some(log) = &self.attribution {
            log.attribute(parts, said);
        }
    }

    /// Counts an answer whose call's end is not recorded.
    pub(crate) fn on_unrecorded(&self, key: &Key) {
        let record = records::short(key);
        tracing::warn!(target: TARGET, event = "end_not_recorded", record);
        if let Some(counts) = &self.counts {
            counts.unrecorded();
        }
    }

    /// Counts the beginning of a call.
    pub(crate) fn begin(&self, mcp: &Arc<McpCall>, call: &ToolCall) -> Option<Counted> {
        self.counts.as_ref().map(|counts| counts.begin(mcp, call, self.shadow))
    }

    /// Logs the summary, and writes the rest of the attribution log, after all calls have ended.
    pub(crate) fn finish(&self) {
        if let Some(counts) = &self.counts {
            counts.tell();
        }
        if let Some(log) = &self.attribution {
            log.finish();
        }
    }
}
