//! Splits bytes into lines with a size limit: a longer line is skipped or passed in parts, and its `id` is
//! remembered.
use super::{jsonrpc, scan::IdScan};
use bytes::{Bytes, BytesMut};
use std::future::pending;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longer lines do not share their memory with the next ones.
const LONG: usize = 1024 * 1024;

/// Splits a stream of bytes at newlines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: BytesMut,
    /// Up to here `buffer` has no newline.
    scanned: usize,
    limit: usize,
    /// Whether the parts of a line over the limit are items.
    parts: bool,
    /// A line over the limit.
    skipping: Option<IdScan>,
    /// A line over the limit that has ended, to return after its last part.
    ended: Option<Item>,
}

/// An item of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A line with its newline, unchanged; or several lines that concern no call.
    Line(Bytes),
    /// A part of a line over the limit, if such lines pass.
    Part(Bytes),
    /// The end of a line over the limit that was skipped.
    Oversized(Oversized),
}

/// What is known about a line over the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Oversized {
    /// Its length.
    pub(crate) bytes: usize,
    /// The JSON text of its top-level `id`, if it has one.
    pub(crate) id: Option<Box<str>>,
    /// Whether it is a request or notification, and no answer.
    pub(crate) asks: bool,
    /// It answers with anything but a call's result: a failure, or a question.
    pub(crate) is_no_success: bool,
}

impl Oversized {
    /// What was read of a line.
    pub(crate) fn of(scan: IdScan) -> Self {
        let (bytes, asks, is_no_success) = (scan.read, scan.asks, scan.is_no_success());
        Self { bytes, id: scan.found.map(|(text, _)| text), asks, is_no_success }
    }

    /// Its ID, if that is a usable one.
    pub(crate) fn token(&self) -> Option<jsonrpc::Token> {
        jsonrpc::Token::of_json(self.id.as_deref()?)
    }
}

impl Lines {
    /// Lines over the limit are skipped.
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::with_capacity(64 * 1024), limit, ..Self::default() }
    }

    /// Lines over the limit come in parts.
    pub(crate) fn in_parts(limit: usize) -> Self {
        Self { parts: true, ..Self::new(limit) }
    }

    /// The space for the next bytes.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(16 * 1024);
        &mut self.buffer
    }

    /// Frees the buffer if nothing is in it.
    pub(crate) fn release(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }

    /// The next item, if the buffer holds one.
    pub(crate) fn next(&mut self) -> Option<Item> {
        if let Some(ended) = self.ended.take() {
            return Some(ended);
        }
        let newline = memchr::memchr(b'\n', &self.buffer[self.scanned..]);
        let end = newline.map(|at| self.scanned + at + 1);
        match (end, self.skipping.take()) {
            (Some(end), None) if end <= self.limit => {
                self.scanned = 0;
                let end = self.other_lines().max(end);
                let line = self.buffer.split_to(end).freeze();
                // If nothing of the next line was read with it, that goes into memory of its own: else a long line's
                // stays beside it.
                if line.len() > LONG {
                    self.release();
                }
                Some(Item::Line(line))
            }
            (Some(end), skipped) => {
                let mut skipped = skipped.unwrap_or_default();
                let part = self.skip(&mut skipped, end);
                self.ended = Some(Item::Oversized(Oversized::of(skipped)));
                part.or_else(|| self.ended.take())
            }
            (None, skipped) => {
                self.scanned = self.buffer.len();
                if skipped.is_none() && self.scanned <= self.limit {
                    return None;
                }
                let mut skipped = skipped.unwrap_or_default();
                let part = self.skip(&mut skipped, self.scanned);
                self.skipping = Some(skipped);
                part
            }
        }
    }

    /// The end of the next lines that concern no call, which are passed together: there may be millions.
    fn other_lines(&self) -> usize {
        let within = &self.buffer[..self.buffer.len().min(self.limit)];
        // Most of these have no string in them.
        let bare = &within[..memchr::memchr(b'"', within).unwrap_or(within.len())];
        let mut end = memchr::memrchr(b'\n', bare).map_or(0, |last| last + 1);
        while let Some(at) = memchr::memchr(b'\n', &within[end..]) {
            if may_concern_call(&within[end..end + at]) {
                break;
            }
            end += at + 1;
        }
        end
    }

    /// The rest at the end of the stream: a last line without newline, unchanged.
    pub(crate) fn finish(&mut self) -> Option<Item> {
        self.scanned = 0;
        match self.skipping.take() {
            Some(skipped) => Some(Item::Oversized(Oversized::of(skipped))),
            None if self.buffer.is_empty() => None,
            None => Some(Item::Line(self.buffer.split().freeze())),
        }
    }

    /// Drops skipped bytes, or returns them as a part.
    fn skip(&mut self, skipped: &mut IdScan, end: usize) -> Option<Item> {
        let part = self.buffer.split_to(end);
        self.scanned = 0;
        skipped.feed(&part);
        (self.parts && !part.is_empty()).then(|| Item::Part(part.freeze()))
    }
}

