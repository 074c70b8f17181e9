//! Reads a record's outline in one pass over its text: what a check needs of most of them.
//!
//! What it does not understand at once is `None`, and left to [`Entry::read`], which agrees with
//! it on all that it does.
use super::{
    entry::{Entry, Link, What},
    form::FileForm,
};
use crate::{
    format::{self, Format},
    message::{Blank, Block, Body, Kind, Message, Role},
};
use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess},
};
use std::{fmt, marker::PhantomData};

/// Reads a record that may be no JSON. Its message has no text.
pub(super) fn read(form: FileForm, record: &str) -> Option<Entry> {
    match form {
        FileForm::ClaudeCode => {
            let line: Line<'_> = object(record)?;
            let kind = line.kind.filter(|kind| matches!(*kind, "user" | "assistant"));
            let is_plain = !(line.is_sidechain || line.is_api_error || line.is_transcript_only);
            let Object(message) = line.message.filter(|_| kind.is_some() && is_plain)?;
            let group = message.id.map(Into::into);
            let message = message.anthropic()?;
            let (id, link) = (line.uuid.map(Into::into), line.parent_uuid.into_link());
            Some(Entry { id, link, what: What::Message { message, group } })
        }
        FileForm::OpenClaw { .. } => {
            let line: Line<'_> = object(record)?;
            let Object(message) = line.message.filter(|_| line.kind == Some("message"))?;
            let message = message.openclaw()?;
            let (id, link) = (line.id.map(Into::into), line.parent_id.into_link());
            Some(Entry { id, link, what: What::Message { message, group: None } })
        }
        FileForm::Messages(Format::AnthropicMessages) => {
            let message: Said<'_> = object(record)?;
            let what = What::Message { message: message.anthropic()?, group: None };
            Some(Entry { id: None, link: Link::Before, what })
        }
        FileForm::Messages(_) | FileForm::Other => None,
    }
}

fn object<'t, T: Deserialize<'t>>(record: &'t str) -> Option<T> {
    let Object(object) = serde_json::from_str(record).ok()?;
    Some(object)
}

/// What is an object; serde would take an array for one.
struct Object<T>(T);

/// A line of Claude Code's or OpenClaw's.
#[derive(Deserialize)]
struct Line<'t> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'t str>,
    #[serde(borrow, default)]
    uuid: Option<&'t str>,
    #[serde(borrow, default, rename = "parentUuid")]
    parent_uuid: Parent<'t>,
    #[serde(borrow, default)]
    id: Option<&'t str>,
    #[serde(borrow, default, rename = "parentId")]
    parent_id: Parent<'t>,
    #[serde(default, rename = "isSidechain")]
    is_sidechain: bool,
    #[serde(default, rename = "isApiErrorMessage")]
    is_api_error: bool,
    #[serde(default, rename = "isVisibleInTranscriptOnly")]
    is_transcript_only: bool,
    #[serde(borrow, default)]
    message: Option<Object<Said<'t>>>,
}

/// A message.
#[derive(Deserialize)]
struct Said<'t> {
    #[serde(borrow, default)]
    id: Option<&'t str>,
    #[serde(borrow)]
    role: &'t str,
    #[serde(borrow, default)]
    content: Content<'t>,
    #[serde(borrow, default, rename = "toolCallId")]
    tool_call_id: Option<&'t str>,
    #[serde(borrow, default, rename = "stopReason")]
    stop_reason: Option<&'t str>,
}

/// A block of a message, with all members that [`Entry::read`] looks at: one that is there twice
/// is not understood here either.
#[derive(Default, Deserialize)]
struct Part<'t> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'t str>,
    #[serde(borrow, default)]
    id: Option<&'t str>,
    #[serde(borrow, default)]
    tool_use_id: Option<&'t str>,
    #[serde(default)]
    text: Option<Text>,
    #[serde(default)]
    content: Answer,
    #[serde(default, rename = "name")]
    _name: Option<IgnoredAny>,
    #[serde(default, rename = "isSystemPrompt")]
    _is_system_prompt: Option<IgnoredAny>,
}

#[derive(Default)]
enum Parent<'t> {
    #[default]
    Absent,
    Null,
    Of(&'t str),
}

#[derive(Default)]
enum Content<'t> {
    #[default]
    Absent,
    Text(Text),
    Parts(Vec<Object<Part<'t>>>),
}

/// What is told of a text.
#[derive(Clone, Copy)]
struct Text {
    blank: Blank,
    is_synthetic: bool,
}

/// Whether a result's content was put there by a repair.
#[derive(Clone, Copy, Default)]
struct Answer {
    is_synthetic: bool,
}

