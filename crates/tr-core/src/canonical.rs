//! Canonical JSON, the digests of it, and the keys made from those.
//!
//! Two texts that ask for the same thing have the same canonical form, and so the same
//! [`Digest`]: members sorted, white space and escapes gone, numbers in their shortest form. This
//! is [RFC 8785](https://www.rfc-editor.org/rfc/rfc8785), except that integers stay exact at any
//! size; the RFC's way through a double would merge neighboring ids beyond 2^53.
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
//! # Features
//!
//! With `keys` there are hashes: digests, keys and fingerprints are computed. Without it they can be stored
//! and compared, and this module has canonical JSON alone.
//!
//! # Limits
//!
//! Nesting ends at [`MAX_DEPTH`]. A [`Canonicalizer`] that is used again allocates nothing once
//! its scratch space has grown. An object's members move once per level above them, so the time
//! is bounded by length times depth.
mod canonicalizer;
mod error;
#[cfg(feature = "interchange")]
pub mod interchange;
mod number;
mod pointer;
mod reader;
mod rules;
mod string;

#[cfg(feature = "input-schema")]
pub(crate) use self::error::escape;
pub use self::{
    canonicalizer::{Canonicalizer, to_string},
    error::{Error, ErrorKind},
    pointer::{Pointer, PointerError},
    reader::MAX_DEPTH,
    rules::{Builder, Rules, VOLATILE},
};
pub use tr_policy::keys::{Digest, Fingerprint, FingerprintKey, HexError, Key};
#[cfg(feature = "keys")]
pub use tr_policy::keys::{KeyParts, KeyScope, KeySource};
