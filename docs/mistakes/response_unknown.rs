//! A response type that no policy classifies.
//! Says: `DefaultPolicy` does not say how a `Address` ended
//! Says: write `impl ResponsePolicy<Address> for DefaultPolicy {}`
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tr_breaker::BreakerLayer;
use tr_core::{DefaultPolicy, KeyRef, RequestPolicy};

struct Lookup;
struct Address;
impl RequestPolicy<Lookup> for DefaultPolicy {
    fn key<'r>(&self, _: &'r Lookup) -> KeyRef<'r> {
        KeyRef::new("lookup")
    }
}

fn main() {
    let lookups = ServiceBuilder::new()
        .layer(BreakerLayer::default())
        .service(service_fn(async |_: Lookup| Ok::<_, BoxError>(Address)));
    drop(ServiceExt::<Lookup>::oneshot(lookups, Lookup));
}
