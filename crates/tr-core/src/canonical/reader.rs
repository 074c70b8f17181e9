//! The reader: one pass that writes canonical form as it goes, and sorts each object as it closes.
use super::{
    Error, ErrorKind,
    number::write_number,
    rules::Place,
    string::{Name, collapse_whitespace, plain_len, read_escape, write_char},
};
use std::cmp::Ordering;

/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 128;

/// Scratch space.
#[derive(Default)]
pub(super) struct Scratch {
    /// The members of all open objects; those of the innermost come last.
    members: Vec<Member>,
    /// Where an object's members are put in order.
    spare: Vec<u8>,
}

impl Scratch {
    pub(super) const fn new() -> Self {
        Self { members: Vec::new(), spare: Vec::new() }
    }

    pub(super) fn shrink_to(&mut self, bytes: usize) {
        self.members.shrink_to(bytes / size_of::<Member>());
        self.spare.shrink_to(bytes);
    }
}

/// Where in the output a member stands.
struct Member {
    /// Decides most comparisons of names.
    prefix: u64,
    start: usize,
    name_end: usize,
    /// Behind the comma.
    end: usize,
    /// Where in the text its name begins.
    source: usize,
    escaped: bool,
    dropped: bool,
}

impl Member {
    #[inline]
    fn name<'a>(&self, out: &'a [u8]) -> Name<'a> {
        Name { canonical: &out[self.start + 1..self.name_end - 1], escaped: self.escaped }
    }

    #[inline]
    fn cmp(&self, other: &Self, out: &[u8]) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| self.name(out).cmp(other.name(out)))
    }
}

pub(super) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    scratch: &'a mut Scratch,
    out: &'a mut Vec<u8>,
}

impl<'a> Reader<'a> {
    /// `text` must be UTF-8.
    pub(super) fn new(text: &'a [u8], scratch: &'a mut Scratch, out: &'a mut Vec<u8>) -> Self {
        scratch.members.clear();
        Self { text, at: 0, depth: 0, scratch, out }
    }

    /// Reads the whole text.
    pub(super) fn read(mut self, place: Place<'_>) -> Result<(), Error> {
        self.skip_whitespace();
        self.value(place)?;
        self.skip_whitespace();
        match self.text.get(self.at) {
            Some(_) => Err(Error::new(ErrorKind::TrailingData, self.at)),
            None => Ok(()),
        }
    }

    fn value(&mut self, place: Place<'_>) -> Result<(), Error> {
        match self.peek()? {
            b'{' => self.object(place),
            b'[' => self.array(place),
            b'"' if place.loose => self.loose_string(),
            b'"' => self.string().map(|_| ()),
            b'-' | b'0'..=b'9' => {
                self.at = write_number(self.text, self.at, self.out)?;
                Ok(())
            }
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'N' if self.text[self.at..].starts_with(b"NaN") => self.fail(ErrorKind::NotFinite),
            b'I' if self.text[self.at..].starts_with(b"Infinity") => {
                self.fail(ErrorKind::NotFinite)
            }
            _ => self.fail(ErrorKind::UnexpectedByte),
        }
    }

    fn object(&mut self, place: Place<'_>) -> Result<(), Error> {
        self.open(b'{')?;
        let (first, body) = (self.scratch.members.len(), self.out.len());
        let mut more = self.peek()? != b'}';
        while more {
            self.member(place)?;
            more = self.goes_on(b'}')?;
        }
        self.order(first, body)?;
        self.close(b'}');
        Ok(())
    }

    fn member(&mut self, place: Place<'_>) -> Result<(), Error> {
        let (source, start) = (self.at, self.out.len());
        if self.peek()? != b'"' {
            return self.fail(ErrorKind::UnexpectedByte);
        }
        let escaped = self.string()?;
        let name_end = self.out.len();
        self.skip_whitespace();
        self.expect(b':')?;
        self.out.push(b':');
        self.skip_whitespace();

        let name = Name { canonical: &self.out[start + 1..name_end - 1], escaped };
        let place = place.member(|token| name.is(token));
        let dropped = place.dropped;
        let mut member = Member { prefix: 0, start, name_end, end: 0, source, escaped, dropped };
        if let Err(error) = self.value(place) {
            return Err(error.within(&member.name(self.out).to_plain()));
        }
        self.out.push(b',');
        member.end = self.out.len();
        member.prefix = member.name(self.out).prefix(&self.out[start + 1..]);
        self.scratch.members.push(member);
        Ok(())
    }

