//! Bytes into lines, with a limit: what is longer is skipped, and its `id` remembered.
use super::scan::IdScan;
use bytes::{Bytes, BytesMut};

/// Splits a stream of bytes at newlines.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: BytesMut,
    /// How far `buffer` is known to hold no newline.
    scanned: usize,
    limit: usize,
    skipping: Option<Skipped>,
}

/// What a stream consists of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A line with its newline, as it came.
    Line(Bytes),
    /// A line over the limit, which was not kept.
    Oversized {
        /// Its length.
        bytes: usize,
        /// The JSON text of its top-level `id`, if it has one.
        id: Option<Box<str>>,
    },
}

#[derive(Debug, Default)]
struct Skipped {
    bytes: usize,
    id: IdScan,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::with_capacity(64 * 1024), scanned: 0, limit, skipping: None }
    }

    /// Where the next bytes go.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(16 * 1024);
        &mut self.buffer
    }

    /// The next item, if the bytes so far hold one.
    pub(crate) fn next(&mut self) -> Option<Item> {
        let newline = memchr::memchr(b'\n', &self.buffer[self.scanned..]);
        let end = newline.map(|at| self.scanned + at + 1);
        match (end, self.skipping.take()) {
            (Some(end), None) if end <= self.limit => {
                self.scanned = 0;
                Some(Item::Line(self.buffer.split_to(end).freeze()))
            }
            (Some(end), skipped) => {
                let mut skipped = skipped.unwrap_or_default();
                self.skip(&mut skipped, end);
                Some(skipped.into())
            }
            (None, skipped) => {
                self.scanned = self.buffer.len();
                if skipped.is_some() || self.scanned > self.limit {
                    let mut skipped = skipped.unwrap_or_default();
                    self.skip(&mut skipped, self.scanned);
                    self.skipping = Some(skipped);
                }
                None
            }
        }
    }

    /// What is left when the stream has ended: a last line without newline, as it came.
    pub(crate) fn finish(&mut self) -> Option<Item> {
        self.scanned = 0;
        match self.skipping.take() {
            Some(skipped) => Some(skipped.into()),
            None if self.buffer.is_empty() => None,
            None => Some(Item::Line(self.buffer.split().freeze())),
        }
    }

    fn skip(&mut self, skipped: &mut Skipped, end: usize) {
        skipped.bytes += end;
        skipped.id.feed(&self.buffer.split_to(end));
        self.scanned = 0;
    }
}

impl From<Skipped> for Item {
    fn from(skipped: Skipped) -> Self {
        Self::Oversized { bytes: skipped.bytes, id: skipped.id.found() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items(limit: usize, chunks: &[&[u8]]) -> Vec<Item> {
        let mut lines = Lines::new(limit);
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
                Item::Oversized { bytes: long.len(), id: Some("\"x\"".into()) },
                Item::Line(Bytes::from_static(b"next\n")),
            ]
        );
    }

    #[test]
    fn the_last_line_may_lack_its_newline() {
        assert_eq!(items(50, &[b"a\nb"]).last(), Some(&Item::Line(Bytes::from_static(b"b"))));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_added(data: Vec<u8>, cuts in prop::collection::vec(0usize..64, 0..20)) {
            let mut rest = &data[..];
            let mut chunks = Vec::new();
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                chunks.push(head);
                rest = tail;
            }
            chunks.push(rest);
            let joined: Vec<u8> = items(usize::MAX, &chunks)
                .into_iter()
                .flat_map(|item| match item {
                    Item::Line(line) => line.to_vec(),
                    Item::Oversized { .. } => unreachable!("no limit"),
                })
                .collect();
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
