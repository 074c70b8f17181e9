//! Lines of a stream, one at a time.
use super::lines::{Item, Lines};
use std::future::pending;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Reads lines; dropping a pending read loses nothing.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: Option<R>,
    lines: Lines,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) const fn new(reader: R, lines: Lines) -> Self {
        Self { reader: Some(reader), lines }
    }

    /// The next item; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.lines.next() {
                return Some(item);
            }
            let Some(reader) = &mut self.reader else { return pending().await };
            // A read error counts as the end.
            if matches!(reader.read_buf(self.lines.buffer()).await, Ok(0) | Err(_)) {
                self.reader = None;
                return self.lines.finish();
            }
        }
    }

    /// The next item, if it is in the buffer already.
    pub(crate) fn buffered(&mut self) -> Option<Item> {
        self.lines.next()
    }

    /// Whether the stream may have more.
    pub(crate) const fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Stops reading.
    pub(crate) fn close(&mut self) {
        self.reader = None;
    }
}
