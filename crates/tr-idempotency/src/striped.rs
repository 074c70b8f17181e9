//! A shared thing whose reference counts lie apart.
use std::{array, ops::Deref, sync::Arc};
use tr_core::{STRIPES, stripe};

/// A shared thing with a reference count for each stripe of threads.
///
/// Services are cloned for every call, and one count that all threads change is what keeps them
/// from scaling. The layer and the services that it makes hold all counts; their clones hold the
/// one of the thread that cloned them, and clones of clones stay with it.
#[derive(Debug)]
pub(crate) struct Striped<T> {
    mine: Arc<Arc<T>>,
    all: Option<Arc<[Arc<Arc<T>>; STRIPES]>>,
}

impl<T> Striped<T> {
    pub(crate) fn new(value: T) -> Self {
        let value = Arc::new(value);
        let all: [_; STRIPES] = array::from_fn(|_| Arc::new(value.clone()));
        Self { mine: all[stripe()].clone(), all: Some(Arc::new(all)) }
    }

    /// Another that holds all counts, if this one does.
    pub(crate) fn whole(&self) -> Self {
        Self { mine: self.mine.clone(), all: self.all.clone() }
    }

    pub(crate) fn shared(&self) -> &Arc<T> {
        &self.mine
    }
}

impl<T> Clone for Striped<T> {
    #[inline]
    fn clone(&self) -> Self {
        let mine = self.all.as_ref().map_or(&self.mine, |all| &all[stripe()]);
        Self { mine: mine.clone(), all: None }
    }
}

impl<T> Deref for Striped<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.mine
    }
}
