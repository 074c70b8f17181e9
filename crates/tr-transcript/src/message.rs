//! A message of a transcript: its original JSON text, and the positions of its blocks.
mod judged;

use crate::{
    format::{Format, Refused, Rules},
    json::{self, Piece},
    name::Name,
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::{fmt, ops::Range, sync::Arc};

/// The speaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The system or the developer.
    System,
    /// The user; also the results of tools, where those are blocks of a user's message.
    User,
    /// The model.
    Assistant,
    /// A tool, in the forms where results are messages of their own.
    Tool,
    /// Any other role.
    #[default]
    Other,
}

/// A message of a transcript.
///
/// Cloning increments a reference count. The text is never reformatted; [`Debug`](fmt::Debug)
/// prints only its length, because it may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    pub(crate) body: Arc<Body>,
    /// The white space around it in its file.
    pub(crate) before: Box<str>,
    pub(crate) after: Box<str>,
}

#[derive(Default, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) raw: Box<str>,
    pub(crate) role: Role,
    /// The member that holds the blocks: the content, or the list of tool calls.
    pub(crate) list: Option<Range<usize>>,
    pub(crate) blocks: Vec<Block>,
    /// Whether it is the system's prompt in a message of the user's.
    pub(crate) is_prompt: bool,
    /// The item's id, in a form of items.
    pub(crate) item: Option<Item>,
    /// Whether a part carries a thought signature, in a form where parts may.
    pub(crate) is_signed: bool,
    /// The unknown part of it, apart from its blocks.
    pub(crate) unknown: Option<Unknown>,
    /// The first member that its provider refuses on its own, apart from its blocks.
    pub(crate) refused: Option<Box<Refused>>,
    /// How many images it has, where their number counts.
    pub(crate) images: usize,
    /// The form of the provider that answered, in a form that several providers use.
    pub(crate) answered_in: Option<Format>,
    /// The API that answered, if its form is not known.
    pub(crate) unknown_api: Option<Box<str>>,
}

/// An unknown part of a message or of a block. A repair may insert something next to it, but does
/// not change, move or remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// The content: the role or the type is unknown, or the content is in unknown members. It
    /// cannot be judged.
    Content,
    /// Members next to a content that is understood. It can be judged.
    Members,
}

/// The id under which a provider stores an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: Box<str>,
    /// The range of its JSON string.
    pub(crate) at: Range<usize>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
    pub(crate) unknown: Option<Unknown>,
    /// The first part that its provider refuses on its own.
    pub(crate) refused: Option<Box<Refused>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Use {
        id: Name,
        /// The range of the id's JSON string, if there is one.
        id_at: Option<Range<usize>>,
        name: Box<str>,
        /// The provider's name for this kind of use.
        noun: &'static str,
    },
    Result {
        id: Name,
        id_at: Option<Range<usize>>,
        /// The tool's name, in a form where names may pair.
        name: Box<str>,
        /// The range of its content, if it has one.
        content: Option<Range<usize>>,
        /// A repair wrote it; a real result replaces it.
        synthetic: bool,
    },
    /// A use of a tool of the provider's, which answers it itself; `is_direct` if the model called
    /// it, not its code or an MCP server's tool.
    ServerUse { id: Name, name: Box<str>, is_direct: bool },
    /// The provider's own result of such a use.
    ServerResult(Name),
    /// Text that a model reads.
    Text(Blank),
    /// Reasoning, which its provider accepts only with the output that followed it.
    Reasoning,
    /// A reference to an item that the provider stores: a use, a result, or anything else.
    Reference,
    /// Cannot be read: it is no object, or has a duplicate member. A repair never changes it.
    Unread,
    /// Anything else, which a repair never changes: thinking, images.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blank {
    Empty,
    White,
    No,
}

impl Kind {
    pub(crate) const fn is_result(&self) -> bool {
        matches!(self, Self::Result { .. })
    }
}

impl Blank {
    pub(crate) fn of(text: &str) -> Self {
        match text {
            "" => Self::Empty,
            text if text.trim().is_empty() => Self::White,
            _ => Self::No,
        }
    }
}

impl Body {
    /// The body of a message without blocks.
    pub(crate) fn of(raw: Box<str>) -> Self {
        Self { raw, ..Self::default() }
    }
}

impl Message {
    /// `other` with the white space of this message around it.
    pub(crate) fn with_raw_of(&self, other: Self) -> Self {
        Self { before: self.before.clone(), after: self.after.clone(), ..other }
    }

    /// The white space before and after it.
    #[doc(hidden)]
    #[must_use]
    pub fn around(&self) -> (&str, &str) {
        (&self.before, &self.after)
    }

