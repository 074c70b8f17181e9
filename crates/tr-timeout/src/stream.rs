//! Watches an answer in chunks: how long its next chunk has been due.
use std::time::Duration;
use tokio::time::Instant;
use tr_core::chunks::Chunks;

/// The stream of one attempt.
#[derive(Debug)]
pub(crate) struct StreamWatch {
    chunks: Chunks,
    idle: Option<Duration>,
    /// The signs of life that were noticed, and when; `None` before the first chunk.
    noticed: Option<(u64, Instant)>,
}

impl StreamWatch {
    #[cold]
    pub(crate) fn new(chunks: Chunks, idle: Option<Duration>) -> Box<Self> {
        Box::new(Self { chunks, idle, noticed: None })
    }

    /// How long the next chunk may take, once there was one.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.noticed.and(self.idle)
    }

    /// Notices signs of life after a poll of the tool. Returns whether the first chunk is among them.
    pub(crate) fn notice(&mut self) -> bool {
        let signs = self.chunks.signs_of_life();
        match &mut self.noticed {
            Some((seen, _)) if *seen == signs => false,
            Some(noticed) => {
                *noticed = (signs, Instant::now());
                false
            }
            None if self.chunks.sent() == 0 => false,
            None => {
                self.noticed = Some((signs, Instant::now()));
                true
            }
        }
    }

    /// When the next chunk is due; `None` if that was before `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Instant> {
        let ((seen, at), idle) = (self.noticed.as_mut()?, self.idle?);
        let signs = self.chunks.signs_of_life();
        // A tool that sends from another task is not polled when it does. And a slow consumer is no idle
        // tool.
        if *seen != signs || !self.chunks.is_awaited() {
            (*seen, *at) = (signs, now);
        }
        Some(*at + idle).filter(|due| *due > now)
    }
}
