//! A hook that finds out what became of a call of unknown outcome.
use crate::record::DedupeRecord;
use std::{fmt, future::Future, pin::Pin};
use tr_core::canonical::Key;

/// What [`Probe::probe`] releases.
pub type ProbeFuture<'p, V> = Pin<Box<dyn Future<Output = Finding<V>> + Send + 'p>>;

/// Finds out what became of a call of unknown outcome, by asking whoever knows: the payment
/// provider under its [`provider_key`](UnresolvedCall::provider_key), the mail server's log.
///
/// # When to use
///
/// Wherever a mutating tool's effect can be looked up. It is asked when a call meets a record of
/// unknown outcome, by one caller per process while the others wait, and bounded by that caller's
/// deadline and the [`probe_timeout`](crate::Builder::probe_timeout): then nobody knows yet. It
/// must only look. A probe that panics fails the call that asked, which has not run.
///
/// The run that left the record may still be under way: its process was paused, or its lease was
/// lost. A probe that answers [`NotRun`](Finding::NotRun) must know that it cannot come any more;
/// where the provider takes the [epoch](UnresolvedCall::epoch) as a fencing token, it is safe.
pub trait Probe<V>: fmt::Debug + Send + Sync {
    /// Looks.
    fn probe<'p>(&'p self, call: &'p UnresolvedCall) -> ProbeFuture<'p, V>;
}

/// What a probe found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Finding<V> {
    /// It ran, and this is its answer: recorded, and given to all who ask.
    Done(V),
    /// It did not run, and will not: recorded as cancelled, and the caller runs it.
    NotRun,
    /// Nobody knows yet: the caller gets `outcome_unknown`.
    StillUnknown,
}

/// A call of unknown outcome.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnresolvedCall {
    /// The hashed key.
    pub key: Key,
    /// The fencing token of the run that was lost.
    pub epoch: u64,
    /// What is recorded of it.
    pub record: DedupeRecord,
}

impl UnresolvedCall {
    /// The key under which a tool passes the call on to its provider.
    #[must_use]
    pub fn provider_key(&self) -> String {
        self.key.to_string()
    }
}
