//! Reads a record's outline in one pass over its text: what a check needs of most of them.
//!
//! What it does not understand at once is `None`, and left to [`Entry::read`], which agrees with
//! it on all that it does.
mod part;
mod scan;

use self::{
    part::{Part, Text},
    scan::Scan,
};
use super::{
    entry::{Entry, Link, What},
    form::FileForm,
};
use crate::{
    format::{self, Format},
    message::{Blank, Block, Body, Kind, Message, Role},
};
use std::sync::LazyLock;

/// Reads a record that may be no JSON. Its message has no text.
pub(super) fn read(form: FileForm, record: &str) -> Option<Entry> {
    let mut scan = Scan::new(record);
    let entry = match form {
        FileForm::ClaudeCode | FileForm::ClaudeSubagent => {
            let line = Line::read(&mut scan, false)?;
            line.claude_code(form == FileForm::ClaudeSubagent)?
        }
        FileForm::OpenClaw { .. } => Line::read(&mut scan, true)?.openclaw()?,
        FileForm::Messages(Format::AnthropicMessages) => {
            let message = Said::read(&mut scan, false)?.anthropic()?;
            let what = What::Message { message, group: None };
            Entry { id: None, link: Link::Before, what }
        }
        FileForm::Messages(_) | FileForm::Codex | FileForm::Other => return None,
    };
    scan.is_done().then_some(entry)
}

/// What was seen of an object's members: one that is there twice is not understood.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    fn once(&mut self, member: u32) -> Option<()> {
        let is_new = self.0 & 1 << member == 0;
        self.0 |= 1 << member;
        is_new.then_some(())
    }
}

/// A text that may be `null`, and is then not there.
fn text_of<'t>(scan: &mut Scan<'t>) -> Option<Option<&'t str>> {
    if scan.null()? { Some(None) } else { scan.plain().map(Some) }
}

/// What an entry follows.
#[derive(Default)]
enum Parent<'t> {
    #[default]
    Absent,
    Null,
    Of(&'t str),
}

/// A line of Claude Code's or OpenClaw's.
#[derive(Default)]
struct Line<'t> {
    kind: Option<&'t str>,
    id: Option<&'t str>,
    parent: Parent<'t>,
    is_sidechain: bool,
    is_api_error: bool,
    is_transcript_only: bool,
    message: Option<Said<'t>>,
}

impl<'t> Line<'t> {
    fn read(scan: &mut Scan<'t>, is_openclaws: bool) -> Option<Self> {
        let (mut line, mut seen) = (Self::default(), Seen::default());
        scan.object(|scan, name| {
            match name {
                "type" => {
                    seen.once(0)?;
                    line.kind = text_of(scan)?;
                }
                "message" => {
                    seen.once(1)?;
                    line.message =
                        if scan.null()? { None } else { Some(Said::read(scan, is_openclaws)?) };
                }
                "isSidechain" if !is_openclaws => {
                    seen.once(2)?;
                    line.is_sidechain = scan.boolean()?;
                }
                "isApiErrorMessage" if !is_openclaws => {
                    seen.once(3)?;
                    line.is_api_error = scan.boolean()?;
                }
                "isVisibleInTranscriptOnly" if !is_openclaws => {
                    seen.once(4)?;
                    line.is_transcript_only = scan.boolean()?;
                }
                "uuid" if !is_openclaws => {
                    seen.once(5)?;
                    line.id = text_of(scan)?;
                }
                "parentUuid" if !is_openclaws => {
                    seen.once(6)?;
                    line.parent = text_of(scan)?.map_or(Parent::Null, Parent::Of);
                }
                "id" if is_openclaws => {
                    seen.once(5)?;
                    line.id = text_of(scan)?;
                }
                "parentId" if is_openclaws => {
                    seen.once(6)?;
                    line.parent = text_of(scan)?.map_or(Parent::Null, Parent::Of);
                }
                "subtype" | "summary" => {
                    seen.once(7)?;
                    scan.value()?;
                }
                "leafUuid" | "firstKeptEntryId" => {
                    seen.once(8)?;
                    scan.value()?;
                }
                "firstKeptEntryIndex" => {
                    seen.once(9)?;
                    scan.value()?;
                }
                _ => scan.value()?,
            }
            Some(())
        })?;
        Some(line)
    }

    fn claude_code(self, takes_sides: bool) -> Option<Entry> {
        let is_said = matches!(self.kind, Some("user" | "assistant"));
        let is_plain = !(self.is_sidechain && !takes_sides || self.is_api_error);
        let is_plain = is_plain && is_said && !self.is_transcript_only;
        let message = self.message.filter(|_| is_plain)?;
        let group = message.id.map(Into::into);
        let message = message.anthropic()?;
        let what = What::Message { message, group };
        Some(Entry { id: self.id.map(Into::into), link: self.parent.into_link(), what })
    }

    fn openclaw(self) -> Option<Entry> {
        let message = self.message.filter(|_| self.kind == Some("message"))?.openclaw()?;
        let what = What::Message { message, group: None };
        Some(Entry { id: self.id.map(Into::into), link: self.parent.into_link(), what })
    }
}

/// What a message says.
#[derive(Default)]
enum Content {
    #[default]
    Absent,
    Text(Text),
    Parts(Parts),
}