    /// Sets the white space before and after it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_around(self, before: Box<str>, after: Box<str>) -> Self {
        Self { before, after, ..self }
    }

    pub(crate) fn new(body: Body) -> Self {
        Self { body: Arc::new(body), before: Box::default(), after: Box::default() }
    }

    /// The JSON text.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.body.raw
    }

    /// Who speaks.
    #[must_use]
    pub fn role(&self) -> Role {
        self.body.role
    }

    /// The ids of the tool uses in it, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &str> {
        self.blocks().iter().filter_map(|block| match &block.kind {
            Kind::Use { id, .. } => Some(&**id),
            _ => None,
        })
    }

    /// The ids of the uses that its results answer, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &str> {
        self.blocks().iter().filter_map(|block| match &block.kind {
            Kind::Result { id, .. } => Some(&**id),
            _ => None,
        })
    }

    /// Whether it is a user's message with more than results: such a message begins a turn.
    #[must_use]
    pub fn begins_turn(&self) -> bool {
        self.role() == Role::User && !self.is_system_prompt() && !self.has_only_results()
    }

    /// Whether it is a user's message without results.
    pub(crate) fn is_without_results(&self) -> bool {
        self.role() == Role::User && self.tool_results().next().is_none()
    }

    /// Whether it consists of results.
    pub(crate) fn has_only_results(&self) -> bool {
        !self.blocks().is_empty() && self.blocks().iter().all(|block| block.kind.is_result())
    }

    /// Whether a reset of the session keeps it.
    #[must_use]
    pub fn is_system_prompt(&self) -> bool {
        self.body.is_prompt || self.role() == Role::System
    }

    /// Whether it may stand anywhere without effect: a system message without content.
    pub(crate) fn is_aside(&self, rules: Rules) -> bool {
        rules.passes_over_system && self.role() == Role::System && self.blocks().is_empty()
    }

    pub(crate) fn item(&self) -> Option<&Item> {
        self.body.item.as_ref()
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.body.blocks
    }

    pub(crate) fn text(&self, span: &Range<usize>) -> &str {
        &self.body.raw[span.clone()]
    }

    /// Whether it holds nothing but blank text.
    pub(crate) fn is_blank(&self) -> bool {
        let blank = |block: &Block| matches!(block.kind, Kind::Text(Blank::Empty | Blank::White));
        self.blocks().iter().all(blank)
    }

    /// Forgets its text: the role and the blocks stay.
    pub(crate) fn drop_text(&mut self) {
        if let Some(body) = Arc::get_mut(&mut self.body) {
            body.raw = Box::default();
        }
    }

    /// Whether nothing is left of a message that lost its blocks: an empty list, or no content.
    pub(crate) fn says_nothing(&self) -> bool {
        self.blocks().is_empty() && (self.body.list.is_some() || self.body.refused.is_some())
    }

    /// Its text with the blocks `pieces`.
    pub(crate) fn with_pieces(&self, pieces: &[Piece]) -> String {
        let spans: Vec<_> = self.blocks().iter().map(|block| block.span.clone()).collect();
        if let ([whole], [piece]) = (&*spans, pieces)
            && *whole == (0..self.raw().len())
        {
            return piece.text.clone();
        }
        let list = self.body.list.as_ref().expect("a message with blocks has a list");
        // A string content is replaced as a whole.
        let spans = if self.text(list).starts_with('[') { spans } else { Vec::new() };
        json::with_list(self.raw(), list, &spans, pieces)
    }
}

/// More blocks than any model or agent writes in a message.
pub(crate) const MANY: usize = 1_000;

impl Block {
    pub(crate) const fn new(span: Range<usize>, kind: Kind) -> Self {
        Self { span, kind, unknown: None, refused: None }
    }

    /// Adds it to the blocks. Beyond [`MANY`] blocks, neighbors that a repair does not use are
    /// merged into one, so that a message of millions of blocks needs no more memory than its text.
    pub(crate) fn add_to(self, blocks: &mut Vec<Self>) {
        let is_one_of_many = blocks.len() >= MANY && !self.says_something();
        match blocks.last_mut().filter(|last| is_one_of_many && !last.says_something()) {
            Some(last) => last.span.end = self.span.end,
            None => blocks.push(self),
        }
    }

    /// Whether its type and all of its members are known.
    pub(crate) fn is_understood(&self) -> bool {
        self.unknown.is_none() && self.kind != Kind::Unread
    }

    fn says_something(&self) -> bool {
        self.kind != Kind::Unread && self.unknown != Some(Unknown::Content)
    }

    /// Its text in `message`, with its new id if it gets one.
    pub(crate) fn text_in(
        &self,
        message: &Message,
        format: Format,
        new_id: Option<&str>,
    ) -> String {
        let text = message.text(&self.span);
        let (of_use, of_result) = format.rules().id_members;
        let (name, id_at) = match &self.kind {
            Kind::Use { id_at, .. } => (of_use, id_at),
            Kind::Result { id_at, .. } => (of_result, id_at),
            _ => return text.to_owned(),
        };
        match (new_id, id_at) {
            (Some(new_id), Some(at)) if !at.is_empty() => {
                let (start, end) = (at.start - self.span.start, at.end - self.span.start);
                format!("{}{}{}", &text[..start], json::quote(new_id), &text[end..])
            }
            (Some(new_id), None) if !text.is_empty() => {
                json::set_member(text, name, &json::quote(new_id))
            }
            // It keeps its id, or belongs to a message without its text.
            _ => text.to_owned(),
        }
    }
}

/// Its original text.
impl Serialize for Message {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.body.raw).expect("it was read").serialize(to)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("role", &self.role())
            .field("bytes", &self.raw().len())
            .finish_non_exhaustive()
    }
}
