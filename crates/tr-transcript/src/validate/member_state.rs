//! What [`Validator::with_members`](super::Validator::with_members) remembers from message to message.
use crate::{
    format::{Applies, MANY_IMAGES},
    message::{Message, Role},
};

/// The state of the checks that do not depend on how calls and results are paired.
#[derive(Clone, Debug)]
pub(super) struct Members {
    pub(super) applies: Applies,
    /// The last message, if it is the model's and empty: no other message may follow it.
    pub(super) empty: Option<usize>,
    /// The number of messages as they are sent: consecutive tool results are one message.
    pub(super) sent: usize,
    /// The number of results before the last one in its sent message.
    pub(super) results: usize,
    /// The number of images.
    images: usize,
    /// The message and block of those that are refused among many, as long as they are few.
    pub(super) wide: Vec<(usize, usize)>,
}

impl Members {
    /// The state before the first message.
    pub(super) const fn new(applies: Applies) -> Self {
        Self { applies, empty: None, sent: 0, results: 0, images: 0, wide: Vec::new() }
    }

    /// Counts the next message, which is at this index.
    pub(super) fn count(&mut self, at: usize, message: &Message, last: Option<Role>) {
        let is_more = message.role() == Role::Tool && last == Some(Role::Tool);
        self.sent += usize::from(!is_more);
        self.results = if is_more { self.results + 1 } else { 0 };
        self.images += message.body.images;
        if !self.applies.is_other {
            self.wide.extend(message.wide_images().map(|block| (at, block)));
        }
    }

    /// The images that are refused since there are many.
    pub(super) fn take_wide(&mut self) -> Vec<(usize, usize)> {
        if self.images > MANY_IMAGES { std::mem::take(&mut self.wide) } else { Vec::new() }
    }
}
