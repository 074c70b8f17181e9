//! Writing canonical JSON.
use super::{
    Error, ErrorKind, Rules,
    reader::{Reader, Scratch},
    rules::Place,
};
use std::cell::RefCell;
use tr_policy::keys::CanonicalForm;

/// Writes canonical JSON, in scratch space that it keeps.
///
/// ```
/// use tr_core::canonical::{Canonicalizer, Rules};
///
/// let (mut canonicalizer, mut out) = (Canonicalizer::new(), Vec::new());
/// canonicalizer.write(r#"{"b": [ ], "a": 0.10}"#, &Rules::exact(), &mut out)?;
/// assert_eq!(out, br#"{"a":0.1,"b":[]}"#);
/// # Ok::<_, tr_core::canonical::Error>(())
/// ```
#[derive(Default)]
pub struct Canonicalizer(Scratch);

impl Canonicalizer {
    /// Without scratch space yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Scratch::new())
    }

    /// Appends the canonical form of `json` to `out`.
    ///
    /// # Errors
    /// If `json` has no canonical form; `out` is then as it was.
    pub fn write(
        &mut self,
        json: impl AsRef<[u8]>,
        rules: &Rules,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let before = out.len();
        let written = self.write_bytes(json.as_ref(), rules, out);
        if written.is_err() {
            out.truncate(before);
        }
        written
    }

    fn write_bytes(&mut self, json: &[u8], rules: &Rules, out: &mut Vec<u8>) -> Result<(), Error> {
        if json.starts_with(b"\xef\xbb\xbf") {
            return Err(Error::new(ErrorKind::ByteOrderMark, 0));
        }
        let place = Place::root(rules);
        let Err(error) = str::from_utf8(json) else {
            return Reader::new(json, &mut self.0, out).read(place);
        };
        // What comes before the bad byte may hold an earlier fault, and says where the byte is.
        let (valid, bad) = json.split_at(error.valid_up_to());
        let kind = match bad {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => ErrorKind::LoneSurrogate,
            _ => ErrorKind::InvalidUtf8,
        };
        match Reader::new(valid, &mut self.0, out).read(place) {
            Err(error) if error.kind() != ErrorKind::UnexpectedEnd => Err(error),
            Err(error) => Err(error.replaced(kind, valid.len())),
            Ok(()) => Err(Error::new(kind, valid.len())),
        }
    }

    /// Gives back scratch space beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.0.shrink_to(bytes);
    }
}

crate::debug_parts! { Canonicalizer, |_it|  }

/// The canonical form of `json`, in which everything counts.
///
/// # Errors
/// If `json` has none.
pub fn to_string(json: impl AsRef<[u8]>) -> Result<String, Error> {
    let mut out = Vec::new();
    Canonicalizer::new().write(json, &Rules::exact(), &mut out)?;
    Ok(String::from_utf8(out).expect("made of UTF-8 and ASCII"))
}

/// Space above this size is given back after use.
const KEPT: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<(Canonicalizer, Vec<u8>)> =
        const { RefCell::new((Canonicalizer::new(), Vec::new())) };
}

/// In scratch space of the thread, so that the digest of a text up to some 60 KiB allocates nothing.
impl CanonicalForm for Rules {
    type Error = Error;

    fn read<T>(&self, text: &[u8], read: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        SCRATCH.with_borrow_mut(|(canonicalizer, out)| {
            let written = canonicalizer.write(text, self, out);
            let result = written.map(|()| read(out));
            out.clear();
            out.shrink_to(KEPT);
            canonicalizer.shrink_to(KEPT);
            result
        })
    }
}
