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
    seen: Seen,
    /// Whether it has members that are not known.
    is_unknown: bool,
    /// Whether a thought has a signature.
    is_signed: bool,
    /// The number of members.
    pub(super) members: usize,
}

const TYPE: u32 = 1;
const ID: u32 = 1 << 1;
const TOOL_USE_ID: u32 = 1 << 2;
const TEXT: u32 = 1 << 3;
const CONTENT: u32 = 1 << 4;
const NAME: u32 = 1 << 5;
const INPUT: u32 = 1 << 6;
const CALLER: u32 = 1 << 7;
const IS_ERROR: u32 = 1 << 8;
const ARGUMENTS: u32 = 1 << 9;
const THOUGHT_SIGNATURE: u32 = 1 << 10;
const CITATIONS: u32 = 1 << 11;
const IS_SYSTEM_PROMPT: u32 = 1 << 12;
const CACHE_CONTROL: u32 = 1 << 13;
const SIGNATURE: u32 = 1 << 14;
/// Set for other members of blocks that a repair never changes.
const UNTOUCHED: u32 = 1 << 15;

/// The members that each type of block may have; those with others are not read here.
const OF_USE: u32 = TYPE | ID | NAME | INPUT | CALLER | CACHE_CONTROL;
const OF_RESULT: u32 = TYPE | TOOL_USE_ID | CONTENT | IS_ERROR | CACHE_CONTROL;
const OF_TEXT: u32 = TYPE | TEXT | CITATIONS | IS_SYSTEM_PROMPT | CACHE_CONTROL;
const OF_CALL: u32 = TYPE | ID | NAME | ARGUMENTS | THOUGHT_SIGNATURE;

impl<'t> Part<'t> {
    pub(super) fn read(scan: &mut Scan<'t>) -> Option<Self> {
        let mut part = Self::default();
        scan.object(|scan, name| {
            part.members += 1;
            let seen = &mut part.seen;
            match name {
                "type" => part.kind = seen.string(TYPE, scan)?,
                "id" => part.id = seen.string(ID, scan)?,
                "tool_use_id" => part.tool_use_id = seen.string(TOOL_USE_ID, scan)?,
                "text" => {
                    seen.once(TEXT)?;
                    part.text = Text::read_or_null(scan)?;
                }
                "content" => {
                    seen.once(CONTENT)?;
                    part.content = read_answer(scan)?;
                }
                "name" => part.name = seen.string(NAME, scan)?,
                "input" => seen.object(INPUT, scan)?,
                "arguments" => seen.object(ARGUMENTS, scan)?,
                "caller" => seen.skip(CALLER, scan)?,
                "is_error" => seen.skip(IS_ERROR, scan)?,
                "thoughtSignature" => seen.skip(THOUGHT_SIGNATURE, scan)?,
                "citations" => seen.skip(CITATIONS, scan)?,
                "isSystemPrompt" => seen.skip(IS_SYSTEM_PROMPT, scan)?,
                "cache_control" => seen.skip(CACHE_CONTROL, scan)?,
                "signature" => {
                    part.is_signed = seen.string(SIGNATURE, scan)?.is_some_and(|it| !it.is_empty());
                }
                "textSignature" | "thinking" | "thinkingSignature" | "source" | "data"
                | "mimeType" => {
                    seen.0 |= UNTOUCHED;
                    scan.skip_value()?;
                }
                // Blocks with these members can still be judged.
                _ => {
                    part.is_unknown = true;
                    scan.skip_value()?;
                }
            }
            Some(())
        })?;
        Some(part)
    }

    /// Whether it has only these of the known members.
    const fn is_within(&self, members: u32) -> bool {
        self.seen.0 & !members == 0
    }

    /// `None` where the block is not fully understood, here and in the functions below.
    pub(super) fn anthropic(&self) -> Option<Block> {
        let is_plain = || self.id.is_none_or(format::is_plain) && !self.is_refused(200);
        Some(block(match self.kind.unwrap_or_default() {
            "tool_use" if self.is_within(OF_USE) && self.seen.has(INPUT) && is_plain() => {
                used(self.id)
            }
            "tool_result" if self.is_within(OF_RESULT) => result(self.tool_use_id, self.content?),
            "text" if self.is_within(OF_TEXT) => Kind::Text(self.text?.blank),
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
        let is_call = || self.seen.has(ARGUMENTS) && !self.is_refused(usize::MAX);
        Some(block(match self.kind? {
            _ if self.is_unknown => return None,
            "toolCall" if self.is_within(OF_CALL) && is_call() => used(self.id),
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
                        seen.once(TEXT)?;
                        let text = Text::read_or_null(scan)?;
                        is_synthetic = text.is_some_and(|text| text.is_synthetic);
                        Some(())
                    }
                    // What is in an image or a document is looked at.
                    "type" => {
                        let kind = seen.string(TYPE, scan)?;
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

/// The members seen in an object, each as a bit; a duplicate makes it unreadable here.
#[derive(Default)]
pub(super) struct Seen(u32);

impl Seen {
    const fn has(&self, member: u32) -> bool {
        self.0 & member != 0
    }

    pub(super) fn once(&mut self, member: u32) -> Option<()> {
        let is_new = !self.has(member);
        self.0 |= member;
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

    /// Skips an object: the provider refuses another value of this member.
    fn object(&mut self, member: u32, scan: &mut Scan<'_>) -> Option<()> {
        if scan.peek() == b'{' { self.skip(member, scan) } else { None }
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
