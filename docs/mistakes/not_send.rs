//! A tool whose future cannot move between threads, where records may have to finish it in a task.
//! Says: future cannot be sent between threads safely
//! Says: `Rc<()>` which is not `Send`
use std::rc::Rc;
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{ToolCall, ToolOutcome};
use tr_idempotency::IdempotencyLayer;

fn main() {
    let layer = IdempotencyLayer::builder().build().expect("its defaults");
    let tool = ServiceBuilder::new().layer(layer).service(service_fn(|_: ToolCall| async {
        let held = Rc::new(());
        std::future::ready(()).await;
        drop(held);
        Ok::<_, BoxError>(ToolOutcome::default())
    }));
    let call = ToolCall::new("pay", tr_core::Params::empty_object());
    drop(ServiceExt::<ToolCall>::oneshot(tool, call));
}
