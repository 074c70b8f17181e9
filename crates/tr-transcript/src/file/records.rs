//! Reads JSON lines that a crash may have torn, in bounded memory.
pub use super::piece::{Piece, Record, SkipReason, Skipped};
use super::recover::{self, Cut, Part};
use std::{io, io::Read, mem, ops::Range, str};

/// Longer lines are skipped by default.
const MAX_RECORD: usize = 16 << 20;

/// The minimal size of a read.
const CHUNK: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The first answer that a record of a file in memory gives to a question.
pub(super) fn find_in_records<T>(
    bytes: &[u8],
    mut ask: impl FnMut(&str) -> Option<T>,
) -> Option<T> {
    let mut records = Records::new(bytes).max_record(usize::MAX);
    // Reading a slice cannot fail.
    while let Ok(Some(piece)) = records.next() {
        let Piece::Record(record) = piece else { continue };
        let answer = ask(&record.text);
        if answer.is_some() {
            return answer;
        }
    }
    None
}

/// Reads the records of a file of JSON lines, and reports the bytes that belong to none.
///
/// Tolerates torn lines, runs of NUL bytes, several records on one line, CRLF, a byte order mark,
/// invalid UTF-8, overlong lines and a torn end. Only white space, line ends and the mark lie
/// between the pieces. Memory: twice the longest line, up to the limit, and a copy of a record that
/// is not all UTF-8 or that raw line breaks divide.
///
/// ```
/// use tr_transcript::{Piece, Records};
///
/// let mut records = Records::new(&b"{\"a\":1}{\"b\":2}\n{\"c\":\n"[..]);
/// let mut found = Vec::new();
/// while let Some(piece) = records.next()? {
///     match piece {
///         Piece::Record(record) => found.push(record.text.into_owned()),
///         Piece::Skipped(skipped) => assert_eq!((skipped.offset, skipped.length), (15, 5)),
///     }
/// }
/// assert_eq!(found, [r#"{"a":1}"#, r#"{"b":2}"#]);
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Records<R> {
    read: R,
    max_record: usize,
    buffer: Vec<u8>,
    /// The part of the buffer that is not yet split into pieces.
    rest: Range<usize>,
    /// The rest holds no line end before this position.
    searched: usize,
    /// The file offset of the buffer's start.
    base: u64,
    /// The line of the current parts, and where it begins.
    line: u64,
    /// Whether the line is finished.
    is_line_done: bool,
    /// How many raw line breaks are in its records.
    line_breaks: u64,
    /// How many bytes were searched in vain for the end of a record that line breaks divide.
    futile: usize,
    /// The next part of the line.
    part: Option<Part>,
    /// The stretches that have the parts behind it, the next one last.
    cuts: Vec<Cut>,
    /// Up to where the next part was searched for unreadable bytes, and how many of them were
    /// returned as skipped.
    looked: usize,
    invalid: u64,
    /// Whether a record of the line was returned.
    has_record: bool,
    /// Whether lines that look like a record are returned without parsing them.
    is_trusting: bool,
    /// Whether the line that comes next is parsed all the same.
    is_distrusted: bool,
    /// Bytes that are being skipped and may exceed the buffer.
    skipping: Option<Skipped>,
}

impl<R: Read> Records<R> {
    /// Reads from the beginning of a file. `read` needs no buffering.
    #[must_use]
    pub fn new(read: R) -> Self {
        Self {
            read,
            max_record: MAX_RECORD,
            buffer: Vec::new(),
            rest: 0..0,
            searched: 0,
            base: 0,
            line: 1,
            is_line_done: false,
            line_breaks: 0,
            futile: 0,
            part: None,
            cuts: Vec::new(),
            looked: 0,
            invalid: 0,
            has_record: false,
            is_trusting: false,
            is_distrusted: false,
            skipping: None,
        }
    }

    /// Skips lines that are longer than this many bytes; 16 MiB by default.
    #[must_use]
    pub fn max_record(mut self, bytes: usize) -> Self {
        self.max_record = bytes.max(1);
        self
    }

