//! What the layer needs of its neighbours, each under one name.
use tower_service::Service;
use tr_core::{BoxError, Classify, Codec, EffectOf, IdempotencyOf, KeyOf, Progress};

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

/// All that is asked of a request and its response: implemented for everything that answers the
/// single questions.
pub trait Answers<Req, Res, V>:
    KeyOf<Req>
    + EffectOf<Req>
    + Progress<Req>
    + IdempotencyOf<Req>
    + Classify<Res>
    + Codec<Res, Stored = V>
    + Copy
    + Send
    + 'static
{
}

impl<A, Req, Res, V> Answers<Req, Res, V> for A where
    A: KeyOf<Req>
        + EffectOf<Req>
        + Progress<Req>
        + IdempotencyOf<Req>
        + Classify<Res>
        + Codec<Res, Stored = V>
        + Copy
        + Send
        + 'static
{
}
