//! The messages that may hold the answers to a step.
use crate::{
    format::{Format, Results},
    message::{Message, Role},
};
use std::{borrow::Borrow, ops::Range};

/// The range of messages that may answer the step that begins at `at`, by their position.
pub(crate) fn zone<M: Borrow<Message>>(format: Format, messages: &[M], at: usize) -> Range<usize> {
    let count = |from: usize, role: Role| {
        messages[from..].iter().take_while(|message| M::borrow(message).role() == role).count()
    };
    let (start, len) = match format.rules().results {
        Results::Blocks => {
            let rules = format.rules();
            let mut behind = messages[at + 1..].iter().map(M::borrow);
            let asides = behind.by_ref().take_while(|message| message.is_aside(rules)).count();
            let start = at + 1 + asides;
            let next: Option<&Message> = messages.get(start).map(M::borrow);
            (start, usize::from(next.is_some_and(|next| next.role() == Role::User)))
        }
        Results::Messages => (at + 1, count(at + 1, Role::Tool)),
        Results::Items => {
            let end = at + count(at, Role::Assistant);
            (end, count(end, Role::Tool))
        }
    };
    start..start + len
}
