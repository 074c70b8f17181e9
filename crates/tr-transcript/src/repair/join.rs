//! Collects the repaired messages. Where a step must follow the user, merges the model's preceding
//! messages into it.
use super::action::{ActionKind, Log};
use crate::{
    format::Format,
    json::Piece,
    message::{Message, Role},
};
use std::ops::Range;

/// The repaired messages.
#[derive(Default)]
pub(super) struct RepairedMessages {
    messages: Vec<Message>,
    /// Messages that will be merged once no more can be added to them.
    joined: Option<Range<usize>>,
}

impl RepairedMessages {
    /// Adds a message unchanged.
    pub(super) fn push(&mut self, format: Format, message: Message) {
        if message.role() != Role::Assistant {
            self.join(format);
        }
        self.messages.push(message);
    }

    /// Adds a message, which was at index `was`; merges it with those before it if it must follow
    /// the user.
    pub(super) fn put(&mut self, format: Format, message: Message, was: usize, log: &mut Log) {
        let begin = format.rules().follows_user.filter(|_| message.tool_uses().next().is_some());
        let Some(begin) = begin else { return self.push(format, message) };
        let is_model = |message: &&Message| message.role() == Role::Assistant;
        let (speaks_on, end) = (is_model(&&message), self.joined.as_ref().map_or(0, |it| it.end));
        let run = self.messages[end..].iter().rev().take_while(is_model).count();
        if let Some(joined) = &mut self.joined {
            // The first of these was merged already.
            (0..=run).for_each(|_| log.act(ActionKind::JoinMessages, was, None));
            self.messages.push(message);
            joined.end = self.messages.len();
        } else {
            let mut from = self.messages.len() - run;
            (0..run).for_each(|_| log.act(ActionKind::JoinMessages, was, None));
            if from.checked_sub(1).is_none_or(|before| self.messages[before].role() != Role::User) {
                log.act(ActionKind::AddUserMessage, was, None);
                self.messages.insert(from, format.own(begin.to_owned()));
                from += 1;
            }
            self.messages.push(message);
            self.joined = Some(from..self.messages.len()).filter(|joined| joined.len() > 1);
        }
        if !speaks_on {
            self.join(format);
        }
    }

    /// All of them.
    pub(super) fn finish(mut self, format: Format) -> Vec<Message> {
        self.join(format);
        self.messages
    }

    /// Merges the collected messages into one.
    fn join(&mut self, format: Format) {
        let Some(joined) = self.joined.take() else { return };
        let Some((last, before)) = self.messages[joined.clone()].split_last() else { return };
        let listed = |message: &Message, was: fn(usize) -> Option<usize>| {
            let blocks = message.blocks().iter().enumerate();
            let piece =
                |(at, block)| Piece { was: was(at), text: format.listed(message, block, None) };
            blocks.map(piece).collect::<Vec<_>>()
        };
        let mut pieces: Vec<_> = before.iter().flat_map(|it| listed(it, |_| None)).collect();
        pieces.extend(listed(last, Some));
        let message = format.rewrite(last, &pieces).expect("blocks were joined");
        self.messages.splice(joined, [message]);
    }
}