impl Said<'_> {
    fn anthropic(self) -> Option<Message> {
        let role = match self.role {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return None,
        };
        let blocks = match self.content {
            Content::Absent => return None,
            Content::Text(Text { blank: Blank::Empty, .. }) => Vec::new(),
            Content::Text(text) => vec![block(Kind::Text(text.blank))],
            Content::Parts(parts) => {
                parts.into_iter().map(|Object(part)| part.anthropic()).collect()
            }
        };
        Some(message(role, blocks))
    }

    fn openclaw(self) -> Option<Message> {
        match self.role {
            "user" => Some(message(Role::User, Vec::new())),
            "assistant" if !matches!(self.stop_reason, Some("error" | "aborted")) => {
                let Content::Parts(parts) = self.content else { return None };
                let blocks = parts.into_iter().map(|Object(part)| part.openclaw()).collect();
                Some(message(Role::Assistant, blocks))
            }
            "toolResult" => {
                let is_synthetic = match &self.content {
                    Content::Text(text) => text.is_synthetic,
                    Content::Parts(parts) => matches!(
                        &**parts,
                        [Object(Part { text: Some(Text { is_synthetic: true, .. }), .. })]
                    ),
                    Content::Absent => false,
                };
                let result = result(self.tool_call_id, is_synthetic);
                Some(message(Role::Tool, vec![block(result)]))
            }
            _ => None,
        }
    }
}

impl Part<'_> {
    fn anthropic(self) -> Block {
        block(match self.kind {
            Some("tool_use") => used(self.id),
            Some("tool_result") => result(self.tool_use_id, self.content.is_synthetic),
            Some("text") => Kind::Text(self.text.map_or(Blank::Empty, |text| text.blank)),
            _ => Kind::Other,
        })
    }

    fn openclaw(self) -> Block {
        block(match self.kind {
            Some("toolCall") => used(self.id),
            Some("text") => Kind::Text(Blank::No),
            _ => Kind::Other,
        })
    }
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
    Block { span: 0..0, kind }
}

fn message(role: Role, blocks: Vec<Block>) -> Message {
    Message::new(Body { role, blocks, ..Body::of(Box::default()) })
}

impl Parent<'_> {
    fn into_link(self) -> Link {
        match self {
            Self::Absent => Link::Before,
            Self::Null => Link::Root,
            Self::Of(id) => Link::To(id.into()),
        }
    }
}

impl Text {
    fn of(text: &str) -> Self {
        Self { blank: Blank::of(text), is_synthetic: format::is_synthetic_text(text) }
    }
}

impl<'de: 't, 't> Deserialize<'de> for Parent<'t> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let parent: Option<&'t str> = Deserialize::deserialize(from)?;
        Ok(parent.map_or(Self::Null, Self::Of))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(TextVisitor)
    }
}

impl<'de: 't, 't> Deserialize<'de> for Content<'t> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ContentVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnswerVisitor)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);
struct TextVisitor;
struct ContentVisitor<'t>(PhantomData<&'t ()>);
struct AnswerVisitor;

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(members)).map(Object)
    }
}

impl de::Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text::of(text))
    }
}

impl<'de: 't, 't> de::Visitor<'de> for ContentVisitor<'t> {
    type Value = Content<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or blocks")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Content<'t>, E> {
        Ok(Content::Absent)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Content<'t>, E> {
        Ok(Content::Text(Text::of(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content<'t>, A::Error> {
        let mut all = Vec::new();
        while let Some(part) = parts.next_element()? {
            all.push(part);
        }
        Ok(Content::Parts(all))
    }
}

/// The content of a result: a text, or parts, of which one alone may be told as synthetic.
impl<'de> de::Visitor<'de> for AnswerVisitor {
    type Value = Answer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result's content")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Answer, E> {
        Ok(Answer { is_synthetic: format::is_synthetic_text(text) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Answer, A::Error> {
        #[derive(Deserialize)]
        struct Inner {
            #[serde(default)]
            text: Option<Text>,
        }
        let first: Option<Object<Inner>> = parts.next_element()?;
        let mut is_alone = true;
        while parts.next_element::<IgnoredAny>()?.is_some() {
            is_alone = false;
        }
        let text = first.and_then(|Object(first)| first.text).filter(|_| is_alone);
        Ok(Answer { is_synthetic: text.is_some_and(|text| text.is_synthetic) })
    }

    fn visit_unit<E: de::Error>(self) -> Result<Answer, E> {
        Ok(Answer::default())
    }
}
