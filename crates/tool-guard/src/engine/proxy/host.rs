//! The calls of a host that runs its tools itself.
use super::Proxy;
use crate::{engine::answer, wire::jsonrpc::Token};
use serde_json::value::RawValue;
use tr_core::{Effect, internal::lock};

impl Proxy {
    /// The host says what a tool does.
    pub(crate) fn learn(&self, tool: &str, effect: Option<Effect>) {
        let said = effect.filter(|effect| *effect != Effect::Mutating);
        lock(&self.effects).list(tool.into(), said, effect == Some(Effect::Mutating));
    }

    /// The host has made the call, with this result.
    pub(crate) fn on_host_end(&mut self, id: &Token, result: &RawValue) {
        self.end_attempt(id, None, |kept| answer::of_result(result, kept));
    }

    /// The host waits for the call no longer.
    pub(crate) fn cancel(&self, id: &Token) {
        self.wire.lock().in_flight.cancel(id);
    }
}
