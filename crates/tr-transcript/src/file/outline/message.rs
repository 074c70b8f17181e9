//! Reads a message for an outline (`outline.rs`): its blocks, without their texts.

use crate::{
    format::{self, Format, is_synthetic},
    json::{self, Object, ReadInto, once},
    message::{self, Blank, Block, Kind, Message, Role, Unknown},
};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{fmt, mem, sync::LazyLock};

/// The members of a message, `Some(None)` where one is `null`.
#[derive(Default)]
pub(super) struct Body<'t> {
    is_openclaws: bool,
    pub(super) id: Option<Option<&'t str>>,
    role: Option<&'t str>,
    content: Option<Content>,
    tool_call_id: Option<Option<&'t str>>,
    stop_reason: Option<Option<&'t str>>,
    api: Option<Option<&'t str>>,
    model: Option<IgnoredAny>,
    /// One that may hold content in other forms.
    others: Option<Option<IgnoredAny>>,
}

impl<'t> Object<'t> for Body<'t> {
    fn member<A: MapAccess<'t>>(&mut self, name: &str, from: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => once(&mut self.id, from),
            "role" => once(&mut self.role, from),
            "content" if self.content.is_none() => {
                let content = self.content.insert(Content::default());
                content.is_openclaws = self.is_openclaws;
                from.next_value_seed(content)
            }
            "content" => Err(A::Error::custom("two contents")),
            "toolCallId" => once(&mut self.tool_call_id, from),
            "stopReason" => once(&mut self.stop_reason, from),
            "api" => once(&mut self.api, from),
            "model" => once(&mut self.model, from),
            name if format::may_say(name) => once(&mut self.others, from),
            _ => from.next_value::<IgnoredAny>().map(drop),
        }
    }
}

impl Body<'_> {
    pub(super) fn of(is_openclaws: bool) -> Self {
        Self { is_openclaws, ..Self::default() }
    }

    /// `None` where the message is not fully understood, here and below.
    pub(super) fn anthropic(&mut self) -> Option<Message> {
        if self.others.flatten().is_some() || self.tool_call_id.flatten().is_some() {
            return None;
        }
        let role = match self.role? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return None,
        };
        let Content { blocks, is_text, .. } = self.content.as_mut()?;
        match &**blocks {
            // An empty text is an empty content, not an empty block.
            [] => None,
            [Block { kind: Kind::Text(Blank::Empty), .. }] if *is_text => None,
            [Block { kind: Kind::Text(blank), .. }] => Some(with_text(role, *blank)),
            // It may be a thought.
            blocks if role == Role::User && blocks.iter().any(|it| it.kind == Kind::Other) => None,
            _ => Some(message(role, mem::take(blocks), None)),
        }
    }

    pub(super) fn openclaw(&mut self) -> Option<Message> {
        let Content { blocks, is_text, is_synthetic, .. } = self.content.get_or_insert_default();
        match self.role? {
            "user" => Some(message(Role::User, Vec::new(), None)),
            "assistant"
                if !*is_text
                    && !matches!(self.stop_reason.flatten(), Some("error" | "aborted")) =>
            {
                let api = self.api.flatten();
                let answered_in = api.and_then(format::form_of_api);
                let is_unknown = answered_in.is_none() && api.is_some_and(|api| !api.is_empty());
                if self.others.flatten().is_some() || is_unknown {
                    return None;
                }
                Some(message(Role::Assistant, mem::take(blocks), answered_in))
            }
            "toolResult" => {
                let is_synthetic = blocks.len() == 1 && *is_synthetic;
                let result = result(self.tool_call_id.flatten(), is_synthetic);
                Some(message(Role::Tool, vec![block(result)], None))
            }
            _ => None,
        }
    }
}

/// The content of a message: of a text one block.
#[derive(Default)]
struct Content {
    is_openclaws: bool,
    blocks: Vec<Block>,
    is_text: bool,
    /// Whether a repair wrote the last text.
    is_synthetic: bool,
}

impl<'t> DeserializeSeed<'t> for &mut Content {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for &mut Content {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        (self.is_text, self.is_synthetic) = (true, format::is_synthetic_text(text));
        self.blocks.push(block(Kind::Text(Blank::of(text))));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut from: A) -> Result<(), A::Error> {
        let mut part = Part::default();
        while from.next_element_seed(ReadInto(&mut part))?.is_some() {
            self.is_synthetic = self.is_openclaws && is_synthetic(part.text.flatten());
            let block = if self.is_openclaws { part.openclaw() } else { part.anthropic() };
            part = Part::default();
            let block = block.ok_or_else(|| A::Error::custom("a block of another kind"))?;
            // Most messages have one block.
            self.blocks.reserve_exact(usize::from(self.blocks.is_empty()));
            block.add_to(&mut self.blocks);
        }
        // The outline is kept, so release the spare capacity.
        self.blocks.shrink_to_fit();
        Ok(())
    }
}

