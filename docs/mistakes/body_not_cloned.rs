//! Retries of an HTTP request whose body streams.
//! Says: `Stream: Clone` is not satisfied
use http::{Request, Response};
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tr_retry::RetryLayer;

struct Stream;

fn main() {
    let client = ServiceBuilder::new()
        .layer(RetryLayer::default())
        .service(service_fn(async |_: Request<Stream>| Ok::<_, BoxError>(Response::new(()))));
    drop(ServiceExt::<Request<Stream>>::oneshot(client, Request::new(Stream)));
}
