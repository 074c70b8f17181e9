//! The loop guard around a request type whose params it cannot compare.
//! Says: write `impl tr_core::LoopPolicy<Lookup, Address> for DefaultPolicy`
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{DefaultPolicy, KeyRef, RequestPolicy, ResponsePolicy};
use tr_loopguard::LoopGuardLayer;

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
        .layer(LoopGuardLayer::default())
        .service(service_fn(async |_: Lookup| Ok::<_, BoxError>(Address)));
    drop(ServiceExt::<Lookup>::oneshot(lookups, Lookup));
}
