//! Watches an answer in chunks: how long its next chunk has been due.
use std::{
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tr_core::chunks::Chunks;

/// A call that is polled so long after its time was over has a consumer that was busy.
const LATE: Duration = Duration::from_secs(1);

/// The stream of one attempt.
#[derive(Debug)]
pub(crate) struct StreamWatch {
    chunks: Chunks,
    idle: Option<Duration>,
    /// The signs of life that were noticed.
    seen: u64,
    /// When the last one was; `None` before the first chunk.
    last: Option<Instant>,
}

impl StreamWatch {
    #[cold]
    pub(crate) fn new(chunks: Chunks, idle: Option<Duration>) -> Box<Self> {
        Box::new(Self { chunks, idle, seen: 0, last: None })
    }

    /// How long the next chunk may take, once there was one.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.last.and(self.idle)
    }

    /// Notices signs of life; the next one wakes this task. Returns whether the first chunk is among them.
    pub(crate) fn notice(&mut self, cx: &mut Context<'_>) -> bool {
        let mut is_first = false;
        while let Poll::Ready(signs) = self.chunks.poll_signs(self.seen, cx) {
            self.seen = signs;
            if let Some(at) = &mut self.last {
                *at = Instant::now();
            } else if self.chunks.sent() > 0 {
                self.last = Some(Instant::now());
                is_first = true;
            }
        }
        is_first
    }

    /// When the next chunk is due; `None` if that was before `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Instant> {
        let (last, idle) = (self.last.as_mut()?, self.idle?);
        // A slow consumer is no idle tool. Nor is it if its call was not even polled when the time was over.
        let is_late = now.saturating_duration_since(*last + idle) > LATE;
        if is_late || !self.chunks.is_awaited() {
            *last = now;
        }
        Some(*last + idle).filter(|due| *due > now)
    }
}

impl Drop for StreamWatch {
    fn drop(&mut self) {
        self.chunks.forget_watchers();
    }
}
