//! The trait bounds of the layer, each under one name.
use tower_service::Service;
use tr_core::{BoxError, RequestPolicy, ResponsePolicy, StoreResponse};

/// A service whose call can outlive its caller: implemented for every service that is `Clone`,
/// `Send` and `'static`, with a response and a future that are `Send` and `'static`.
pub trait Detachable<Req>:
    Service<Req, Response: Send + 'static, Error: Into<BoxError>, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
}

impl<S, Req> Detachable<Req> for S where
    S: Service<Req, Response: Send + 'static, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// All policies that the layer asks about a request and its response: implemented for every type
/// that implements each of them.
pub trait Answers<Req, Res, V>:
    RequestPolicy<Req> + ResponsePolicy<Res> + StoreResponse<Res, Stored = V> + Copy + Send + 'static
{
}

impl<A, Req, Res, V> Answers<Req, Res, V> for A where
    A: RequestPolicy<Req>
        + ResponsePolicy<Res>
        + StoreResponse<Res, Stored = V>
        + Copy
        + Send
        + 'static
{
}
