//! Jobs: closures on a connection, and the channels for their results.
use crate::error::{Error, ErrorKind};
use rusqlite::Connection;
use std::{
    any::Any,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::oneshot;

/// A job in a queue.
pub(crate) trait Job: Send {
    /// Runs the work and keeps its result; `false` if it has to be rolled back.
    fn run(&mut self, connection: &Connection) -> bool;

    /// Sends the result, or the error of the commit. Runs the sender's code: the conversion of the
    /// error, and the drop of a result that no task waits for.
    fn answer(self: Box<Self>, fate: Result<(), &Error>);
}

impl dyn Job {
    /// Sends the result; a panic in that concerns only this job.
    pub(crate) fn end(self: Box<Self>, fate: Result<(), &Error>) {
        drop(catch_unwind(AssertUnwindSafe(|| self.answer(fate))));
    }
}

struct Typed<F, T, E> {
    state: State<F, T, E>,
    answer: oneshot::Sender<Result<T, E>>,
}

enum State<F, T, E> {
    Waits(F),
    Ended(Result<T, E>),
    Panicked(Error),
    /// Not started, or started and not ended.
    Lost,
}

/// The future result of a job. Dropping it changes nothing: the job still runs.
///
/// # Errors
///
/// What the job returned, or an [`Error`] if it was not run or not committed.
#[must_use = "the result says whether the job was committed"]
pub struct Pending<T, E = Error>(oneshot::Receiver<Result<T, E>>);

/// A job from a closure, and the future of its result.
pub(crate) fn job<T, E, F>(work: F) -> (Box<dyn Job>, Pending<T, E>)
where
    F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (answer, pending) = oneshot::channel();
    (Box::new(Typed { state: State::Waits(work), answer }), Pending(pending))
}

impl<F, T, E> Job for Typed<F, T, E>
where
    F: FnOnce(&Connection) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let State::Waits(work) = mem::replace(&mut self.state, State::Lost) else { return false };
        // Unwind safe: the changes of a panicked job are rolled back.
        self.state = match catch_unwind(AssertUnwindSafe(|| work(connection))) {
            Ok(end) => State::Ended(end),
            Err(panic) => State::Panicked(Error::saying(ErrorKind::Panicked, message(&*panic))),
        };
        matches!(self.state, State::Ended(Ok(_)))
    }

    fn answer(self: Box<Self>, fate: Result<(), &Error>) {
        let end = match (self.state, fate) {
            (State::Ended(Err(error)), _) => Err(error),
            (State::Panicked(error), _) => Err(error.into()),
            (State::Ended(end), Ok(())) => end,
            (_, Err(error)) => Err(error.clone().into()),
            (_, Ok(())) => Err(Error::closed().into()),
        };
        // The receiver may be gone; the job has run all the same.
        drop(self.answer.send(end));
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

impl<T, E: From<Error>> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Dropped without a result: the queue was closed.
        let closed = |_| Err(Error::closed().into());
        Pin::new(&mut self.0).poll(cx).map(|end| end.unwrap_or_else(closed))
    }
}

impl<T, E> fmt::Debug for Pending<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}
