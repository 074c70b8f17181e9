//! Records of a response type that cannot be stored.
//! Says: does not define how to record a `Address`
//! Says: write `impl tr_core::StoreResponse<Address> for DefaultPolicy`
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{DefaultPolicy, ResponsePolicy, ToolCall};
use tr_idempotency::IdempotencyLayer;

#[derive(Clone)]
struct Address;
impl ResponsePolicy<Address> for DefaultPolicy {}

fn main() {
    let layer = IdempotencyLayer::builder().build().expect("its defaults");
    let lookups = ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(async |_: ToolCall| Ok::<_, BoxError>(Address)));
    let call = ToolCall::new("lookup", tr_core::Params::empty_object());
    drop(ServiceExt::<ToolCall>::oneshot(lookups, call));
}