    /// Brings the members of the object that ends here into order, without those dropped.
    fn order(&mut self, first: usize, body: usize) -> Result<(), Error> {
        let Scratch { members, spare } = &mut *self.scratch;
        let out = &mut *self.out;
        let object = &mut members[first..];
        let ascending = |pair: &[Member]| pair[0].cmp(&pair[1], out).is_lt();
        if !object.windows(2).all(ascending) {
            object.sort_unstable_by(|a, b| a.cmp(b, out).then_with(|| a.source.cmp(&b.source)));
            let repeats = object.windows(2).filter(|pair| !ascending(pair)).map(|pair| &pair[1]);
            if let Some(member) = repeats.min_by_key(|member| member.source) {
                let error = Error::new(ErrorKind::DuplicateName, member.source);
                return Err(error.within(&member.name(out).to_plain()));
            }
        }
        // Members that already follow one another from the start stay where they are.
        let mut kept = object.iter().filter(|member| !member.dropped).peekable();
        let mut end = body;
        while let Some(member) = kept.next_if(|member| member.start == end) {
            end = member.end;
        }
        spare.clear();
        kept.for_each(|member| spare.extend_from_slice(&out[member.start..member.end]));
        out.truncate(end);
        out.extend_from_slice(spare);
        members.truncate(first);
        Ok(())
    }

    fn array(&mut self, place: Place<'_>) -> Result<(), Error> {
        self.open(b'[')?;
        let mut more = self.peek()? != b']';
        let mut index = 0;
        while more {
            let (place, start) = (place.element(index), self.out.len());
            self.value(place).map_err(|error| error.within(&index.to_string()))?;
            self.out.push(b',');
            if place.dropped {
                self.out.truncate(start);
            }
            index += 1;
            more = self.goes_on(b']')?;
        }
        self.close(b']');
        Ok(())
    }

    /// Enters an array or object.
    fn open(&mut self, bracket: u8) -> Result<(), Error> {
        if self.depth == MAX_DEPTH {
            return self.fail(ErrorKind::TooDeep);
        }
        self.depth += 1;
        self.at += 1;
        self.out.push(bracket);
        self.skip_whitespace();
        Ok(())
    }

    /// Steps to the next element, or up to the closing bracket.
    #[inline]
    fn goes_on(&mut self, bracket: u8) -> Result<bool, Error> {
        self.skip_whitespace();
        match self.peek()? {
            b',' => {
                self.at += 1;
                self.skip_whitespace();
                Ok(true)
            }
            byte if byte == bracket => Ok(false),
            _ => self.fail(ErrorKind::UnexpectedByte),
        }
    }

    fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        self.at += 1;
        if self.out.last() == Some(&b',') {
            self.out.pop();
        }
        self.out.push(bracket);
    }

    /// Tells whether the canonical form has escapes.
    #[inline]
    fn string(&mut self) -> Result<bool, Error> {
        let quote = self.at;
        self.at += 1;
        self.at += plain_len(&self.text[self.at..]);
        if let Some(b'"') = self.text.get(self.at) {
            self.at += 1;
            self.out.extend_from_slice(&self.text[quote..self.at]);
            return Ok(false);
        }
        self.out.extend_from_slice(&self.text[quote..self.at]);
        self.string_tail()
    }

    /// Goes on from a backslash or a fault.
    fn string_tail(&mut self) -> Result<bool, Error> {
        let mut escaped = false;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    let (char, next) = read_escape(self.text, self.at)?;
                    escaped |= write_char(char, self.out);
                    self.at = next;
                }
                _ => return self.fail(ErrorKind::ControlCharacter),
            }
            let rest = &self.text[self.at..];
            let len = plain_len(rest);
            self.out.extend_from_slice(&rest[..len]);
            self.at += len;
        }
        self.at += 1;
        self.out.push(b'"');
        Ok(escaped)
    }

    fn loose_string(&mut self) -> Result<(), Error> {
        let start = self.out.len();
        self.string()?;
        let spare = &mut self.scratch.spare;
        spare.clear();
        collapse_whitespace(&self.out[start..], spare);
        self.out.truncate(start);
        self.out.extend_from_slice(spare);
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Error> {
        word.iter().try_for_each(|byte| self.expect(*byte))?;
        self.out.extend_from_slice(word);
        Ok(())
    }

    #[inline]
    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Error> {
        if self.peek()? != byte {
            return self.fail(ErrorKind::UnexpectedByte);
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn peek(&self) -> Result<u8, Error> {
        self.text.get(self.at).copied().ok_or_else(|| Error::new(ErrorKind::UnexpectedEnd, self.at))
    }

    #[cold]
    fn fail<T>(&self, kind: ErrorKind) -> Result<T, Error> {
        Err(Error::new(kind, self.at))
    }
}
