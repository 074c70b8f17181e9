//! Reads a message for an outline (`outline.rs`): its blocks, without their texts.
use super::{
    part::{Part, Seen, Text, block, message, result, with_text},
    scan::Scan,
};
use crate::{
    file::entry::What,
    format,
    message::{Blank, Block, Kind, Message, Role},
    name::Name,
};

/// The content of a message.
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
    /// `None` if a block is not understood.
    blocks: Option<Vec<Block>>,
    /// Whether one of them is a thinking block.
    has_thought: bool,
    /// How many there are, and whether a repair wrote the text of the last one.
    count: usize,
    is_synthetic: bool,
    /// Whether there are too many blocks, or a block has too many members.
    is_too_much: bool,
}

impl Parts {
    fn read(scan: &mut Scan<'_>, is_openclaws: bool) -> Option<Self> {
        let mut parts = Self { blocks: Some(Vec::new()), ..Self::default() };
        scan.array(|scan| {
            parts.count += 1;
            parts.is_too_much |= parts.count > scan.max_items;
            if parts.is_too_much {
                parts.blocks = None;
            }
            let start = scan.position();
            let part = if parts.blocks.is_some() { Part::read(scan) } else { None };
            let Some(part) = part else {
                scan.rewind(start);
                parts.blocks = None;
                parts.is_too_much |= scan.skip_and_count()? > scan.max_items;
                return Some(());
            };
            parts.is_too_much |= part.members > scan.max_items;
            parts.is_synthetic = part.text.is_some_and(|text| text.is_synthetic);
            parts.has_thought |= matches!(part.kind, Some("thinking" | "redacted_thinking"));
            let block = if is_openclaws { part.openclaw() } else { part.anthropic() };
            parts.blocks = parts.blocks.take().zip(block).map(|(mut blocks, block)| {
                // Most messages have one block.
                if blocks.is_empty() {
                    blocks.reserve_exact(1);
                }
                block.add_to(&mut blocks);
                blocks
            });
            Some(())
        })?;
        Some(parts)
    }
}

/// A message.
#[derive(Default)]
pub(super) struct Body<'t> {
    pub(super) id: Option<&'t str>,
    role: &'t str,
    content: Content,
    tool_call_id: Option<&'t str>,
    stop_reason: Option<&'t str>,
    api: Option<&'t str>,
    /// Whether it has a member that holds content in other forms.
    says_more: bool,
}

impl<'t> Body<'t> {
    pub(super) fn read(scan: &mut Scan<'t>, is_openclaws: bool) -> Option<Self> {
        let (mut said, mut seen) = (Self::default(), Seen::default());
        scan.object(|scan, name| {
            match name {
                "id" => said.id = seen.string(1, scan)?,
                "role" => {
                    seen.once(1 << 1)?;
                    said.role = scan.unescaped()?;
                }
                "content" => {
                    seen.once(1 << 2)?;
                    said.content = match scan.peek() {
                        b'n' => scan.null().map(|_| Content::Absent)?,
                        b'"' => Content::Text(Text::read(scan)?),
                        _ => Content::Parts(Parts::read(scan, is_openclaws)?),
                    };
                }
                "toolCallId" => said.tool_call_id = seen.string(1 << 3, scan)?,
                "stopReason" => said.stop_reason = seen.string(1 << 4, scan)?,
                "api" => said.api = seen.string(1 << 5, scan)?,
                "model" => seen.skip(1 << 6, scan)?,
                name if format::may_say(name) => {
                    seen.once(1 << 7)?;
                    said.says_more = !scan.null()?;
                    if said.says_more {
                        scan.skip_value()?;
                    }
                }
                _ => scan.skip_value()?,
            }
            Some(())
        })?;
        Some(said)
    }

    /// `None` where the message is not fully understood, here and below. A message that exceeds the
    /// limits has no blocks.
    pub(super) fn anthropic(self, group: Option<Name>) -> Option<What> {
        if matches!(self.content, Content::Parts(Parts { is_too_much: true, .. })) {
            return Some(What::Hidden);
        }
        Some(What::Message { message: self.anthropic_message()?, group })
    }

    pub(super) fn openclaw(self) -> Option<What> {
        if matches!(self.content, Content::Parts(Parts { is_too_much: true, .. })) {
            return Some(What::Hidden);
        }
        Some(What::Message { message: self.openclaw_message()?, group: None })
    }

    fn anthropic_message(self) -> Option<Message> {
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

    fn openclaw_message(self) -> Option<Message> {
        match self.role {
            "user" => Some(message(Role::User, Vec::new(), None)),
            "assistant" if !matches!(self.stop_reason, Some("error" | "aborted")) => {
                let Content::Parts(parts) = self.content else { return None };
                if self.says_more {
                    return None;
                }
                let answered_in = self.api.and_then(format::form_of_api);
                if answered_in.is_none() && self.api.is_some_and(|api| !api.is_empty()) {
                    return None;
                }
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
