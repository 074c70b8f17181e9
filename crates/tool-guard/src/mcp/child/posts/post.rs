//! One post, and what it has heard.
use crate::mcp::{http::Presence, upstream::Heard};
use std::{collections::VecDeque, task::Waker};

#[derive(Debug, Default)]
pub(super) struct Post {
    pub(super) heard: VecDeque<Heard>,
    pub(super) bytes: usize,
    pub(super) waker: Option<Waker>,
    /// How many of its requests are not answered.
    pub(super) open: usize,
    /// Where its line begins, in what was queued for the server.
    pub(super) from: u64,
    pub(super) is_mutating: bool,
    pub(super) is_listener: bool,
    /// Its client has cancelled it, and only its late answer is of interest.
    pub(super) is_cancelled: bool,
    /// Whether its client is there.
    pub(super) presence: Presence,
}

impl Post {
    /// Whether its client waits for answers.
    pub(super) const fn is_waited_for(&self) -> bool {
        self.open > 0 && !self.is_cancelled
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
