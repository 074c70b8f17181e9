//! How a caller takes a call back that somebody else may be running.
use std::{fmt, future::Future, pin::Pin};

/// Tells those who run a call that its caller takes it back.
///
/// Whoever drops a call's future stops waiting for it, no more: where calls have keys, the call runs
/// on for the sake of its record. A withdrawal travels with the call
/// ([`CallParts::cancellation`](crate::CallParts::cancellation)), and ends such a run, too. This crate
/// has no runtime: a program gives the cancellation token of its own.
///
/// ```
/// use std::{future::Future, pin::Pin, sync::Arc};
/// use tokio_util::sync::CancellationToken;
/// use tr_core::{CallParts, Params, Cancellation};
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
/// let mut call = CallParts::new("pay", Params::empty_object());
/// call.cancellation = Some(Arc::new(Token(token.clone())));
/// token.cancel();
/// assert!(call.cancellation.unwrap().is_cancelled());
/// ```
pub trait Cancellation: fmt::Debug + Send + Sync {
    /// Whether the call was taken back.
    fn is_cancelled(&self) -> bool;

    /// Ends once the call is taken back; at once if it was before.
    fn cancelled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
