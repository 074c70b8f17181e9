//! A hook that looks up the outcome of a call of unknown outcome.
use crate::{end::State, record::DedupeRecord};
use std::{fmt, future::Future, pin::Pin};
use tr_core::canonical::Key;

/// What [`Probe::probe`] releases.
pub type ProbeFuture<'p, V> = Pin<Box<dyn Future<Output = Finding<V>> + Send + 'p>>;

/// Looks up how a call of unknown outcome ended: at the payment provider by its
/// [`provider_key`](UnresolvedCall::provider_key), in the mail server's log.
///
/// # When to use
///
/// Wherever a mutating tool's effect can be looked up. It runs when a call finds a record of
/// unknown outcome, in one caller per process while the others wait. That caller's deadline and the
/// [`probe_timeout`](crate::Builder::probe_timeout) bound it; after a timeout the outcome stays
/// unknown. A probe must only read. A probe that panics fails the call that started it, which has
/// not run.
///
/// The run that left the record may still be running: its process was paused, or its lease was
/// lost. A probe may return [`NotRun`](Finding::NotRun) only if that run can have no effect any
/// more; that holds where the provider checks the [epoch](UnresolvedCall::epoch) as a fencing
/// token.
pub trait Probe<V>: fmt::Debug + Send + Sync {
    /// Looks the outcome up.
    fn probe<'p>(&'p self, call: &'p UnresolvedCall) -> ProbeFuture<'p, V>;
}

/// What a probe found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Finding<V> {
    /// It ran, and this is its response: recorded, and replayed to duplicates.
    Done(V),
    /// It did not run, and will not: recorded as cancelled, and the caller runs it.
    NotRun,
    /// The outcome is still unknown: the caller gets `outcome_unknown`.
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
    /// Its record.
    pub record: DedupeRecord,
}

impl<V> Finding<V> {
    /// The state to record; `None` while the outcome is unknown.
    pub(crate) fn state(self) -> Option<State<V>> {
        match self {
            Self::Done(value) => Some(State::Done(Some(value))),
            Self::NotRun => Some(State::Cancelled(None)),
            Self::StillUnknown => None,
        }
    }
}

impl UnresolvedCall {
    /// The idempotency key that a tool sends to its provider.
    #[must_use]
    pub fn provider_key(&self) -> String {
        self.key.to_string()
    }
}
