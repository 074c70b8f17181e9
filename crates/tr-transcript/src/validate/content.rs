//! Findings about unknown parts, and about empty parts that a provider refuses.
use super::{Fault, Validator};
use crate::{
    format::Blanks,
    message::{Blank, Kind, MANY, Message, Role, Unknown},
};

impl Validator {
    /// Reports unknown parts.
    pub(super) fn check_blocks(&mut self, message: &Message) {
        if message.unknown() == Some(Unknown::Content) {
            self.report(Fault::UnknownMessage, self.len, None, None);
        }
        let faults = message.blocks().iter().enumerate().filter_map(|(at, block)| {
            let is_unknown = block.unknown == Some(Unknown::Content);
            match block.kind {
                Kind::Unread => Some((at, Fault::UnreadBlock)),
                _ => is_unknown.then_some((at, Fault::UnknownBlock)),
            }
        });
        // The limit is safe: such a message is not judged in any case.
        for (at, fault) in faults.take(MANY) {
            self.report(fault, self.len, Some(at), None);
        }
    }

    pub(super) fn check_blanks(&mut self, message: &Message, refused: Blanks) {
        if message.unknown() == Some(Unknown::Content) {
            return;
        }
        let blocks = message.blocks();
        let is_refused = match refused {
            Blanks::Nothing => return,
            Blanks::Messages => true,
            Blanks::Texts => message.role() == Role::User,
        };
        if blocks.is_empty() && is_refused {
            self.report(Fault::EmptyMessage, self.len, None, None);
        }
        if refused == Blanks::Messages {
            return;
        }
        for (at, block) in blocks.iter().enumerate() {
            if matches!(block.kind, Kind::Text(Blank::Empty)) {
                self.report(Fault::EmptyText, self.len, Some(at), None);
            }
        }
        let is_white = blocks.iter().any(|block| matches!(block.kind, Kind::Text(Blank::White)));
        if is_white && message.is_blank() {
            self.report(Fault::BlankMessage, self.len, None, None);
        }
    }
}
