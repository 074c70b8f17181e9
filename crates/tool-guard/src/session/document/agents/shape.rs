//! The members of JSON objects by name, for recognising agents.
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap};

/// An object's members.
#[derive(Debug, Default)]
pub(super) struct Object<'t>(BTreeMap<Cow<'t, str>, &'t RawValue>);

/// A message, a part of one, or a line: they only differ in their position.
pub(super) type Message<'t> = Object<'t>;
pub(super) type Part<'t> = Object<'t>;
pub(super) type Record<'t> = Object<'t>;

/// A JSON text, and the messages in it.
#[derive(Debug)]
pub(super) struct Document<'t> {
    members: Object<'t>,
    messages: Vec<&'t RawValue>,
}

impl<'t> Document<'t> {
    /// `None` if it is invalid JSON, or has no list of messages.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        if let Ok(messages) = serde_json::from_str(text) {
            return Some(Self { members: Object::default(), messages });
        }
        let members = Object::of(text);
        let list = |name: &str| serde_json::from_str(members.0.get(name)?.get()).ok();
        let messages = ["messages", "conversation", "history"].into_iter().find_map(list)?;
        Some(Self { members, messages })
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.members.has(name))
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = Object<'t>> {
        self.messages.iter().map(|message| Object::of(message.get()))
    }
}

impl<'t> Object<'t> {
    /// Anything but an object counts as an object without members.
    pub(super) fn of(text: &'t str) -> Self {
        let is_object = text.trim_start().starts_with('{');
        let members = is_object.then(|| serde_json::from_str(text).ok()).flatten();
        Self(members.unwrap_or_default())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    pub(super) fn member(&self, name: &str) -> Option<Self> {
        self.0.get(name).map(|raw| Self::of(raw.get()))
    }

    /// A member's string; empty if it is no string.
    pub(super) fn text(&self, name: &str) -> String {
        let raw = self.0.get(name).filter(|raw| raw.get().starts_with('"'));
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    pub(super) fn is_number(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|raw| raw.get().starts_with(|c: char| c.is_ascii_digit()))
    }

    /// The elements of a member's array.
    pub(super) fn list(&self, name: &str) -> Vec<Self> {
        let raw = self.0.get(name).filter(|raw| raw.get().starts_with('['));
        let elements: Vec<&'t RawValue> =
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        elements.into_iter().map(|element| Self::of(element.get())).collect()
    }
}
