//! Retries of a request type that no policy clones.
//! Says: does not copy a `Lookup` for another attempt
//! Says: write `impl CloneRequest<Lookup> for DefaultPolicy`
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{DefaultPolicy, KeyRef, RequestPolicy, ResponsePolicy};
use tr_retry::RetryLayer;

struct Lookup;
struct Address;
impl RequestPolicy<Lookup> for DefaultPolicy {
    fn key<'r>(&self, _: &'r Lookup) -> KeyRef<'r> {
        KeyRef::new("lookup")
    }
}
impl ResponsePolicy<Address> for DefaultPolicy {}

fn main() {
    let lookups = ServiceBuilder::new()
        .layer(RetryLayer::default())
        .service(service_fn(async |_: Lookup| Ok::<_, BoxError>(Address)));
    drop(ServiceExt::<Lookup>::oneshot(lookups, Lookup));
}
