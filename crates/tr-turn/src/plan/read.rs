//! Reads a plan in JSON.
use super::{Alternative, Call, Draft, names::is_blank};
use crate::json::{below, elements, members};
use serde::de::DeserializeOwned;
use std::{borrow::Cow, time::Duration};
use tr_core::{Json, canonical};
use tr_wire::{EnvelopeFault, closest};

type Faults = Vec<EnvelopeFault>;

/// Reads as much as possible, and reports the rest.
pub(super) fn draft(text: &str, faults: &mut Faults) -> Draft {
    if let Err(error) = canonical::to_string(text) {
        let found = format!("{} at byte {}", error.kind(), error.offset());
        faults.push(EnvelopeFault::new(error.pointer(), "unambiguous JSON", found));
        return Draft::default();
    }
    let mut draft = Draft::default();
    let Some(mut plan) = Object::open(String::new(), text, faults) else { return draft };
    plan.skip("$schema");
    draft.turn = plan.name("turn");
    draft.session = plan.name("session");
    draft.agent = plan.name("agent");
    if let Some(mut limits) = plan.object("limits") {
        if let Some(timeout) = limits.millis("timeout_ms") {
            draft.limits.timeout = timeout;
        }
        draft.limits.call_timeout = limits.millis("call_timeout_ms");
        draft.limits.attempt_timeout = limits.millis("attempt_timeout_ms");
        if let Some(concurrency) = limits.value("concurrency", "a whole number") {
            draft.limits.concurrency = concurrency;
        }
        limits.close();
    }
    if let Some((at, calls)) = plan.elements("calls") {
        let calls = calls.into_iter().enumerate();
        draft.calls = calls.map(|(i, text)| call(below(&at, i), text, plan.faults)).collect();
    }
    plan.close();
    draft
}

/// A call without a tool keeps its index, so that the pointers of the others are right.
fn call(at: String, text: &str, faults: &mut Faults) -> Call {
    let nameless = || Call::new("");
    let Some(mut object) = Object::open(at, text, faults) else { return nameless() };
    let mut call = object.tool().map_or_else(nameless, Call::new);
    if let Some(name) = object.name("name") {
        call.name = name;
    }
    if let Some(params) = object.params("params") {
        call.params = params;
    }
    call.after = object.names("depends_on");
    if let Some(defaults) = object.object("defaults") {
        let taken = defaults.members.into_iter();
        call.defaults = taken.map(|(name, value)| (name.into(), json(value))).collect();
    }
    call.required = object.value("required", "true or false");
    call.default_value = object.take_any("default_value").map(json);
    if let Some((at, all)) = object.elements("alternatives") {
        let all = all.into_iter().enumerate();
        let read = all.map(|(i, text)| alternative(below(&at, i), text, object.faults));
        call.alternatives = Some(read.collect());
    }
    call.priority = object.value("priority", r#""low", "normal" or "high""#);
    call.effect = object.value("effect", r#""read_only", "idempotent" or "mutating""#);
    call.timeout = object.millis("timeout_ms");
    call.attempt_timeout = object.millis("attempt_timeout_ms");
    call.idempotency_key = object.name("idempotency_key");
    call.cancellation_id = object.name("cancellation_id");
    object.close();
    call
}

/// An alternative without a tool keeps its index, too.
fn alternative(at: String, text: &str, faults: &mut Faults) -> Alternative {
    if !text.starts_with('{') {
        let tool = name(at, text, "the name of a tool, or an object", faults);
        return Alternative { tool: tool.unwrap_or_default(), params: None };
    }
    let Some(mut object) = Object::open(at, text, faults) else {
        return Alternative { tool: Box::default(), params: None };
    };
    let (tool, params) = (object.tool().unwrap_or_default(), object.params("params"));
    object.close();
    // The fault is reported at the tool in the object.
    let params =
        if is_blank(&tool) { params.or_else(|| Some(Json::empty_object())) } else { params };
    Alternative { tool, params }
}

fn json(text: &str) -> Json {
    Json::from_text(text).expect("part of a JSON text")
}

/// A string. Whether it is a valid name is checked later, as for drafts that were built in code.
fn name(at: String, text: &str, expected: &'static str, faults: &mut Faults) -> Option<Box<str>> {
    let name = serde_json::from_str::<String>(text).ok();
    if name.is_none() {
        faults.push(EnvelopeFault::new(at, expected, kind(text)));
    }
    name.map(Into::into)
}

/// The type of a value; never the value itself, which may be a secret.
pub(super) fn kind(text: &str) -> &'static str {
    match text.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        None => "nothing",
        _ => "a number",
    }
}