/// Whether the guard may have to look into a line: `"id"`, `"method"` or the guard's mark stands in it,
/// which all end alike; or an escape, which could spell one of them; or what no JSON reader takes for a
/// call and another one might.
fn may_concern_call(line: &[u8]) -> bool {
    memchr::memchr_iter(b'"', line).any(|at| line[..at].ends_with(b"d"))
        || memchr::memchr(b'\\', line).is_some()
        || (memchr::memchr(b'/', line).is_some() && jsonrpc::may_call_tool(line))
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items(limit: usize, chunks: &[&[u8]]) -> Vec<Item> {
        items_of(Lines::new(limit), chunks)
    }

    fn items_of(mut lines: Lines, chunks: &[&[u8]]) -> Vec<Item> {
        let mut items = Vec::new();
        for chunk in chunks {
            lines.buffer().extend_from_slice(chunk);
            while let Some(item) = lines.next() {
                items.push(item);
            }
        }
        items.extend(lines.finish());
        items
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_and_its_id_kept() {
        let long = format!("{{\"params\":\"{}\",\"id\":\"x\"}}\n", "a".repeat(100));
        let (head, tail) = long.as_bytes().split_at(60);
        assert_eq!(
            items(50, &[b"short\n", head, tail, b"next\n"]),
            [
                Item::Line(Bytes::from_static(b"short\n")),
                Item::Oversized(Oversized {
                    bytes: long.len(),
                    id: Some("\"x\"".into()),
                    asks: false,
                    is_no_success: false,
                }),
                Item::Line(Bytes::from_static(b"next\n")),
            ]
        );
    }

    #[test]
    fn the_memory_of_a_long_line_goes_with_it() {
        for (length, kept) in [(LONG - 1, true), (LONG, false)] {
            let mut lines = Lines::new(2 * LONG);
            lines.buffer().extend_from_slice(&[b'a'; LONG + 1][..length]);
            lines.buffer().extend_from_slice(b"\n");
            let line = lines.next().unwrap();
            assert_eq!(lines.buffer.capacity() > 0, kept, "{length}");
            drop(line);
        }
    }

    #[test]
    fn lines_that_concern_no_call_come_together_and_all_others_alone() {
        let text = |item: Item| match item {
            Item::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        for line in [
            r#"{"id":1,"result":{}}"#,
            r#"{"method":"ping"}"#,
            r#"{"\u0069\u0064":1}"#,
            r#"{"x":{"tool-reliability/guard":true}}"#,
            "{\"\":'tools/call'}",
        ] {
            let stream = format!("{{\"a\":1}}\n[\"b\"]\n{line}\n7\n{{}}\n");
            let split: Vec<_> = items(1000, &[stream.as_bytes()]).into_iter().map(text).collect();
            assert_eq!(split, ["{\"a\":1}\n[\"b\"]\n", &format!("{line}\n"), "7\n{}\n"]);
        }
    }

    #[test]
    fn the_last_line_may_lack_its_newline() {
        assert_eq!(items(50, &[b"a\nb"]).last(), Some(&Item::Line(Bytes::from_static(b"b"))));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_added(
            data: Vec<u8>, cuts in prop::collection::vec(0usize..64, 0..20),
            limit in prop_oneof![Just(usize::MAX), 1usize..40],
        ) {
            let mut rest = &data[..];
            let mut chunks = Vec::new();
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                chunks.push(head);
                rest = tail;
            }
            chunks.push(rest);
            let (mut joined, mut part) = (Vec::new(), 0);
            for item in items_of(Lines::in_parts(limit), &chunks) {
                match item {
                    Item::Line(line) => {
                        prop_assert!(line.len() <= limit && part == 0);
                        joined.extend_from_slice(&line);
                    }
                    Item::Part(bytes) => {
                        part += bytes.len();
                        joined.extend_from_slice(&bytes);
                    }
                    Item::Oversized(line) => {
                        prop_assert_eq!(line.bytes, std::mem::take(&mut part));
                        prop_assert!(line.bytes > limit);
                    }
                }
            }
            prop_assert_eq!(joined, data);
        }

        #[test]
        fn no_more_than_the_limit_and_one_chunk_is_kept(data: Vec<u8>, limit in 1usize..40) {
            let mut lines = Lines::new(limit);
            for chunk in data.chunks(7) {
                lines.buffer().extend_from_slice(chunk);
                while lines.next().is_some() {}
                prop_assert!(lines.buffer.len() <= limit + 7);
            }
        }
    }
}
