//! A shop with axum on a free port, and its clients.
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, request::Parts},
    response::{IntoResponse, Response},
    routing::any,
};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tool_reliability::http_server::{HttpBuilder, HttpIdempotencyLayer};

/// What the handler does and has done.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) runs: AtomicUsize,
    /// How many runs have ended, or were dropped.
    pub(crate) gone: AtomicUsize,
    /// An order ends once it has a permit.
    pub(crate) open: Semaphore,
}

impl Shop {
    /// A shop whose orders end at once.
    pub(crate) fn new() -> Arc<Self> {
        let shop = Self::closed();
        shop.open.add_permits(Semaphore::MAX_PERMITS);
        shop
    }

    /// A shop whose orders wait.
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Self { runs: 0.into(), gone: 0.into(), open: Semaphore::new(0) })
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(SeqCst)
    }
}

/// Counts a run when it ends or is dropped.
struct Gone<'s>(&'s Shop);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.gone.fetch_add(1, SeqCst);
    }
}

/// Answers with the status that the request asks for.
async fn order(State(shop): State<Arc<Shop>>, headers: HeaderMap, body: String) -> Response {
    let run = shop.runs.fetch_add(1, SeqCst) + 1;
    let _gone = Gone(&shop);
    shop.open.acquire().await.unwrap().forget();
    if body == "panic" {
        panic!("as the request asks");
    }
    let status = headers.get("x-answer").map_or(201, |it| it.to_str().unwrap().parse().unwrap());
    let headers = [("location", format!("/orders/{run}")), ("set-cookie", "secret=1".into())];
    (StatusCode::from_u16(status).unwrap(), headers, format!("order {run}: {body}")).into_response()
}

pub(crate) fn account(req: &Parts) -> Option<String> {
    Some(req.headers.get("x-account")?.to_str().ok()?.to_owned())
}

pub(crate) fn settings() -> HttpBuilder {
    HttpIdempotencyLayer::builder("shop", account)
}

/// Serves the shop behind the layer. Returns its address.
pub(crate) async fn serve(shop: Arc<Shop>, layer: HttpIdempotencyLayer) -> String {
    let router = Router::new().route("/{*path}", any(order)).with_state(shop).layer(layer);
    serve_router(router).await
}

pub(crate) async fn serve_router(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
    at
}

/// A shop with default settings.
pub(crate) async fn shop() -> (Arc<Shop>, String) {
    let shop = Shop::new();
    let at = serve(shop.clone(), settings().build().unwrap()).await;
    (shop, at)
}

/// An order of Ada's with a key.
pub(crate) fn post(at: &str, key: &str, body: &'static str) -> reqwest::RequestBuilder {
    bare(at, body).header("idempotency-key", key)
}

/// The same without a key.
pub(crate) fn bare(at: &str, body: &'static str) -> reqwest::RequestBuilder {
    reqwest::Client::new().post(format!("{at}/orders")).header("x-account", "ada").body(body)
}

/// What a client got.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn is_replayed(&self) -> bool {
        self.headers.contains_key("idempotency-replayed")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Status, code and `ran` of a problem.
    pub(crate) fn problem(&self) -> (u16, String, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(body["status"], self.status);
        assert!(!body["detail"].as_str().unwrap().is_empty());
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        (self.status, text("code"), text("ran"))
    }
}

/// Status, code and `ran`, as [`Got::problem`] has them.
pub(crate) fn problem(status: u16, code: &str, ran: &str) -> (u16, String, String) {
    (status, code.into(), ran.into())
}

pub(crate) async fn got(request: reqwest::RequestBuilder) -> Got {
    let response: http::Response<reqwest::Body> = request.send().await.unwrap().into();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Got { status: head.status.as_u16(), headers: head.headers, body }
}

/// Waits until it is so.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let waited = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waited).await.expect("it never was so");
}
