//! Readiness, where all requests have one breaker.
use crate::rig::Heard;
use std::{sync::Arc, time::Duration};
use tokio::time::{advance, timeout};
use tower::{Layer, ServiceExt};
use tr_breaker::{BreakerLayer, CircuitOpen};
use tr_core::{
    BreakerState::{HalfOpen, Open},
    KeyRef, NamedPolicy, find,
};
use tr_testkit::tool::{Scripted, Step};

const SECOND: Duration = Duration::from_secs(1);

fn layer(heard: &Arc<Heard>) -> BreakerLayer<NamedPolicy> {
    let builder = BreakerLayer::builder().policy(NamedPolicy::new("bank")).consecutive_failures(2);
    builder.observer(heard.clone()).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_refuses_although_the_service_is_not_ready() {
    let heard = Arc::new(Heard::default());
    let layer = layer(&heard);
    let tool = Scripted::by(|_, _: &u32| Step::<()>::err("connection refused"));
    let asked = tool.handle();
    let service = layer.layer(tool);
    for _ in 0..2 {
        service.clone().oneshot(1).await.unwrap_err();
    }
    asked.set_capacity(0);
    heard.take();
    let refused = timeout(SECOND, service.clone().oneshot(1)).await.expect("at once").unwrap_err();
    let refused = find::<CircuitOpen>(&*refused).expect("by the breaker");
    assert_eq!((refused.state(), refused.retry_after()), (Open, Some(30 * SECOND)));
    assert_eq!(heard.take().len(), 1);

    // The cooldown ends between readiness and the call: the service has not been asked.
    let mut between = service.clone();
    between.ready().await.unwrap();
    advance(30 * SECOND).await;
    let refused = tower::Service::call(&mut between, 1).await.unwrap_err();
    assert_eq!(find::<CircuitOpen>(&*refused).expect("by the breaker").state(), HalfOpen);

    // A probe waits until the service is ready.
    timeout(SECOND, service.clone().oneshot(1)).await.unwrap_err();
    asked.set_capacity(1);
    service.oneshot(1).await.unwrap_err();
    assert_eq!(asked.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_readiness_counts_as_that_of_a_call() {
    let heard = Arc::new(Heard::default());
    let layer = layer(&heard);
    let tool = Scripted::by(|_, _: &u32| Step::Ok(())).fails_readiness("connection refused");
    let service = layer.layer(tool);
    for _ in 0..2 {
        let error = service.clone().oneshot(1).await.unwrap_err();
        assert_eq!(error.to_string(), "connection refused");
    }
    let breaker = layer.registry().get(KeyRef::new("bank")).expect("it counts");
    assert_eq!(breaker.state(), Open);
    let error = service.oneshot(1).await.unwrap_err();
    assert!(find::<CircuitOpen>(&*error).is_some(), "{error}");
}
