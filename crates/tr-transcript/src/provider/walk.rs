//! Walks over JSON in pieces, and keeps only the current position.
use super::evidence::{Evidence, Look, Place, Word, append};
use memchr::memchr2;

/// The number of levels whose kind is tracked; deeper ones are skipped.
const LEVELS: usize = 128;

/// The number of levels whose place is tracked. The places that matter are above, except errors,
/// whose place applies to all deeper levels.
const PLACES: usize = 12;

/// Walks over consecutive JSON values, and passes what matters to the [`Evidence`].
///
/// Lenient: it only looks at brackets, strings and commas.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    at: Position,
    /// How many objects and arrays are open.
    depth: usize,
    /// Whether each of the open ones is an object.
    objects: u128,
    places: [Place; PLACES],
    /// The next string of the object is a member's name.
    expects_name: bool,
    /// The name of the current member; empty where there is none.
    key: Word,
    word: Word,
    /// Whether any value was seen.
    pub(super) is_begun: bool,
    is_broken: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Position {
    /// Between two tokens.
    #[default]
    Gap,
    Text(Look, Escape),
    /// In a number, `true`, `null`, or anything else that is no string.
    Bare,
}

#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    No,
    Begun,
    /// In `\u`, after this many digits of this number.
    Unicode(u8, u32),
}

impl Walk {
    /// Whether all values are complete, and there is at least one.
    pub(super) fn is_whole(&self) -> bool {
        self.is_begun && !self.is_broken && !self.is_inside()
    }

    /// Whether a value is incomplete.
    pub(super) fn is_inside(&self) -> bool {
        self.depth > 0 || matches!(self.at, Position::Text(..))
    }

    pub(super) fn push(&mut self, mut piece: &[u8], evidence: &mut Evidence) {
        while let Some((&byte, rest)) = piece.split_first() {
            piece = match self.at {
                Position::Gap => {
                    self.token(byte, evidence);
                    rest
                }
                Position::Bare => match byte {
                    b',' | b':' | b'"' | b'{' | b'}' | b'[' | b']' | b' ' | b'\t' | b'\r'
                    | b'\n' => {
                        self.at = Position::Gap;
                        evidence.bare(self.place(), &self.key, &self.word);
                        piece
                    }
                    _ => {
                        append(&mut self.word, [byte]);
                        rest
                    }
                },
                // Most of an answer is text.
                Position::Text(look, Escape::No) => {
                    let end = memchr2(b'"', b'\\', piece).unwrap_or(piece.len());
                    self.read(&piece[..end], look, evidence);
                    let Some(&byte) = piece.get(end) else { return };
                    self.inside(byte, look, Escape::No, evidence);
                    &piece[end + 1..]
                }
                Position::Text(look, escape) => {
                    self.inside(byte, look, escape, evidence);
                    rest
                }
            };
        }
    }

    fn token(&mut self, byte: u8, evidence: &mut Evidence) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' => self.open(byte == b'{', evidence),
            b'}' | b']' => self.close(byte == b'}', evidence),
            b',' => self.expects_name = self.is_in_object(),
            b':' => self.expects_name = false,
            b'"' if self.expects_name => {
                self.word.clear();
                self.at = Position::Text(Look::Name, Escape::No);
            }
            b'"' => {
                let look = self.place().look(&self.key);
                self.begin_value();
                self.at = Position::Text(look, Escape::No);
                if look == Look::Search {
                    evidence.search.begin();
                }
            }
            _ => {
                self.is_broken |= self.expects_name;
                self.begin_value();
                append(&mut self.word, [byte]);
                self.at = Position::Bare;
            }
        }
    }

    fn begin_value(&mut self) {
        self.is_begun = true;
        self.word.clear();
    }

    /// The end of a string, or a byte of an escape.
    fn inside(&mut self, byte: u8, look: Look, escape: Escape, evidence: &mut Evidence) {
        let next = match (escape, byte) {
            (Escape::No, b'"') => {
                self.at = Position::Gap;
                if look == Look::Name {
                    self.key = std::mem::take(&mut self.word);
                    return;
                }
                return evidence.text(self.place(), &self.key, look, &self.word);
            }
            (Escape::No, b'\\') => Escape::Begun,
            (Escape::Begun, b'u') => Escape::Unicode(0, 0),
            (Escape::Unicode(digits, number), _) => {
                let number = number << 4 | char::from(byte).to_digit(16).unwrap_or(0);
                if digits < 3 {
                    Escape::Unicode(digits + 1, number)
                } else {
                    let char = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
                    self.read(char.encode_utf8(&mut [0; 4]).as_bytes(), look, evidence);
                    Escape::No
                }
            }
            _ => {
                let byte = if matches!(byte, b'n' | b'r' | b't') { b' ' } else { byte };
                self.read(&[byte], look, evidence);
                Escape::No
            }
        };
        self.at = Position::Text(look, next);
    }

    fn read(&mut self, text: &[u8], look: Look, evidence: &mut Evidence) {
        match look {
            Look::Name | Look::Word => append(&mut self.word, text.iter().copied()),
            Look::Search => evidence.search.push(text),
        }
    }

    fn open(&mut self, is_object: bool, evidence: &mut Evidence) {
        self.is_broken |= self.expects_name;
        self.is_begun = true;
        let outer = self.place();
        let place = match self.depth {
            0 => Place::Root,
            _ if self.is_in_object() => outer.of_member(&self.key),
            _ => outer,
        };
        if self.depth < LEVELS {
            let level = 1 << self.depth;
            self.objects = if is_object { self.objects | level } else { self.objects & !level };
        }
        self.depth += 1;
        if let Some(slot) = self.places.get_mut(self.depth - 1) {
            *slot = place;
        }
        (self.expects_name, self.key) = (is_object && self.depth <= LEVELS, Word::default());
        evidence.open(outer, place, is_object);
    }

    fn close(&mut self, is_object: bool, evidence: &mut Evidence) {
        let is_known = self.depth <= LEVELS;
        if self.depth == 0 || is_known && is_object != self.is_in_object() {
            self.is_broken = true;
            return;
        }
        let place = self.place();
        self.depth -= 1;
        (self.expects_name, self.key) = (false, Word::default());
        if place == Place::Root && is_object {
            evidence.end_of_root();
        }
    }

    fn is_in_object(&self) -> bool {
        (1..=LEVELS).contains(&self.depth) && self.objects >> (self.depth - 1) & 1 == 1
    }

    /// The place of the innermost open object or array.
    fn place(&self) -> Place {
        let inner = self.depth.min(PLACES).checked_sub(1);
        inner.map_or(Place::Other, |inner| self.places[inner])
    }
}
