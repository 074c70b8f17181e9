//! Requests that are not tool calls: one of one's own, and HTTP.
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tr_core::{
    Classification, DedupeKey, DefaultPolicy, Effect, End, InvalidKey, KeyRef, Replay,
    RequestPolicy, ResponsePolicy, StoreResponse,
    canonical::{Digest, Key, KeyParts, KeyScope, KeySource},
};
use tr_idempotency::IdempotencyLayer;
use tr_testkit::tool::{Scripted, Step};

#[derive(Clone)]
struct Transfer {
    order: u32,
    cents: u32,
}

impl RequestPolicy<Transfer> for DefaultPolicy {
    fn key<'r>(&self, _: &'r Transfer) -> KeyRef<'r> {
        KeyRef::new("transfer")
    }

    fn effect(&self, _: &Transfer) -> Effect {
        Effect::Mutating
    }

    fn idempotency_key(&self, req: &Transfer) -> Result<Option<DedupeKey>, InvalidKey> {
        let mut key = [0; 32];
        key[28..].copy_from_slice(&req.order.to_le_bytes());
        let digest = Digest::of_bytes(req.cents.to_le_bytes());
        Ok(Some(DedupeKey { key: Key::from_bytes(key), digest }))
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Receipt(usize);

impl ResponsePolicy<Receipt> for DefaultPolicy {
    fn classify<'r>(&self, end: End<'r, Receipt>) -> Classification<'r> {
        end.map_or_else(|error| tr_core::classify::error(error).end, |_| Classification::SUCCESS)
    }
}

impl StoreResponse<Receipt> for DefaultPolicy {
    type Stored = usize;

    fn store(&self, res: &Receipt) -> Option<usize> {
        Some(res.0)
    }

    fn load(&self, stored: usize, _: Replay) -> Receipt {
        Receipt(stored)
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_of_ones_own_needs_no_annotations() {
    let tool =
        Scripted::by(|n, _: &Transfer| Step::after(Duration::from_secs(1), Step::Ok(Receipt(n))));
    let asked = tool.handle();
    let layer = IdempotencyLayer::builder_for().build().unwrap();
    let records = layer.handle();
    let service = ServiceBuilder::new().layer(layer).service(tool);
    for order in 0..500 {
        let transfer = Transfer { order, cents: 5 };
        let both = tokio::join!(
            service.clone().oneshot(transfer.clone()),
            service.clone().oneshot(transfer)
        );
        let receipt = Receipt(order as usize);
        assert_eq!((both.0.unwrap(), both.1.unwrap()), (receipt.clone(), receipt));
    }
    let conflict = service.clone().oneshot(Transfer { order: 0, cents: 6 }).await.unwrap_err();
    assert!(conflict.is::<tr_idempotency::error::Conflict>());
    assert_eq!((asked.calls(), records.counts().records), (500, 500));
}

/// The `Idempotency-Key` header, as Stripe and the IETF draft have it.
#[derive(Clone, Copy)]
struct ByHeader;

type Req = http::Request<&'static str>;
type Res = http::Response<&'static str>;

impl RequestPolicy<Req> for ByHeader {
    fn key<'r>(&self, req: &'r Req) -> KeyRef<'r> {
        DefaultPolicy.key(req)
    }

    fn effect(&self, req: &Req) -> Effect {
        DefaultPolicy.effect(req)
    }

    fn idempotency_key(&self, req: &Req) -> Result<Option<DedupeKey>, InvalidKey> {
        let Some(key) = req.headers().get("idempotency-key") else { return Ok(None) };
        let key = key.to_str().map_err(|_| InvalidKey::new("the key is not ASCII"))?;
        let parts = KeyParts {
            scope: KeyScope::Instance("api"),
            namespace: req.uri().host(),
            tool: req.uri().path(),
            action: Some(req.method().as_str()),
            source: KeySource::Caller(key),
            step: None,
        };
        Ok(Some(DedupeKey { key: Key::derive(&parts), digest: Digest::of_bytes(req.body()) }))
    }
}

impl ResponsePolicy<Res> for ByHeader {
    fn classify<'r>(&self, end: End<'r, Res>) -> Classification<'r> {
        // The service inside is our own handler: whatever it answers, it has begun.
        DefaultPolicy.classify(end).of_handler()
    }
}

impl StoreResponse<Res> for ByHeader {
    type Stored = Res;

    fn store(&self, res: &Res) -> Option<Res> {
        Some(res.clone())
    }

    fn load(&self, mut stored: Res, _: Replay) -> Res {
        stored.headers_mut().insert("idempotent-replayed", "true".parse().expect("ASCII"));
        stored
    }
}

#[tokio::test(start_paused = true)]
async fn http_requests_are_recognized_by_their_header() {
    let layer = IdempotencyLayer::builder_for().policy(ByHeader).build().unwrap();
    let service = ServiceBuilder::new().layer(layer).service(service_fn(|req: Req| async move {
        let status = if req.body().is_empty() { 422 } else { 201 };
        Ok::<_, Infallible>(http::Response::builder().status(status).body("").unwrap())
    }));
    let post = |key: Option<&str>, body| {
        let mut req = http::Request::post("http://bank/transfers").body(body).unwrap();
        if let Some(key) = key {
            req.headers_mut().insert("idempotency-key", key.parse().unwrap());
        }
        service.clone().oneshot(req)
    };
    for (body, status) in [("5", 201), ("", 422)] {
        for replayed in [false, true] {
            let res = post(Some(&format!("key {status}")), body).await.unwrap();
            assert_eq!(res.status(), status);
            assert_eq!(res.headers().contains_key("idempotent-replayed"), replayed);
        }
        let res = post(None, body).await.unwrap();
        assert!(!res.headers().contains_key("idempotent-replayed"));
    }
    assert!(post(Some("key 201"), "6").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_ones_own_has_run_whatever_it_answers() {
    let runs = Arc::new(AtomicUsize::new(0));
    let layer = IdempotencyLayer::builder_for().policy(ByHeader).build().unwrap();
    let counted = runs.clone();
    let service =
        ServiceBuilder::new().layer(layer).service(service_fn(move |req: Req| {
            counted.fetch_add(1, Relaxed);
            let status: u16 = req.body().parse().unwrap();
            async move {
                Ok::<_, Infallible>(http::Response::builder().status(status).body("").unwrap())
            }
        }));
    let statuses: Vec<String> = (400..600).map(|status: u16| status.to_string()).collect();
    for status in &statuses {
        let body: &'static str = status.clone().leak();
        for _ in 0..3 {
            let post = http::Request::post("http://bank/transfers").header("idempotency-key", body);
            let _ = service.clone().oneshot(post.body(body).unwrap()).await;
        }
    }
    assert_eq!(runs.load(Relaxed), statuses.len());
}

/// Nothing says which responses are recorded, and the layer is not called.
#[test]
fn layers_of_tool_calls_need_no_annotation() {
    let default = IdempotencyLayer::default();
    assert_eq!(default.handle().counts().records, 0);
    let built = IdempotencyLayer::builder().build().unwrap();
    assert_eq!(built.handle().counts().records, 0);
}
