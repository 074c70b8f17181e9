//! `GET /metrics`, as Prometheus scrapes it.
use crate::front::{
    access::secret,
    listener::{OneRequest, bind_for_operator, serve},
};
use anyhow::{Context as _, anyhow, bail};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderValue},
};
use opentelemetry_prometheus::PrometheusExporter;
use prometheus::{Registry, TextEncoder};
use std::{convert::Infallible, future::pending, net::SocketAddr, path::Path, sync::Arc};
use tokio::net::TcpListener;
use tool_reliability::{admin::Access, config::at_home, telemetry::Signals};
use tower::service_fn;

/// A listener that is not served yet.
pub(super) struct Scrape {
    listener: TcpListener,
    registry: Registry,
    access: Access,
}

/// Listens at `address`, which must be a loopback address unless there is a token.
///
/// # Errors
/// If it cannot listen there, or the token cannot be used.
pub(super) async fn bind(
    address: SocketAddr,
    token: Option<&Path>,
) -> anyhow::Result<Option<Scrape>> {
    if token.is_none() && !address.ip().to_canonical().is_loopback() {
        bail!(
            "metrics at {address}: other machines can reach this address: give a token file (--metrics-token-file, [telemetry] metrics_token_file), or use 127.0.0.1"
        );
    }
    let access = match token.map(at_home) {
        None => Access::default(),
        Some(file) => {
            let access = Access::token(&secret(&file)?);
            access.with_context(|| format!("{} holds no usable token", file.display()))?
        }
    };
    let listener = bind_for_operator(address, "--metrics").await?;
    Ok(listener.map(|listener| Scrape { listener, registry: Registry::new(), access }))
}

impl Scrape {
    /// Reads metrics at each scrape.
    pub(super) fn reader(&self) -> anyhow::Result<PrometheusExporter> {
        // Labels are those of the documentation, and no others.
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(self.registry.clone())
            .scope_info_enabled(false);
        exporter.build().map_err(|error| anyhow!("metrics cannot be scraped: {error}"))
    }

    /// Serves scrapes of these signals until it is dropped.
    pub(super) async fn serve(self, signals: Signals) {
        let Self { listener, registry, access } = self;
        let shared = Arc::new((registry, access, signals));
        let answer = move |request| {
            let shared = Arc::clone(&shared);
            async move { Ok::<_, Infallible>(answer(request, &shared).await) }
        };
        let listener = (listener, "metrics_listening");
        serve(listener, OneRequest(service_fn(answer)), pending()).await;
    }
}

/// Answers a request.
async fn answer(
    request: Request<Incoming>,
    (registry, access, signals): &(Registry, Access, Signals),
) -> Response<String> {
    let (head, _) = request.into_parts();
    let (status, body) = if let Err(why) = access.check(&head) {
        (StatusCode::FORBIDDEN, format!("{why}\n"))
    } else if head.uri.path() != "/metrics" {
        (StatusCode::NOT_FOUND, "metrics are at /metrics\n".into())
    } else if ![Method::GET, Method::HEAD].contains(&head.method) {
        (StatusCode::METHOD_NOT_ALLOWED, "use GET\n".into())
    } else {
        signals.refresh().await;
        match TextEncoder::new().encode_to_string(&registry.gather()) {
            Ok(text) => (StatusCode::OK, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let of = HeaderValue::from_static;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, of("text/plain; version=0.0.4; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, of("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, of("nosniff"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, of("GET, HEAD"));
    }
    response
}