/// A block of a message, with all members that [`Entry::read`](super::Entry::read) looks at.
#[derive(Default)]
struct Part<'t> {
    kind: Option<Option<&'t str>>,
    id: Option<Option<&'t str>>,
    name: Option<Option<&'t str>>,
    input: Option<&'t RawValue>,
    arguments: Option<&'t RawValue>,
    tool_use_id: Option<Option<&'t str>>,
    content: Option<Option<&'t RawValue>>,
    text: Option<Option<&'t RawValue>>,
    signature: Option<Option<&'t str>>,
    caller: Option<IgnoredAny>,
    is_system_prompt: Option<IgnoredAny>,
}

impl<'t> Object<'t> for Part<'t> {
    fn member<A: MapAccess<'t>>(&mut self, name: &str, from: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => once(&mut self.kind, from),
            "id" => once(&mut self.id, from),
            "name" => once(&mut self.name, from),
            "input" => once(&mut self.input, from),
            "arguments" => once(&mut self.arguments, from),
            "tool_use_id" => once(&mut self.tool_use_id, from),
            "content" => once(&mut self.content, from),
            "text" => once(&mut self.text, from),
            "signature" => once(&mut self.signature, from),
            "caller" => once(&mut self.caller, from),
            "isSystemPrompt" => once(&mut self.is_system_prompt, from),
            _ => from.next_value::<IgnoredAny>().map(drop),
        }
    }
}

impl Part<'_> {
    fn anthropic(&self) -> Option<Block> {
        let id = self.id.flatten();
        Some(block(match self.kind.flatten().unwrap_or_default() {
            "tool_use" => {
                let is_taken = id.is_none_or(format::is_plain) && self.is_named(200);
                (is_taken && is_object(self.input)).then(|| used(id))?
            }
            "tool_result" => {
                let content = self.content.flatten()?;
                has_no_media(content)
                    .then(|| result(self.tool_use_id.flatten(), is_synthetic(Some(content))))?
            }
            "text" => Kind::Text(blank(self.text.flatten()?)?),
            // What is in them is looked at.
            "image" | "document" => return None,
            "thinking" if self.signature.flatten().is_none_or(str::is_empty) => return None,
            kind if format::is_of_server(kind) => return None,
            kind if format::is_untouched(kind) => Kind::Other,
            _ => return Some(Block { unknown: Some(Unknown::Content), ..block(Kind::Other) }),
        }))
    }

    fn openclaw(&self) -> Option<Block> {
        Some(block(match self.kind.flatten()? {
            "toolCall" => (self.is_named(usize::MAX) && is_object(self.arguments))
                .then(|| used(self.id.flatten()))?,
            "text" => Kind::Text(Blank::No),
            "thinking" | "image" => Kind::Other,
            _ => return None,
        }))
    }

    /// Whether the provider takes the tool's name, given this limit in bytes.
    fn is_named(&self, most: usize) -> bool {
        self.name.flatten().is_some_and(|name| (1..=most).contains(&name.len()))
    }
}

/// `None` if it is no text, or has a lone surrogate.
fn blank(text: &RawValue) -> Option<Blank> {
    match text.get().as_bytes() {
        // It begins with a visible character.
        [b'"', first, ..] if first.is_ascii_graphic() && !matches!(first, b'"' | b'\\') => {
            Some(Blank::No)
        }
        _ => json::string(text).as_deref().map(Blank::of),
    }
}

fn is_object(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get().starts_with('{'))
}

/// Whether a result is a text, or a list without an image or a document.
fn has_no_media(content: &RawValue) -> bool {
    let kinds = || format::types(Some(content));
    content.get().starts_with('"')
        || json::elements(content.get()).is_ok()
            && !kinds().any(|kind| matches!(&*kind, "image" | "document"))
}

fn used(id: Option<&str>) -> Kind {
    let (id_at, name) = (id.map(|_| 0..0), Box::default());
    Kind::Use { id: id.unwrap_or_default().into(), id_at, name, noun: "" }
}

fn result(id: Option<&str>, synthetic: bool) -> Kind {
    let id = id.unwrap_or_default().into();
    Kind::Result { id, id_at: None, name: Box::default(), content: None, synthetic }
}

const fn block(kind: Kind) -> Block {
    Block::new(0..0, kind)
}

fn message(role: Role, blocks: Vec<Block>, answered_in: Option<Format>) -> Message {
    Message::new(message::Body { role, blocks, answered_in, ..message::Body::default() })
}

/// A message of one text. Most are alike, and share their memory.
fn with_text(role: Role, blank: Blank) -> Message {
    fn new(role: Role, blank: Blank) -> Message {
        message(role, vec![block(Kind::Text(blank))], None)
    }
    static OF_USER: LazyLock<Message> = LazyLock::new(|| new(Role::User, Blank::No));
    static OF_MODEL: LazyLock<Message> = LazyLock::new(|| new(Role::Assistant, Blank::No));
    match (role, blank) {
        (Role::User, Blank::No) => OF_USER.clone(),
        (Role::Assistant, Blank::No) => OF_MODEL.clone(),
        _ => new(role, blank),
    }
}
