//! The steps of a scripted tool.

use crate::BoxError;
use std::{error::Error, fmt, sync::Arc, time::Duration};

/// What the tool does on one attempt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step<Res> {
    /// Responds at once.
    Ok(Res),
    /// Fails at once.
    Err(Failure),
    /// Never responds.
    Hang,
    /// Its future panics.
    Panic,
    /// Its `call` panics, before there is a future.
    PanicInCall,
    /// Does the inner step after a delay of tokio's time, woken once by its timer.
    After(Duration, Box<Step<Res>>),
}

impl<Res> Step<Res> {
    /// Fails with `cause`.
    pub fn err(cause: impl Into<BoxError>) -> Self {
        Self::Err(Failure::new(cause))
    }

    /// Continues with `then` after `delay`.
    pub fn after(delay: Duration, then: Self) -> Self {
        Self::After(delay, Box::new(then))
    }
}

/// The error of a scripted tool. It displays as its cause, which is also its `source()`.
///
/// The cause is shared, since a script may fail with it several times.
// Not derived: the source would be the `Arc`, not the cause in it.
#[derive(Clone, Debug)]
pub struct Failure(Arc<dyn Error + Send + Sync>);

impl Failure {
    /// A failure because of `cause`: an error or a message.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self(Arc::from(cause.into()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
