//! Splits an event stream into its events, as bytes: the raw bytes of all pieces, joined, are the input.
use super::{lines::Oversized, scan::IdScan};
use bytes::{Bytes, BytesMut};
use std::{mem::take, ops::Range, time::Duration};

const BOM: &[u8] = b"\xef\xbb\xbf";
/// The longest event id that is kept, in bytes.
const MAX_ID: usize = 4 * 1024;
/// The fields besides the data that say something.
const SHORT: [&[u8]; 3] = [b"id", b"event", b"retry"];

/// Splits a stream of bytes into events.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    buffer: BytesMut,
    /// Where the line begins that has not ended.
    line: usize,
    /// Up to here that line has no end.
    scanned: usize,
    limit: usize,
    /// Whether the last line ended with CR: an LF after it belongs to it.
    after_cr: bool,
    /// Whether the position of a byte order mark was passed.
    begun: bool,
    event: Fields,
    skipping: Option<Box<Skipped>>,
}

/// The fields of the event that is being read.
#[derive(Debug, Default)]
struct Fields {
    data: Data,
    id: Option<Box<str>>,
    retry: Option<Duration>,
    /// Whether its type is another than `message`.
    is_other: bool,
}

/// The data of an event; a single line of it is not copied.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    Line(Range<usize>),
    Joined(Vec<u8>),
}

/// A part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its bytes; those of an event over the limit are not kept.
    pub(crate) raw: Bytes,
    pub(crate) content: Content,
    /// The id of the event, from which the stream can be resumed.
    pub(crate) id: Option<Box<str>>,
    /// How long to wait before the stream is resumed.
    pub(crate) retry: Option<Duration>,
}

/// What a part of the stream says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// An event of type `message`, with this data.
    Message(Bytes),
    /// Comments, fields without data, an event of another type.
    None,
    /// A message over the limit, which was skipped.
    Oversized(Oversized),
}

impl Splitter {
    /// Events of more than `limit` bytes are skipped.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Adds bytes of the stream.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next part, if it is complete.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        if self.skipping.is_some() {
            return self.skip();
        }
        if self.after_cr && self.line == 0 && self.buffer.starts_with(b"\n") {
            // The event before it was complete with the CR. Readers of CRLF hold it back until this LF comes, so
            // that must not wait for the next event.
            self.after_cr = false;
            return Some(self.dispatch(1));
        }
        loop {
            if !self.is_at_line() {
                return None;
            }
            let Some(at) = memchr::memchr2(b'\r', b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                let is_over = self.scanned > self.limit && self.scanned > self.line;
                return if is_over { self.skip() } else { None };
            };
            let line = self.line..self.scanned + at;
            self.after_cr = self.buffer[line.end] == b'\r';
            (self.line, self.scanned) = (line.end + 1, line.end + 1);
            if line.is_empty() {
                return Some(self.dispatch(line.end + 1));
            }
            if self.line > self.limit {
                return self.skip();
            }
            self.field(line);
        }
    }

    /// The bytes of an event that never ended.
    pub(crate) fn rest(&mut self) -> Bytes {
        (self.line, self.scanned) = (0, 0);
        self.event = Fields::default();
        self.buffer.split().freeze()
    }

    /// Steps over an LF after a CR, and a byte order mark; `false` if more bytes are needed for that.
    fn is_at_line(&mut self) -> bool {
        let at_start = self.scanned == self.line;
        if self.after_cr && at_start && self.line < self.buffer.len() {
            self.after_cr = false;
            let lf = usize::from(self.buffer[self.line] == b'\n');
            (self.line, self.scanned) = (self.line + lf, self.scanned + lf);
        }
        if !self.begun {
            let head = &self.buffer[..self.buffer.len().min(BOM.len())];
            if head.len() < BOM.len() && BOM.starts_with(head) {
                return false;
            }
            self.begun = true;
            if head == BOM {
                (self.line, self.scanned) = (BOM.len(), BOM.len());
            }
        }
        true
    }

    fn field(&mut self, line: Range<usize>) {
        let text = &self.buffer[line.clone()];
        let (name, value) = match memchr::memchr(b':', text) {
            Some(colon) => {
                let space = usize::from(text.get(colon + 1) == Some(&b' '));
                (&text[..colon], line.start + colon + 1 + space..line.end)
            }
            None => (text, line.end..line.end),
        };
        let said = &self.buffer[value.clone()];
        match name {
            b"data" => {
                let joined = |first: &[u8]| Data::Joined([first, b"\n", said].concat());
                self.event.data = match take(&mut self.event.data) {
                    Data::None => Data::Line(value),
                    Data::Line(first) => joined(&self.buffer[first]),
                    Data::Joined(mut all) => {
                        all.push(b'\n');
                        all.extend_from_slice(said);
                        Data::Joined(all)
                    }
                };
            }
            _ => self.event.set(name, said),
        }
    }

    fn dispatch(&mut self, end: usize) -> Piece {
        (self.line, self.scanned) = (0, 0);
        let raw = self.buffer.split_to(end).freeze();
        let Fields { data, id, retry, is_other } = take(&mut self.event);
        let content = match data {
            // An event whose data is empty says nothing: it only carries an id.
            Data::Line(range) if !is_other && !range.is_empty() => {
                Content::Message(raw.slice(range))
            }
            Data::Joined(all) if !is_other => Content::Message(all.into()),
            _ => Content::None,
        };
        Piece { raw, content, id, retry }
    }

    /// Skips an event over the limit, from its beginning.
    fn skip(&mut self) -> Option<Piece> {
        let mut skipped = self.skipping.take().unwrap_or_default();
        let end = skipped.feed(&self.buffer);
        drop(self.buffer.split_to(end.unwrap_or(self.buffer.len())));
        (self.line, self.scanned) = (0, 0);
        self.event = Fields::default();
        if end.is_none() {
            self.skipping = Some(skipped);
            return None;
        }
        self.after_cr = skipped.after_cr;
        let Skipped { bytes, scan, has_data, others, .. } = *skipped;
        let Fields { id, retry, is_other, .. } = others;
        let content = if has_data && !is_other {
            Content::Oversized(Oversized::of(bytes, scan))
        } else {
            Content::None
        };
        Some(Piece { raw: Bytes::new(), content, id, retry })
    }
}

