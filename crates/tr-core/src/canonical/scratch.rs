//! Scratch space of the thread, so that digests and keys allocate nothing.
use super::Canonicalizer;
use std::cell::RefCell;

/// Space above this size is given back after use.
const KEPT: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<(Canonicalizer, Vec<u8>)> =
        const { RefCell::new((Canonicalizer::new(), Vec::new())) };
}

/// Lends a canonicalizer and an empty buffer.
pub(super) fn with<T>(f: impl FnOnce(&mut Canonicalizer, &mut Vec<u8>) -> T) -> T {
    SCRATCH.with_borrow_mut(|(canonicalizer, out)| {
        out.clear();
        let result = f(canonicalizer, out);
        out.clear();
        out.shrink_to(KEPT);
        canonicalizer.shrink_to(KEPT);
        result
    })
}
