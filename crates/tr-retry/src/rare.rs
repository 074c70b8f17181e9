//! An optional value that is rarely present.
use std::sync::Arc;

/// A boxed value that is rarely present, in one word.
///
/// The `Arc` is never shared. It is used because dropping an empty one is one comparison, while a
/// `Box` would inline the drop of the value into every call.
#[derive(Debug)]
pub(crate) struct Rare<T>(Option<Arc<T>>);

impl<T> Rare<T> {
    /// No value.
    pub(crate) const NOTHING: Self = Self(None);

    #[inline]
    pub(crate) const fn is_there(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        Arc::get_mut(self.0.as_mut()?)
    }

    pub(crate) fn get_or_insert_with(&mut self, make: impl FnOnce() -> T) -> &mut T {
        let there = self.0.get_or_insert_with(|| Arc::new(make()));
        Arc::get_mut(there).expect("never shared")
    }
}