impl Fields {
    /// Takes a field other than the data.
    fn set(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"id" => self.id = id(value).or(self.id.take()),
            b"event" => self.is_other = !matches!(value, b"" | b"message"),
            b"retry" => self.retry = retry(value).or(self.retry),
            _ => {}
        }
    }
}

fn id(value: &[u8]) -> Option<Box<str>> {
    let text = std::str::from_utf8(value).ok()?;
    (text.len() <= MAX_ID && !text.contains('\0')).then(|| text.into())
}

fn retry(value: &[u8]) -> Option<Duration> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = digits.then(|| std::str::from_utf8(value).ok()).flatten()?;
    text.parse().ok().map(Duration::from_millis)
}

/// An event over the limit, read byte by byte.
#[derive(Debug, Default)]
struct Skipped {
    /// The length of its data.
    bytes: usize,
    scan: IdScan,
    has_data: bool,
    others: Fields,
    /// Whether a line was begun: an empty one ends the event.
    begun: bool,
    after_cr: bool,
    part: Part,
    /// The beginning of a field's name, or of the value of a short field.
    text: Vec<u8>,
}

#[derive(Debug, Default)]
enum Part {
    #[default]
    Name,
    /// The data, and whether a space at its beginning is none of it.
    Data(bool),
    /// The value of another field that says something, which this is the name of.
    Value(&'static [u8]),
    Other,
}

impl Skipped {
    /// Continues with these bytes; returns the end of the event, if it is among them.
    fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, &byte) in bytes.iter().enumerate() {
            let after_cr = take(&mut self.after_cr);
            match byte {
                b'\n' if after_cr => {}
                b'\r' | b'\n' => {
                    self.after_cr = byte == b'\r';
                    if !self.begun {
                        return Some(at + 1);
                    }
                    self.end_line();
                }
                byte => self.step(byte),
            }
        }
        None
    }

    fn step(&mut self, byte: u8) {
        self.begun = true;
        match &mut self.part {
            Part::Name if byte == b':' => self.end_name(),
            Part::Data(lead) => {
                if !(std::mem::take(lead) && byte == b' ') {
                    self.bytes += 1;
                    self.scan.feed(&[byte]);
                }
            }
            Part::Name | Part::Value(_) if self.text.len() <= MAX_ID + 1 => self.text.push(byte),
            Part::Name | Part::Value(_) | Part::Other => {}
        }
    }

    fn end_name(&mut self) {
        let name = take(&mut self.text);
        let name = name.strip_prefix(BOM).unwrap_or(&name);
        self.part = match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.bytes += 1;
                    self.scan.feed(b"\n");
                }
                Part::Data(true)
            }
            _ => SHORT.into_iter().find(|it| *it == name).map_or(Part::Other, Part::Value),
        };
    }

    fn end_line(&mut self) {
        if matches!(self.part, Part::Name) {
            self.end_name();
        }
        let text = take(&mut self.text);
        let value = text.strip_prefix(b" ").unwrap_or(&text);
        if let Part::Value(name) = take(&mut self.part) {
            self.others.set(name, value);
        }
        self.begun = false;
    }
}

#[cfg(test)]
mod tests;
