//! Reads a block of a message for an outline; `message.rs` calls it.
use super::scan::Scan;
use crate::{
    format::{self, Format},
    message::{Blank, Block, Body, Kind, Message, Role, Unknown},
};
use std::sync::LazyLock;

/// What an outline keeps of a text.
#[derive(Clone, Copy)]
pub(super) struct Text {
    pub(super) blank: Blank,
    pub(super) is_synthetic: bool,
}

impl Text {
    fn of(text: &str) -> Self {
        Self { blank: Blank::of(text), is_synthetic: format::is_synthetic_text(text) }
    }

    /// `None` if it cannot be read as a text.
    pub(super) fn read(scan: &mut Scan<'_>) -> Option<Self> {
        let quoted = scan.string()?;
        if !quoted.has_escapes {
            return Some(Self::of(quoted.inside));
        }
        match quoted.inside.as_bytes().first() {
            // Its first character is visible, and none of a repair's texts begins with it.
            Some(first) if first.is_ascii_graphic() && !matches!(first, b'\\' | b'[' | b'o') => {
                Some(Self { blank: Blank::No, is_synthetic: false })
            }
            _ => serde_json::from_str::<String>(quoted.whole).ok().map(|text| Self::of(&text)),
        }
    }

    fn read_or_null(scan: &mut Scan<'_>) -> Option<Option<Self>> {
        if scan.null()? { Some(None) } else { Self::read(scan).map(Some) }
    }
}

/// A block of a message, with all members that [`Entry::read`](super::Entry::read) looks at.
#[derive(Default)]
pub(super) struct Part<'t> {
    pub(super) kind: Option<&'t str>,
    id: Option<&'t str>,
    tool_use_id: Option<&'t str>,
    pub(super) text: Option<Text>,
    /// Whether a repair wrote the content of a result.
    content: Option<bool>,
    name: Option<&'t str>,
    /// Which other members are present.
    has: u32,
    seen: Seen,
    /// Whether a thought has a signature.
    is_signed: bool,
    /// The number of members.
    pub(super) members: usize,
}

const INPUT: u32 = 1;
const CALLER: u32 = 1 << 1;
const IS_ERROR: u32 = 1 << 2;
const ARGUMENTS: u32 = 1 << 3;
const THOUGHT_SIGNATURE: u32 = 1 << 4;
const CITATIONS: u32 = 1 << 5;
const IS_SYSTEM_PROMPT: u32 = 1 << 6;
const CACHE_CONTROL: u32 = 1 << 7;
/// Set for members of blocks that a repair never changes.
const UNTOUCHED: u32 = 1 << 8;
const UNKNOWN: u32 = 1 << 9;

impl<'t> Part<'t> {
    pub(super) fn read(scan: &mut Scan<'t>) -> Option<Self> {
        let mut part = Self::default();
        scan.object(|scan, name| {
            part.members += 1;
            match name {
                "type" => part.kind = part.seen.string(0, scan)?,
                "id" => part.id = part.seen.string(1, scan)?,
                "tool_use_id" => part.tool_use_id = part.seen.string(2, scan)?,
                "text" => {
                    part.seen.once(3)?;
                    part.text = Text::read_or_null(scan)?;
                }
                "content" => {
                    part.seen.once(4)?;
                    part.content = read_answer(scan)?;
                }
                "name" => part.name = part.seen.string(5, scan)?,
                "input" => part.other(6, INPUT, scan)?,
                "caller" => part.other(7, CALLER, scan)?,
                "is_error" => part.other(8, IS_ERROR, scan)?,
                "arguments" => part.other(9, ARGUMENTS, scan)?,
                "thoughtSignature" => part.other(10, THOUGHT_SIGNATURE, scan)?,
                "citations" => part.other(11, CITATIONS, scan)?,
                "isSystemPrompt" => part.other(12, IS_SYSTEM_PROMPT, scan)?,
                "textSignature" => part.other(13, UNTOUCHED, scan)?,
                "thinking" => part.other(14, UNTOUCHED, scan)?,
                "thinkingSignature" => part.other(15, UNTOUCHED, scan)?,
                "signature" => {
                    part.is_signed = part.seen.string(16, scan)?.is_some_and(|it| !it.is_empty());
                    part.has |= UNTOUCHED;
                }
                "source" => part.other(17, UNTOUCHED, scan)?,
                "data" => part.other(18, UNTOUCHED, scan)?,
                "mimeType" => part.other(19, UNTOUCHED, scan)?,
                "cache_control" => part.other(20, CACHE_CONTROL, scan)?,
                // Blocks with these members can still be judged.
                _ => {
                    part.has |= UNKNOWN;
                    scan.skip_value()?;
                }
            }
            Some(())
        })?;
        Some(part)
    }

    /// Skips another member, and notes that it is present unless it is `null`.
    fn other(&mut self, number: u32, member: u32, scan: &mut Scan<'_>) -> Option<()> {
        self.seen.once(number)?;
        if scan.null()? {
            return Some(());
        }
        self.has |= member;
        // The provider refuses a value that is no object.
        if matches!(member, INPUT | ARGUMENTS) && scan.peek() != b'{' {
            return None;
        }
        scan.skip_value()
    }

    const fn has(&self, members: u32) -> bool {
        self.has & members != 0
    }

