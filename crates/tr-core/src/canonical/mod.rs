//! Canonical JSON, the digests of it, and the keys made from those.
//!
//! Two texts that ask for the same thing have the same canonical form, and so the same
//! [`Digest`]: members sorted, white space and escapes gone, numbers in their shortest form. This
//! is [RFC 8785](https://www.rfc-editor.org/rfc/rfc8785), except that integers stay exact at any
//! size; the RFC's way through a double would merge neighbouring ids beyond 2^53.
//!
//! # When to use
//!
//! Use [`Digest::of_params`] to tell whether two calls are the same call, [`Key::derive`] to name
//! a call in a store, [`FingerprintKey`] to name either in a log, and [`to_string`] to look at the
//! canonical form.
//!
//! # Example
//!
//! ```
//! use tr_core::canonical::{self, Digest, Rules};
//!
//! assert_eq!(canonical::to_string(r#"{"b": 1.0, "a": "\u0041"}"#)?, r#"{"a":"A","b":1}"#);
//!
//! let rules = Rules::default();
//! assert_eq!(
//!     Digest::of_params(r#"{"id": 9007199254740993, "retryCount": 2}"#, &rules)?,
//!     Digest::of_params(r#"{"id":9007199254740993}"#, &rules)?,
//! );
//! # Ok::<_, canonical::Error>(())
//! ```
//!
//! # What is equal
//!
//! - Names and strings are compared as Unicode text, without normalisation: NFC and NFD differ.
//! - An integer is a token without fraction and exponent, and equals itself only; `-0` is `0`.
//!   Every other number is the double next to it, printed as ECMAScript does: `1.0` is `1`, `1e6`
//!   is `1000000`, and `1e21` stays `1e+21`, apart from the integer of 22 digits.
//! - An absent member, a `null` and an empty string are three different things.
//! - What does not count at all is for [`Rules`] to say.
//!
//! # Errors
//!
//! A text that could mean two things, or none, has no canonical form: see [`ErrorKind`]. An
//! [`Error`] names the byte and the JSON pointer of the fault. The tool did not run.
//!
//! # Limits
//!
//! Nesting ends at [`MAX_DEPTH`]. A [`Canonicalizer`] that is used again allocates nothing once
//! its scratch space has grown. An object's members move once per level above them, so the time
//! is bounded by length times depth.
mod digest;
mod error;
mod fingerprint;
mod hex;
#[cfg(feature = "interchange")]
pub mod interchange;
mod key;
mod number;
mod pointer;
mod reader;
mod rules;
mod scratch;
mod string;

pub use self::{
    digest::Digest,
    error::{Error, ErrorKind},
    fingerprint::{Fingerprint, FingerprintKey},
    hex::HexError,
    key::{Key, KeyParts, KeySource, Scope},
    pointer::{Pointer, PointerError},
    rules::{Builder, Rules, VOLATILE},
};
use self::{
    reader::{Reader, Scratch},
    rules::Place,
};
use std::fmt;

/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 128;

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

impl fmt::Debug for Canonicalizer {
    /// Shows nothing of the scratch space: it holds what was last read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canonicalizer").finish_non_exhaustive()
    }
}

/// The canonical form of `json`, in which everything counts.
///
/// # Errors
/// If `json` has none.
pub fn to_string(json: impl AsRef<[u8]>) -> Result<String, Error> {
    let mut out = Vec::new();
    Canonicalizer::new().write(json, &Rules::exact(), &mut out)?;
    Ok(String::from_utf8(out).expect("made of UTF-8 and ASCII"))
}