/// The blocks of a content.
#[derive(Default)]
struct Parts {
    /// `None` if not all are understood.
    blocks: Option<Vec<Block>>,
    /// Whether one of them is a thought of the model's.
    has_thought: bool,
    /// How many there are, and whether the text of the last was put there by a repair.
    count: usize,
    is_synthetic: bool,
}

impl Parts {
    fn read(scan: &mut Scan<'_>, is_openclaws: bool) -> Option<Self> {
        let mut parts = Self { blocks: Some(Vec::new()), ..Self::default() };
        scan.array(|scan| {
            let part = Part::read(scan)?;
            parts.count += 1;
            parts.is_synthetic = part.text.is_some_and(|text| text.is_synthetic);
            parts.has_thought |= matches!(part.kind, Some("thinking" | "redacted_thinking"));
            let block = if is_openclaws { part.openclaw() } else { part.anthropic() };
            parts.blocks = parts.blocks.take().zip(block).map(|(mut blocks, block)| {
                // Most have one.
                if blocks.is_empty() {
                    blocks.reserve_exact(1);
                }
                blocks.push(block);
                blocks
            });
            Some(())
        })?;
        Some(parts)
    }
}

/// A message.
#[derive(Default)]
struct Said<'t> {
    id: Option<&'t str>,
    role: &'t str,
    content: Content,
    tool_call_id: Option<&'t str>,
    stop_reason: Option<&'t str>,
    api: Option<&'t str>,
    /// Whether it has a member in which other forms say something.
    says_more: bool,
}

impl<'t> Said<'t> {
    fn read(scan: &mut Scan<'t>, is_openclaws: bool) -> Option<Self> {
        let (mut said, mut seen) = (Self::default(), Seen::default());
        scan.object(|scan, name| {
            match name {
                "id" => {
                    seen.once(0)?;
                    said.id = text_of(scan)?;
                }
                "role" => {
                    seen.once(1)?;
                    said.role = scan.plain()?;
                }
                "content" => {
                    seen.once(2)?;
                    said.content = match scan.peek() {
                        b'n' => scan.null().map(|_| Content::Absent)?,
                        b'"' => Content::Text(Text::read(scan)?),
                        _ => Content::Parts(Parts::read(scan, is_openclaws)?),
                    };
                }
                "toolCallId" => {
                    seen.once(3)?;
                    said.tool_call_id = text_of(scan)?;
                }
                "stopReason" => {
                    seen.once(4)?;
                    said.stop_reason = text_of(scan)?;
                }
                "api" => {
                    seen.once(5)?;
                    said.api = text_of(scan)?;
                }
                "model" => {
                    seen.once(6)?;
                    scan.value()?;
                }
                name if format::may_say(name) => {
                    seen.once(7)?;
                    said.says_more = !scan.null()?;
                    if said.says_more {
                        scan.value()?;
                    }
                }
                _ => scan.value()?,
            }
            Some(())
        })?;
        Some(said)
    }

    /// `None` where not all of it is understood, here and below.
    fn anthropic(self) -> Option<Message> {
        if self.says_more || self.tool_call_id.is_some() {
            return None;
        }
        let role = match self.role {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return None,
        };
        match self.content {
            Content::Text(Text { blank: Blank::Empty, .. }) | Content::Absent => None,
            Content::Text(text) => Some(with_text(role, text.blank)),
            Content::Parts(Parts { count: 0, .. }) => None,
            Content::Parts(Parts { has_thought: true, .. }) if role == Role::User => None,
            Content::Parts(parts) => {
                let blocks = parts.blocks?;
                if let [Block { kind: Kind::Text(blank), .. }] = &*blocks {
                    return Some(with_text(role, *blank));
                }
                Some(message(role, blocks, None))
            }
        }
    }

    fn openclaw(self) -> Option<Message> {
        match self.role {
            "user" => Some(message(Role::User, Vec::new(), None)),
            "assistant" if !matches!(self.stop_reason, Some("error" | "aborted")) => {
                let Content::Parts(parts) = self.content else { return None };
                if self.says_more {
                    return None;
                }
                let answered_in = self.api.and_then(format::form_of_api);
                Some(message(Role::Assistant, parts.blocks?, answered_in))
            }
            "toolResult" => {
                let is_synthetic = match self.content {
                    Content::Text(text) => text.is_synthetic,
                    Content::Parts(parts) => parts.count == 1 && parts.is_synthetic,
                    Content::Absent => false,
                };
                let result = result(self.tool_call_id, is_synthetic);
                Some(message(Role::Tool, vec![block(result)], None))
            }
            _ => None,
        }
    }
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

fn result(id: Option<&str>, synthetic: bool) -> Kind {
    let id = id.unwrap_or_default().into();
    Kind::Result { id, id_at: None, name: Box::default(), content: None, synthetic }
}

const fn block(kind: Kind) -> Block {
    Block::new(0..0, kind)
}

fn message(role: Role, mut blocks: Vec<Block>, answered_in: Option<Format>) -> Message {
    // It may have the room of what it was made of, and is kept.
    blocks.shrink_to_fit();
    Message::new(Body { role, blocks, answered_in, ..Body::of(Box::default()) })
}

/// A message of one text. Most are alike, and share what they have.
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

#[cfg(test)]
mod tests;
