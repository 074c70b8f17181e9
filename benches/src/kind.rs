//! The kinds of requests that layers are measured with.
use std::fmt::Debug;
use tower::Service;
use tr_core::{BoxError, CloneRequest, RequestPolicy, ResponsePolicy, StoreResponse};

/// A request, the leaf service that answers it at once, and the policy that our layers read it by.
pub trait Kind: 'static {
    /// How reports name it.
    const NAME: &'static str;

    /// The request.
    type Request: Clone + Send + Sync + 'static;

    /// The answer.
    type Answer: Clone + Send + Sync + 'static;

    /// The leaf's error, which does not happen.
    type Error: Into<BoxError> + Clone + Debug + Send + Sync + 'static;

    /// The leaf.
    type Leaf: Service<Self::Request, Response = Self::Answer, Error = Self::Error, Future: Send>
        + Copy
        + Default
        + Send
        + Sync
        + 'static;

    /// How our layers read requests and answers.
    type Policy: RequestPolicy<Self::Request>
        + ResponsePolicy<Self::Answer>
        + CloneRequest<Self::Request>
        + Copy
        + Default
        + Send
        + Sync
        + 'static;

    /// The same request each time.
    fn same() -> impl FnMut() -> Self::Request + 'static;
}

/// One whose repeats are recognized by a key.
pub trait Keyed: Kind<Policy: StoreResponse<<Self as Kind>::Answer>> {
    /// Requests with keys of their own.
    fn unique() -> impl FnMut() -> Self::Request + 'static;

    /// The key of a request.
    fn key(request: &Self::Request) -> [u8; 32];
}
