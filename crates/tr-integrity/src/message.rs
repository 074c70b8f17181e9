//! A message of a transcript: its JSON text as it came, and where in it the tool blocks lie.
mod judged;

use crate::{
    format::{Format, Refused, Rules},
    json::{self, Piece},
};
use std::{fmt, ops::Range, sync::Arc};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The system or the developer.
    System,
    /// The user; where results are blocks of a message, tool results too.
    User,
    /// The model.
    Assistant,
    /// A tool, in the forms where results are messages.
    Tool,
    /// Anybody else.
    Other,
}

/// A message of a transcript.
///
/// A clone is a reference count. The text stays as it came; [`Debug`](fmt::Debug) prints only
/// its length, since it may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    pub(crate) body: Arc<Body>,
    /// The white space around it in the file it came from.
    pub(crate) before: Box<str>,
    pub(crate) after: Box<str>,
}

#[derive(PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) raw: Box<str>,
    pub(crate) role: Role,
    /// What holds the blocks: the content, or the list of tool calls.
    pub(crate) list: Option<Range<usize>>,
    pub(crate) blocks: Vec<Block>,
    /// Whether it is the system's prompt, which a reset keeps.
    pub(crate) is_system: bool,
    /// The id of the item that it is, in a form of items.
    pub(crate) item: Option<Item>,
    /// Whether a part of it carries the signature of a thought, where parts may.
    pub(crate) is_signed: bool,
    /// What of it is not understood, beside its blocks.
    pub(crate) unknown: Option<Unknown>,
    /// What its provider refuses of it on its own, beside its blocks.
    pub(crate) refused: Option<Box<Refused>>,
    /// The form of the provider that answered it, in a form that several may answer.
    pub(crate) answered_in: Option<Format>,
    /// The API that answered it, if no form is known for it.
    pub(crate) unknown_api: Option<Box<str>>,
}

/// What of a message or of a block is not understood. A repair may put something beside it, and
/// changes, moves and drops nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// What it says: its role or its type is not known, or its content stands in members that are
    /// not. It cannot be judged.
    Content,
    /// Members beside a content that is understood. It can be judged.
    Members,
}

/// The id by which a provider knows an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: Box<str>,
    /// Where its JSON string lies.
    pub(crate) at: Range<usize>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
    pub(crate) unknown: Option<Unknown>,
    /// What its provider refuses of it on its own: the first.
    pub(crate) refused: Option<Box<Refused>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Use {
        id: Box<str>,
        /// Where the id's JSON string lies, if it is there.
        id_at: Option<Range<usize>>,
        name: Box<str>,
        /// What its provider calls it.
        noun: &'static str,
    },
    Result {
        id: Box<str>,
        id_at: Option<Range<usize>>,
        /// The tool, in a form where names may pair.
        name: Box<str>,
        /// Where its content lies, if it is there.
        content: Option<Range<usize>>,
        /// A repair put it there; a real one takes its place.
        synthetic: bool,
    },
    /// Text that a model reads.
    Text(Blank),
    /// Reasoning that its provider takes only with what follows from it.
    Reasoning,
    /// A reference to something that the provider keeps: a use, a result, anything.
    Reference,
    /// What cannot be read: no object, or one that names a member twice. It is never touched.
    Unread,
    /// Anything else, which is never touched: thinking, images, server tools.
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
    /// Of a message that has nothing in it.
    pub(crate) fn of(raw: Box<str>) -> Self {
        let (list, blocks, is_system, item) = (None, Vec::new(), false, None);
        let (role, is_signed, unknown, refused) = (Role::Other, false, None, None);
        let (answered_in, unknown_api) = (None, None);
        Self {
            raw,
            role,
            list,
            blocks,
            is_system,
            item,
            is_signed,
            unknown,
            refused,
            answered_in,
            unknown_api,
        }
    }
}

impl Message {
    /// A message with this text, set in white space as this one is.
    pub(crate) fn with_raw_of(&self, other: Self) -> Self {
        Self { before: self.before.clone(), after: self.after.clone(), ..other }
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

    /// The ids of the uses that the results in it answer, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &str> {
        self.blocks().iter().filter_map(|block| match &block.kind {
            Kind::Result { id, .. } => Some(&**id),
            _ => None,
        })
    }

