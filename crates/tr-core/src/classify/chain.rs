//! Classifies an error by its chain of sources. Layers call [`error`] through their policy
//! ([`ResponsePolicy::classify`](crate::ResponsePolicy::classify)), adapters of tool functions call
//! [`tool_function`].
use super::{
    Finding, Kind, errno, message,
    scan::{Rank, Scan},
    tool_error,
};
use crate::{
    FailureInfo, Ran, ToolError, causes, code::IDEMPOTENCY_IN_FLIGHT, failure_info,
    internal::floor_char_boundary,
};
use std::{
    error::Error,
    fmt::{self, Write},
    io,
};
use tr_policy::classify::{is_load_shed, said_by_layer};

/// How many links of a chain are read in search of a [`ToolError`] or a match.
const LINKS: usize = 16;

/// Classifies an error.
///
/// The outermost [`FailureInfo`](crate::FailureInfo) of the chain decides. Without one, the
/// outermost [`ToolError`] among the first 16 links does or, with the feature `tower`, the outermost
/// refusal of its `load_shed`. Without either, the strongest match among those links does: an
/// [`io::Error`](std::io::Error) matches by its kind, anything else by its message.
///
/// [`Ran::No`] counts only from the outermost error: an error of our own layers,
/// [`NotSent`](crate::NotSent), a [`ToolError`] that sets it, or a `load_shed` refusal. Deeper in the
/// chain, the same error is about a call that the tool itself made, so the result is
/// [`Ran::Unknown`].
///
/// ```
/// use std::io;
/// use tr_core::{NotSent, Ran, classify};
///
/// let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
/// assert_eq!(classify::error(&refused()).end.ran, Ran::Unknown);
/// assert_eq!(classify::error(&NotSent::new(refused())).end.ran, Ran::No);
/// ```
#[must_use]
pub fn error<'e>(error: &'e (dyn Error + 'static)) -> Finding<'e> {
    let (mut found, depth) = outermost(error);
    if depth > 0 {
        found = found.without_proof_of_no_run();
    }
    found
}

/// Whether the tool ran, by whatever error a call ended in: one of a layer, one's own, or a foreign one.
///
/// An error that says nothing of it is [`Ran::Unknown`]: no words in it are taken for evidence. It is what
/// [`error`] finds.
///
/// ```
/// use tr_core::{BoxError, NotSent, Ran, ran};
///
/// let foreign: BoxError = "connection reset by peer".into();
/// assert_eq!(ran(&*foreign), Ran::Unknown);
/// let not_sent: BoxError = NotSent::new("no route to host").into();
/// assert_eq!(ran(&*not_sent), Ran::No);
/// ```
#[must_use]
pub fn ran(error: &(dyn Error + 'static)) -> Ran {
    self::error(error).end.ran
}

/// Classifies an error that a tool function returned, with none of our layers in between.
///
/// Like [`error`], but errors of our layers and refusals of tower's `load_shed` do not prove
/// [`Ran::No`]: the tool may have got them from a call of its own, such as a mail that it sent after
/// the payment. [`NotSent`](crate::NotSent), a [`ToolError`] and the tool's own typed errors still do.
///
/// ```
/// use tr_core::{NotSent, Ran, classify};
///
/// # #[cfg(feature = "tower")] {
/// use tower::load_shed::error::Overloaded;
///
/// assert_eq!(classify::error(&Overloaded::new()).end.ran, Ran::No);
/// assert_eq!(classify::tool_function(&Overloaded::new()).end.ran, Ran::Unknown);
/// # }
/// assert_eq!(classify::tool_function(&NotSent::new("no route")).end.ran, Ran::No);
/// ```
#[must_use]
pub fn tool_function<'e>(failed: &'e (dyn Error + 'static)) -> Finding<'e> {
    let mut found = error(failed);
    let info = failure_info(failed);
    if is_load_shed(failed) || info.is_some_and(FailureInfo::is_by_layer) {
        found = found.without_proof_of_no_run();
    }
    // The key in flight belongs to a call that the tool made: a repeat of this call does not join
    // that one, so it is not retriable.
    found.end.exhausted |= info.is_some() && found.end.code == IDEMPOTENCY_IN_FLIGHT;
    found
}

/// The classification, and the depth of the link that gave it.
fn outermost<'e>(error: &'e (dyn Error + 'static)) -> (Finding<'e>, usize) {
    if let Some(end) = said_by_layer(error, |wrapped| self::error(wrapped).end) {
        return (Finding::judged(end), 0);
    }
    let mut scan = Scan::default();
    for (at, link) in causes(error).enumerate().take(LINKS) {
        if let Some(error) = link.downcast_ref::<ToolError>() {
            return (tool_error(error), at);
        }
        if is_load_shed(link) {
            let mut found = Finding::of(Kind::Overloaded);
            found.end.ran = Ran::No;
            return (found, at);
        }
        scan = scan.or(scan_link(link));
    }
    (scan.finding().unwrap_or(Finding::of(Kind::Unclassified)), 0)
}

/// What a link matches by itself, without its sources.
fn scan_link(link: &(dyn Error + 'static)) -> Scan {
    let kind = link.downcast_ref::<io::Error>().and_then(|error| errno::io_kind(error.kind()));
    if let Some(kind) = kind {
        return Scan::of(Rank::Exact, kind, None);
    }
    let mut head = Head { bytes: [0; 1_024], len: 0 };
    // `Head` returns an error once it is full, so that the rest of the message is not formatted.
    let _ = write!(head, "{link}");
    message::scan(head.text())
}

/// The beginning of a text, on the stack.
struct Head {
    bytes: [u8; 1_024],
    len: usize,
}

impl Head {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("cut between characters")
    }
}

impl Write for Head {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = floor_char_boundary(text, self.bytes.len() - self.len);
        self.bytes[self.len..self.len + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits;
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
