//! A request type that no policy reads.
//! Says: `DefaultPolicy` does not say what a `Lookup` is
//! Says: write `impl RequestPolicy<Lookup> for DefaultPolicy` with the method `key`
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tr_breaker::BreakerLayer;
use tr_core::{DefaultPolicy, ResponsePolicy};

struct Lookup;
struct Address;
impl ResponsePolicy<Address> for DefaultPolicy {}

fn main() {
    let lookups = ServiceBuilder::new()
        .layer(BreakerLayer::default())
        .service(service_fn(async |_: Lookup| Ok::<_, BoxError>(Address)));
    drop(ServiceExt::<Lookup>::oneshot(lookups, Lookup));
}