    /// `None` where the block is not fully understood, here and in the functions below.
    pub(super) fn anthropic(&self) -> Option<Block> {
        let is_refused = !self.has(INPUT) || self.is_refused(200);
        let is_refused = is_refused || !self.id.is_none_or(format::is_plain);
        let is_use = self.id.is_some() || self.name.is_some() || self.has(INPUT | CALLER);
        let is_result = self.tool_use_id.is_some() || self.has(IS_ERROR);
        let is_text = self.text.is_some() || self.has(CITATIONS | IS_SYSTEM_PROMPT);
        let is_other = self.has(ARGUMENTS | THOUGHT_SIGNATURE | UNTOUCHED);
        let has_content = self.content.is_some();
        Some(block(match self.kind.unwrap_or_default() {
            "tool_use" if !(is_result || is_text || is_other || has_content || is_refused) => {
                used(self.id)
            }
            "tool_result" if !(is_use || is_text || is_other) => {
                result(self.tool_use_id, self.content?)
            }
            "text" if !(is_use || is_result || is_other || has_content) => {
                Kind::Text(self.text?.blank)
            }
            "tool_use" | "tool_result" | "text" => return None,
            // What is in them is looked at.
            "image" | "document" => return None,
            "thinking" if !self.is_signed => return None,
            kind if format::is_of_server(kind) => return None,
            kind if format::is_untouched(kind) => Kind::Other,
            _ => return Some(Block { unknown: Some(Unknown::Content), ..block(Kind::Other) }),
        }))
    }

    pub(super) fn openclaw(&self) -> Option<Block> {
        let others = INPUT | CALLER | IS_ERROR | CITATIONS | IS_SYSTEM_PROMPT | CACHE_CONTROL;
        let is_call = !self.has(others | UNTOUCHED) && self.has(ARGUMENTS);
        let is_call = is_call && self.text.is_none() && self.tool_use_id.is_none();
        let is_call = is_call && self.content.is_none() && !self.is_refused(usize::MAX);
        if self.has(UNKNOWN) {
            return None;
        }
        Some(block(match self.kind? {
            "toolCall" if is_call => used(self.id),
            "text" => Kind::Text(Blank::No),
            "thinking" | "image" => Kind::Other,
            _ => return None,
        }))
    }

    /// Whether the provider refuses the tool's name, given this limit in bytes.
    fn is_refused(&self, most: usize) -> bool {
        self.name.is_none_or(|name| name.is_empty() || name.len() > most)
    }
}

/// Consumes the content of a result; returns whether a repair wrote it: a text, or its only part.
/// `Some(None)` for `null`.
fn read_answer(scan: &mut Scan<'_>) -> Option<Option<bool>> {
    match scan.peek() {
        b'n' => scan.null().map(|_| None),
        b'"' => Text::read(scan).map(|text| Some(text.is_synthetic)),
        _ => {
            let (mut count, mut is_synthetic) = (0, false);
            scan.array(|scan| {
                count += 1;
                let mut seen = Seen::default();
                scan.object(|scan, name| match name {
                    "text" if count == 1 => {
                        seen.once(0)?;
                        let text = Text::read_or_null(scan)?;
                        is_synthetic = text.is_some_and(|text| text.is_synthetic);
                        Some(())
                    }
                    // What is in an image or a document is looked at.
                    "type" => {
                        let kind = seen.string(1, scan)?;
                        (!matches!(kind, Some("image" | "document"))).then_some(())
                    }
                    _ => scan.skip_value(),
                })
            })?;
            Some(Some(count == 1 && is_synthetic))
        }
    }
}

fn used(id: Option<&str>) -> Kind {
    let (id_at, name) = (id.map(|_| 0..0), Box::default());
    Kind::Use { id: id.unwrap_or_default().into(), id_at, name, noun: "" }
}

/// The members seen in an object; a duplicate makes it unreadable here.
#[derive(Default)]
pub(super) struct Seen(u32);

impl Seen {
    pub(super) fn once(&mut self, member: u32) -> Option<()> {
        let is_new = self.0 & 1 << member == 0;
        self.0 |= 1 << member;
        is_new.then_some(())
    }

    /// Consumes a string without escapes; `null` counts as missing.
    pub(super) fn string<'t>(
        &mut self,
        member: u32,
        scan: &mut Scan<'t>,
    ) -> Option<Option<&'t str>> {
        self.once(member)?;
        if scan.null()? { Some(None) } else { scan.unescaped().map(Some) }
    }

    pub(super) fn boolean(&mut self, member: u32, scan: &mut Scan<'_>) -> Option<bool> {
        self.once(member)?;
        scan.boolean()
    }

    pub(super) fn skip(&mut self, member: u32, scan: &mut Scan<'_>) -> Option<()> {
        self.once(member)?;
        scan.skip_value()
    }
}

pub(super) fn result(id: Option<&str>, synthetic: bool) -> Kind {
    let id = id.unwrap_or_default().into();
    Kind::Result { id, id_at: None, name: Box::default(), content: None, synthetic }
}

pub(super) const fn block(kind: Kind) -> Block {
    Block::new(0..0, kind)
}

pub(super) fn message(role: Role, mut blocks: Vec<Block>, answered_in: Option<Format>) -> Message {
    // The outline is kept, so release the spare capacity.
    blocks.shrink_to_fit();
    Message::new(Body { role, blocks, answered_in, ..Body::of(Box::default()) })
}

/// A message of one text. Most are alike, and share their memory.
pub(super) fn with_text(role: Role, blank: Blank) -> Message {
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
