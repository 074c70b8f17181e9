//! Cancellation of a call, also of one that runs on a task of its own.
use std::{fmt, pin::Pin};

/// Tells the layers that run a call that its caller cancelled it.
///
/// Dropping a call's future only stops waiting: a call with a key runs to its end, so that its
/// outcome is recorded. A cancellation is part of the call
/// ([`RequestPolicy::cancellation`](crate::RequestPolicy::cancellation)), and ends such a run, too. This
/// crate has no runtime: a program implements this for its own cancellation token.
///
/// ```
/// use std::{pin::Pin};
/// use tokio_util::sync::CancellationToken;
/// use tr_policy::Cancellation;
///
/// #[derive(Debug)]
/// struct Token(CancellationToken);
///
/// impl Cancellation for Token {
///     fn is_cancelled(&self) -> bool {
///         self.0.is_cancelled()
///     }
///
///     fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
///         Box::pin(self.0.clone().cancelled_owned())
///     }
/// }
///
/// let token = CancellationToken::new();
/// let of_call = Token(token.clone());
/// token.cancel();
/// assert!(of_call.is_cancelled());
/// ```
pub trait Cancellation: fmt::Debug + Send + Sync {
    /// Whether the call was cancelled.
    fn is_cancelled(&self) -> bool;

    /// Completes once the call is cancelled; at once if it already was.
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