/// An object whose members are taken by name; the rest at the end is unknown.
struct Object<'t, 'f> {
    at: String,
    members: Vec<(Cow<'t, str>, &'t str)>,
    known: Vec<&'static str>,
    faults: &'f mut Faults,
}

impl<'t, 'f> Object<'t, 'f> {
    fn open(at: String, text: &'t str, faults: &'f mut Faults) -> Option<Self> {
        match members(text) {
            Some(members) => Some(Self { at, members, known: Vec::new(), faults }),
            None => {
                faults.push(EnvelopeFault::new(at, "an object", kind(text.trim_start())));
                None
            }
        }
    }

    fn place(&self, name: &str) -> String {
        below(&self.at, name)
    }

    fn take_any(&mut self, name: &'static str) -> Option<&'t str> {
        self.known.push(name);
        let found = self.members.iter().position(|(own, _)| own == name)?;
        Some(self.members.remove(found).1)
    }

    /// A member; `null` counts as absent.
    fn take(&mut self, name: &'static str) -> Option<(String, &'t str)> {
        let text = self.take_any(name).filter(|text| *text != "null")?;
        Some((self.place(name), text))
    }

    fn skip(&mut self, name: &'static str) {
        self.take(name);
    }

    fn name(&mut self, member: &'static str) -> Option<Box<str>> {
        let (at, text) = self.take(member)?;
        name(at, text, "a name", self.faults)
    }

    /// The required member.
    fn tool(&mut self) -> Option<Box<str>> {
        let text = self.take_any("tool").unwrap_or_default();
        name(self.place("tool"), text, "the name of a tool", self.faults)
    }

    fn value<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        expected: &'static str,
    ) -> Option<T> {
        let (at, text) = self.take(name)?;
        let value = serde_json::from_str(text).ok();
        if value.is_none() {
            self.faults.push(EnvelopeFault::new(at, expected, kind(text)));
        }
        value
    }

    fn millis(&mut self, name: &'static str) -> Option<Duration> {
        self.value(name, "whole milliseconds").map(Duration::from_millis)
    }

    fn params(&mut self, name: &'static str) -> Option<Json> {
        let (at, text) = self.take(name)?;
        if !text.starts_with('{') {
            self.faults.push(EnvelopeFault::new(at, "an object", kind(text)));
            return None;
        }
        Some(json(text))
    }

    fn object(&mut self, name: &'static str) -> Option<Object<'t, '_>> {
        let (at, text) = self.take(name)?;
        Object::open(at, text, self.faults)
    }

    fn elements(&mut self, name: &'static str) -> Option<(String, Vec<&'t str>)> {
        let (at, text) = self.take(name)?;
        let Some(all) = elements(text) else {
            self.faults.push(EnvelopeFault::new(at, "an array", kind(text)));
            return None;
        };
        Some((at, all))
    }

    fn names(&mut self, member: &'static str) -> Vec<Box<str>> {
        let Some((at, all)) = self.elements(member) else { return Vec::new() };
        let all = all.into_iter().enumerate();
        let read = |(i, text)| {
            // An invalid name keeps its index, and is reported once.
            name(below(&at, i), text, "the name of another call", self.faults).unwrap_or_default()
        };
        all.map(read).collect()
    }

    fn close(self) {
        for (name, _) in &self.members {
            let fault = EnvelopeFault::new(
                below(&self.at, name),
                "a known key",
                format!("the unknown key {name:?}"),
            );
            self.faults.push(match closest(name, self.known.iter().copied()) {
                Some(like) => fault.hint(format!("did you mean {like:?}?")),
                None => fault,
            });
        }
    }
}