    /// Whether it is a user's message that holds more than results: a turn begins with it.
    #[must_use]
    pub fn begins_turn(&self) -> bool {
        let is_result = |block: &Block| matches!(block.kind, Kind::Result { .. });
        self.role() == Role::User
            && !self.is_system_prompt()
            && (self.blocks().is_empty() || !self.blocks().iter().all(is_result))
    }

    /// Whether a reset of the session keeps it.
    #[must_use]
    pub fn is_system_prompt(&self) -> bool {
        self.body.is_system
    }

    /// Whether it may stand anywhere, and changes nothing: the system says nothing in it.
    pub(crate) fn is_aside(&self, rules: Rules) -> bool {
        rules.passes_over_system && self.role() == Role::System && self.blocks().is_empty()
    }

    /// The form of the provider that answered it, if it names one.
    pub(crate) fn answered_in(&self) -> Option<Format> {
        self.body.answered_in
    }

    /// The API that answered it, if no form is known for it.
    pub(crate) fn unknown_api(&self) -> Option<&str> {
        self.body.unknown_api.as_deref()
    }

    pub(crate) fn is_signed(&self) -> bool {
        self.body.is_signed
    }

    pub(crate) fn item(&self) -> Option<&Item> {
        self.body.item.as_ref()
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.body.blocks
    }

    /// The name of the tool that a block uses.
    pub(crate) fn use_name(&self, block: usize) -> &str {
        match &self.blocks()[block].kind {
            Kind::Use { name, .. } => name,
            _ => "",
        }
    }

    pub(crate) fn text(&self, span: &Range<usize>) -> &str {
        &self.body.raw[span.clone()]
    }

    /// Whether nothing is left of it but blank text.
    pub(crate) fn is_blank(&self) -> bool {
        let blank = |block: &Block| matches!(block.kind, Kind::Text(Blank::Empty | Blank::White));
        self.blocks().iter().all(blank)
    }

    /// The same without its text: who speaks, the blocks, and the item's id.
    pub(crate) fn without_text(&self) -> Self {
        let Body { role, blocks, is_system, item, is_signed, unknown, refused, .. } = &*self.body;
        let blocks = blocks.iter().map(Block::without_text).collect();
        let raw = Box::default();
        let (role, is_system, is_signed) = (*role, *is_system, *is_signed);
        let (item, unknown, refused) = (item.clone(), *unknown, refused.clone());
        let unknown_api = self.body.unknown_api.clone();
        let body = Body { answered_in: self.answered_in(), unknown_api, ..Body::of(raw) };
        Self::new(Body { role, blocks, is_system, item, is_signed, unknown, refused, ..body })
    }

    /// Its text with its blocks made of `pieces`.
    pub(crate) fn with_pieces(&self, pieces: &[Piece]) -> String {
        let spans: Vec<_> = self.blocks().iter().map(|block| block.span.clone()).collect();
        if let ([whole], [piece]) = (&*spans, pieces)
            && *whole == (0..self.raw().len())
        {
            return piece.text.clone();
        }
        let list = self.body.list.as_ref().expect("a message with blocks has a list");
        // A content that is one string is replaced as a whole.
        let spans = if self.text(list).starts_with('[') { spans } else { Vec::new() };
        json::with_list(self.raw(), list, &spans, pieces)
    }
}

/// More blocks than a message has that a model or an agent wrote.
pub(crate) const MANY: usize = 1_000;

impl Block {
    pub(crate) const fn new(span: Range<usize>, kind: Kind) -> Self {
        Self { span, kind, unknown: None, refused: None }
    }

    /// Adds it to those before it. Where these are many, what says nothing to us becomes a part of what
    /// says nothing before it: a message of millions of them takes no more room than it has letters.
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

    fn without_text(&self) -> Self {
        let kind = match &self.kind {
            Kind::Use { id, id_at, name, noun } => Kind::Use {
                id: id.clone(),
                id_at: id_at.as_ref().map(|_| 0..0),
                name: name.clone(),
                noun,
            },
            Kind::Result { id, id_at, name, synthetic, .. } => Kind::Result {
                id: id.clone(),
                id_at: id_at.as_ref().map(|_| 0..0),
                name: name.clone(),
                content: None,
                synthetic: *synthetic,
            },
            other => other.clone(),
        };
        Self { span: 0..0, kind, unknown: self.unknown, refused: self.refused.clone() }
    }

    /// Its text in `message`, with another id if there is one.
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
            // It keeps its id, or is a message's without its text.
            _ => text.to_owned(),
        }
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
