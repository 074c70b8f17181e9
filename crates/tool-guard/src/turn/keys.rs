//! The keys under which the calls of a plan are recorded, and the record of each call.
use crate::{
    engine::{identity::Client, records::RecordsCommand},
    terminal::short_id,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tool_reliability::idempotency::StoreHandle;
use tr_core::{
    DedupeKey, DefaultPolicy, Effect, Ran, RequestPolicy, ToolCall, ToolOutcome, canonical::Key,
    internal::lock,
};
use tr_turn::{Plan, Report};

/// Assigns the calls of a turn their keys.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    client: Client,
    run: Option<Box<str>>,
    /// The records of the calls that were made, by their names.
    made: Arc<Mutex<BTreeMap<Box<str>, Key>>>,
    /// By which a person settles a record.
    command: RecordsCommand,
}

impl Keys {
    /// For calls to this server, in this run of the plan.
    pub(crate) fn new(server: &str, run: Option<&str>, command: RecordsCommand) -> Self {
        // A key of the call's own needs no connection.
        let client = Client::new(server, "turn", Vec::new());
        Self { client, run: run.map(Into::into), made: Arc::default(), command }
    }

    /// The plan with a key for each call, if the run has a name. A call's own key stays: the call is then
    /// the same in every run.
    pub(crate) fn plan(&self, plan: Plan) -> Plan {
        match &self.run {
            Some(run) => plan.keyed(|call| key_in(run, call)),
            None => plan,
        }
    }

    /// Sets the dedupe key of a call that has a key: the same that `tool-guard mcp` uses for it.
    pub(crate) fn tell(&self, mut call: ToolCall) -> ToolCall {
        let effect = DefaultPolicy.effect(&call);
        call.parts_mut().own_params = true;
        let parts = call.parts();
        let Some(key) = parts.idempotency.key.as_deref() else { return call };
        let key = self.client.own_key(parts, key);
        // If its params have no canonical form, the layer refuses the call with that reason.
        let Ok(digest) = call.digest() else { return call };
        if effect == Effect::Mutating
            && let Some(name) = name_of(&call)
        {
            lock(&self.made).insert(name.into(), key);
        }
        let parts = &mut call.parts_mut().idempotency;
        parts.id = Some(DedupeKey { key, digest });
        parts.in_process = effect != Effect::Mutating && self.run.is_none();
        call
    }

    /// The calls whose ends this store does not have, as text, after all calls have ended; empty if there are none.
    pub(crate) fn unrecorded(&self, store: &StoreHandle<ToolOutcome>) -> String {
        let made = lock(&self.made);
        let unrecorded = made.iter().filter(|(_, key)| store.is_unrecorded(key));
        let line = |name: &str, key: &Key| {
            let (short, command) = (short_id(key), &self.command);
            format!(
                "tool-guard: the end of {name} is not recorded [record {short}]: once the records can be written, run {command} settle {short} done, or did-not-run, as the trace says; until then a repeat of the call is refused\n"
            )
        };
        unrecorded.map(|(name, key)| line(name, key)).collect()
    }

    /// The calls that a person has to settle, as text; empty if every call's end is known.
    pub(crate) fn unknown(&self, report: &Report) -> String {
        let made = lock(&self.made);
        let unknown = report.calls.iter().filter(|call| call.ran == Ran::Unknown);
        let line = |name: &str| {
            let (short, command) = (short_id(made.get(name)?), &self.command);
            Some(format!(
                "{name} may have run [record {short}]: find out whether it did, then run {command} settle {short} done, or did-not-run\n"
            ))
        };
        unknown.filter_map(|call| line(&call.name)).collect()
    }
}

/// The key of a call in a run.
fn key_in(run: &str, call: &str) -> Box<str> {
    serde_json::json!(["run", run, call]).to_string().into()
}

/// The call's name in its plan: the middle part of its request id, between the turn's name and a number.
fn name_of(call: &ToolCall) -> Option<&str> {
    let parts = call.parts();
    let id = parts.request_id.as_deref()?.strip_prefix(parts.turn.as_deref()?)?;
    Some(id.strip_prefix('/')?.rsplit_once('/')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_core::CallParts;

    fn call(key: Option<&str>, effect: Effect) -> ToolCall {
        let mut parts = CallParts::new("pay", tr_core::Json::empty_object());
        parts.idempotency.key = key.map(Into::into);
        (parts.effect, parts.effect_declared) = (effect, true);
        (parts.turn, parts.request_id) = (Some("a/b".into()), Some("a/b/pay/the bill/7".into()));
        parts.into()
    }

    #[test]
    fn a_key_names_one_call_of_a_server_and_runs_and_calls_are_told_apart() {
        let of = |server: &str, key: &str| {
            let keys = Keys::new(server, None, RecordsCommand::default());
            keys.tell(call(Some(key), Effect::Mutating)).parts().idempotency.id.unwrap().key
        };
        assert_eq!(of("shop", "k"), of("shop", "k"));
        assert_ne!(of("shop", "k"), of("bank", "k"));
        assert_ne!(key_in("1", "2"), key_in("1\",\"2", ""));
        assert_ne!(key_in("a", "b"), key_in("b", "a"));
        assert!(
            Keys::new("shop", None, RecordsCommand::default())
                .tell(call(None, Effect::Mutating))
                .parts()
                .idempotency
                .id
                .is_none()
        );
    }

    #[test]
    fn reads_are_recorded_in_a_run_with_a_name_only() {
        let in_process = |run, effect| {
            let call =
                Keys::new("shop", run, RecordsCommand::default()).tell(call(Some("k"), effect));
            call.parts().idempotency.in_process
        };
        assert!(in_process(None, Effect::ReadOnly) && !in_process(Some("r"), Effect::ReadOnly));
        assert!(!in_process(None, Effect::Mutating) && !in_process(Some("r"), Effect::Mutating));
    }

    #[test]
    fn a_call_is_known_by_its_name_in_the_plan() {
        assert_eq!(name_of(&call(None, Effect::Mutating)), Some("pay/the bill"));
    }
}
