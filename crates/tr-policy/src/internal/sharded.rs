//! A shared value with a reference count per group of threads.
use crate::internal::{STRIPES, stripe};
use std::{
    array, fmt,
    ops::Deref,
    sync::{Arc, Weak},
};

/// A shared value with a reference count for each stripe of threads.
///
/// Services are cloned for every call, and a single count that all threads change does not scale. A
/// layer holds all counts. Its services hold a [`Shard`], whose clones hold the count of the thread that
/// cloned them.
pub struct Sharded<T>(All<T>);

/// A service's reference to a [`Sharded`] value. Once the layer and its services are dropped, clones keep
/// the count that they have.
pub struct Shard<T> {
    mine: Arc<Node<T>>,
    all: Option<All<T>>,
}

type All<T> = Arc<[Arc<Node<T>>; STRIPES]>;

/// Aligned so that no two counts share a cache line, nor a pair of them.
#[repr(align(128))]
struct Node<T> {
    stripe: usize,
    value: Arc<T>,
    all: Weak<[Arc<Node<T>>; STRIPES]>,
}

impl<T> Sharded<T> {
    /// Shares `value`.
    pub fn new(value: T) -> Self {
        let value = Arc::new(value);
        let all = Arc::new_cyclic(|all| {
            array::from_fn(|stripe| {
                Arc::new(Node { stripe, value: value.clone(), all: all.clone() })
            })
        });
        Self(all)
    }

    /// A reference for a new service.
    pub fn shard(&self) -> Shard<T> {
        Shard { mine: self.0[stripe()].clone(), all: Some(self.0.clone()) }
    }
}

impl<T> Clone for Sharded<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Sharded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0[0].value
    }
}

impl<T> Shard<T> {
    /// Switches to this thread's count, so that clones made on this thread are cheap.
    #[inline]
    pub fn settle(&mut self) {
        if self.mine.stripe != stripe() {
            self.mine = self.here();
        }
    }

    /// A reference on this thread's count, for the length of one call.
    #[inline]
    pub fn acquire(&mut self) -> Held<T> {
        self.settle();
        Held(self.mine.clone())
    }

    #[cold]
    fn here(&self) -> Arc<Node<T>> {
        let all = self.all.clone().or_else(|| self.mine.all.upgrade());
        all.map_or_else(|| self.mine.clone(), |all| all[stripe()].clone())
    }
}

/// A reference to a [`Sharded`] value, of one word.
pub struct Held<T>(Arc<Node<T>>);

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

impl<T> Clone for Shard<T> {
    #[inline]
    fn clone(&self) -> Self {
        let mine = if self.mine.stripe == stripe() { self.mine.clone() } else { self.here() };
        Self { mine, all: None }
    }
}

impl<T> Deref for Shard<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.mine.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Sharded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Shard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn each_thread_counts_at_its_own_stripe_and_nothing_leaks() {
        let value = Arc::new(());
        let whole = Sharded::new(value.clone());
        let service = whole.shard();
        let clone = service.clone();
        let theirs = thread::spawn({
            let mut clone = clone.clone();
            move || {
                clone.settle();
                (stripe(), clone.mine.stripe, clone.clone().mine.stripe)
            }
        });
        let (thread, settled, cloned) = theirs.join().unwrap();
        assert_eq!((settled, cloned), (thread, thread));
        assert_ne!(thread, clone.mine.stripe);

        drop((whole, service));
        let orphan = thread::spawn(move || clone.clone().mine.stripe).join().unwrap();
        assert_eq!(orphan, stripe());
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
