//! Errors with their sources.
use super::{
    Finding, Kind, errno,
    message::{self, Scan},
    phrases::Rank,
    tool_error,
};
use crate::{Ran, ToolError, error::causes, facts};
use std::{
    error::Error,
    fmt::{self, Write},
    io,
};
use tower::load_shed::error::Overloaded;

/// Sources looked at.
const LINKS: usize = 16;

/// Classifies an error.
///
/// The outermost [`Facts`](crate::Facts) in its chain stand; else the outermost
/// [`ToolError`] is classified, or the refusal of tower's `load_shed`, which has called nothing;
/// else the strongest of what all its links say: an [`io::Error`](std::io::Error) by its kind,
/// anything else by its message.
///
/// ```
/// use std::io;
/// use tr_core::{Ran, classify};
///
/// let error = io::Error::from(io::ErrorKind::ConnectionRefused);
/// assert_eq!(classify::error(&error).end.ran, Ran::No);
/// ```
#[must_use]
pub fn error<'e>(error: &'e (dyn Error + 'static)) -> Finding<'e> {
    if let Some(facts) = facts(error) {
        return Finding::judged(facts.classification());
    }
    let mut scan = Scan::default();
    for link in causes(error).take(LINKS) {
        if let Some(error) = link.downcast_ref::<ToolError>() {
            return tool_error(error);
        }
        if link.is::<Overloaded>() {
            return shed();
        }
        scan = scan.or(of(link));
    }
    scan.finding().unwrap_or(Finding::of(Kind::Unclassified))
}

/// Turned away at the door, which is more than what others say of an overload.
fn shed() -> Finding<'static> {
    let mut found = Finding::of(Kind::Overloaded);
    found.end.ran = Ran::No;
    found
}

fn of(link: &(dyn Error + 'static)) -> Scan {
    let kind = link.downcast_ref::<io::Error>().and_then(|error| errno::io_kind(error.kind()));
    if let Some(kind) = kind {
        return Scan::of(Rank::Exact, kind, None);
    }
    let mut head = Head { bytes: [0; 1_024], len: 0 };
    // It fails once the head is full, which spares writing the rest.
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
        let fits = message::floor_char_boundary(text, self.bytes.len() - self.len);
        self.bytes[self.len..self.len + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits;
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