    /// How many bytes of the file were processed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.base + self.rest.start as u64
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// Those of the file. It may be called again after them.
    #[expect(clippy::should_implement_trait, reason = "a piece borrows from the reader")]
    pub fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        loop {
            if self.part.is_none() {
                self.part = self.cuts.last_mut().and_then(|cut| cut.next(&self.buffer));
            }
            match self.part.take() {
                Some(Part::Promising(at)) => return Ok(Some(self.record(at, true))),
                Some(Part::Record(at)) => {
                    // All unreadable bytes are returned before the record, one run at a time.
                    let unsearched = self.looked.max(at.start)..at.end;
                    let Some((run, why)) = recover::unreadable(&self.buffer, unsearched) else {
                        return Ok(Some(self.record(at, false)));
                    };
                    self.part = Some(Part::Record(at));
                    self.looked = run.end;
                    self.invalid += run.len() as u64;
                    return Ok(Some(self.skipped(&run, why)));
                }
                Some(Part::Skipped(at, why)) => return Ok(Some(self.skipped(&at, why))),
                Some(Part::Far(skipped)) => return Ok(Some(Piece::Skipped(skipped))),
                None if self.cuts.pop().is_some() => {}
                None if !self.advance()? => return Ok(None),
                None => {}
            }
        }
    }

    fn record(&mut self, at: Range<usize>, is_promising: bool) -> Piece<'_> {
        self.looked = 0;
        let (offset, bytes) = (self.base + at.start as u64, &self.buffer[at]);
        Piece::Record(Record {
            offset,
            length: bytes.len() as u64,
            line: self.line,
            invalid: mem::take(&mut self.invalid),
            is_glued: mem::replace(&mut self.has_record, true),
            text: match str::from_utf8(bytes) {
                Ok(text) if self.line_breaks == 0 => text.into(),
                // This is no JSON, so its reader distrusts the line.
                Err(_) if is_promising => "{".into(),
                _ => recover::on_one_line(bytes),
            },
        })
    }

    fn skipped(&self, at: &Range<usize>, why: SkipReason) -> Piece<'static> {
        let (offset, length) = (self.base + at.start as u64, at.len() as u64);
        Piece::Skipped(Skipped { offset, length, line: self.line, why })
    }

    /// From now on, returns lines that look like a record without parsing them.
    pub(super) fn trust(&mut self) {
        self.is_trusting = true;
    }

    /// Takes back the last record, which is invalid JSON; its parts are returned instead.
    pub(super) fn distrust(&mut self, offset: u64, is_glued: bool) {
        self.rest.start = (offset - self.base) as usize;
        self.searched = self.rest.start;
        (self.is_line_done, self.is_distrusted) = (false, true);
        self.has_record = is_glued;
    }

    /// Splits the next stretch without line end or NUL into parts; `false` at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.line += mem::take(&mut self.line_breaks);
        if mem::take(&mut self.is_line_done) {
            self.line += 1;
            self.has_record = false;
        }
        if self.skipping.is_some() {
            return self.skip();
        }
        self.skip_empty_lines();
        let end = loop {
            let unsearched = &self.buffer[self.searched..self.rest.end];
            if let Some(at) = memchr::memchr2(b'\n', 0, unsearched) {
                break self.searched + at;
            }
            self.searched = self.rest.end;
            if self.rest.len() > self.max_record {
                self.begin_skip(SkipReason::TooLong);
                return self.skip();
            }
            if !self.fill()? {
                if self.rest.is_empty() {
                    return Ok(false);
                }
                break self.rest.end;
            }
        };
        if end == self.rest.start && self.buffer[end] == 0 {
            self.begin_skip(SkipReason::Nul);
            return self.skip();
        }
        let length = self.cut(end - self.rest.start)?;
        self.rest.start += length;
        self.end_line();
        Ok(true)
    }

    /// Skips empty lines and begins a new line after each line end.
    fn skip_empty_lines(&mut self) {
        let rest = &self.buffer[self.rest.clone()];
        let ends = rest.iter().take_while(|byte| **byte == b'\n').count();
        self.rest.start += ends;
        self.searched = self.searched.max(self.rest.start);
        self.line += ends as u64;
    }

    /// Skips the line end, if the reader is at one.
    fn end_line(&mut self) {
        if !self.rest.is_empty() && self.buffer[self.rest.start] == b'\n' {
            self.rest.start += 1;
            self.is_line_done = true;
        }
        self.searched = self.rest.start;
    }

    /// Splits this much of the rest into parts, and more if line breaks divide its record. Returns
    /// how much it took.
    fn cut(&mut self, length: usize) -> io::Result<usize> {
        let is_trusting = self.is_trusting && !mem::take(&mut self.is_distrusted);
        let mut start = self.rest.start;
        if self.base == 0 && start == 0 && self.buffer[..length].starts_with(BYTE_ORDER_MARK) {
            start = BYTE_ORDER_MARK.len();
        }
        let at = start..self.rest.start + length;
        if at.len() > self.max_record {
            self.part = Some(Part::Skipped(at, SkipReason::TooLong));
            return Ok(length);
        }
        let at = recover::trim(&self.buffer, at);
        let (before, bytes) = (at.start - self.rest.start, &self.buffer[at.clone()]);
        let is_promising = bytes.starts_with(b"{") && bytes.ends_with(b"}");
        if is_promising && is_trusting {
            self.part = Some(Part::Promising(at));
        } else if is_promising && recover::is_json(bytes) {
            self.part = Some(Part::Record(at));
        } else if let Some(divided) = self.divided(before)? {
            let start = self.rest.start + before;
            let breaks = memchr::memchr_iter(b'\n', &self.buffer[start..start + divided]);
            self.line_breaks = breaks.count() as u64;
            self.part = Some(Part::Record(start..start + divided));
            return Ok(before + divided);
        } else {
            // Reading on may have moved the rest.
            let at = self.rest.start + before..self.rest.start + length;
            self.cuts.push(Cut::of(&self.buffer, at));
        }
        Ok(length)
    }

    /// The length of the record this far behind the start of the rest, if raw line breaks divide it.
    fn divided(&mut self, before: usize) -> io::Result<Option<usize>> {
        if self.futile > recover::EFFORT * (self.position() as usize + self.rest.len()) {
            return Ok(None);
        }
        loop {
            let rest = &self.buffer[self.rest.start + before..self.rest.end];
            let (found, length) = (recover::divided(rest), rest.len());
            match found {
                Ok(record) => return Ok(Some(record)),
                Err(None) if length <= self.max_record && self.fill()? => {}
                Err(searched) => {
                    self.futile += searched.unwrap_or(length);
                    return Ok(None);
                }
            }
        }
    }

    fn begin_skip(&mut self, why: SkipReason) {
        let (offset, line) = (self.position(), self.line);
        self.skipping = Some(Skipped { offset, length: 0, line, why });
    }

    /// Continues to skip, whatever the length.
    fn skip(&mut self) -> io::Result<bool> {
        let why = self.skipping.map(|skipping| skipping.why);
        loop {
            let rest = &self.buffer[self.rest.clone()];
            let end = match why {
                Some(SkipReason::Nul) => rest.iter().position(|&byte| byte != 0),
                _ => memchr::memchr2(b'\n', 0, rest),
            };
            let skipped = end.unwrap_or(rest.len());
            self.rest.start += skipped;
            self.searched = self.rest.start;
            if let Some(skipping) = &mut self.skipping {
                skipping.length += skipped as u64;
            }
            if end.is_some() || !self.fill()? {
                break;
            }
        }
        if let Some(skipped) = self.skipping.take() {
            self.part = Some(Part::Far(skipped));
        }
        self.end_line();
        Ok(true)
    }

    /// Reads more behind the rest; `false` at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        if self.rest.start > 0 {
            self.buffer.copy_within(self.rest.clone(), 0);
            self.base += self.rest.start as u64;
            self.searched -= self.rest.start;
            self.rest = 0..self.rest.len();
        }
        if self.buffer.len() < self.rest.end + CHUNK {
            let doubled = (2 * self.rest.end).min(self.max_record);
            self.buffer.resize(doubled.max(self.rest.end) + CHUNK, 0);
        }
        loop {
            match self.read.read(&mut self.buffer[self.rest.end..]) {
                Ok(read) => {
                    self.rest.end += read;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;
