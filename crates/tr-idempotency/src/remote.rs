//! Records in a store: what runs know of them, so that they know neither stores nor bytes.
//!
//! [`local`](crate::local) holds the records of this process in memory. A layer with a store also
//! has a [`Client`](client::Client): a run claims there what it has claimed here, holds the lease
//! ([`Held`](held::Held)) while it runs, and records its end there first. All of it is I/O, and
//! boxed. Each future may be dropped at any await: a claim that may have been granted is then
//! released in a task of its own.
pub(crate) mod background;
pub(crate) mod client;
pub(crate) mod held;
pub(crate) mod obtain;
pub(crate) mod probe;

use std::{future::Future, pin::Pin, time::Duration};
use tr_core::WhenStoreFails;

/// A boxed future.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Boxes a future: beside I/O, or a wait, a box costs nothing.
pub(crate) fn boxed<T>(future: impl Future<Output = T> + Send + 'static) -> Boxed<T> {
    Box::pin(future)
}

/// What runs need of a layer's settings for its store.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// By effect: what to do with a call while the store is unavailable.
    pub(crate) policy: [WhenStoreFails; 3],
    /// How long a recorded success is replayed from memory, without a request.
    pub(crate) memory: Option<Duration>,
    /// Whether the store keeps responses and error texts, and not only states.
    pub(crate) keeps_answers: bool,
    /// The name of the service, for callers without a session.
    pub(crate) instance: Option<Box<str>>,
}

impl Default for Settings {
    fn default() -> Self {
        use WhenStoreFails::{Refuse, Run};
        Self { policy: [Run, Run, Refuse], memory: None, keeps_answers: true, instance: None }
    }
}

/// Whether an end was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Yes,
    /// Not yet: a task retries.
    Later,
    /// No: the claim was lost, or the store refuses.
    No,
}

/// How long recording is retried; the process keeps the response in memory meanwhile.
pub(crate) const TRIED: Duration = Duration::from_secs(600);
