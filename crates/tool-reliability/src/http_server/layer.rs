//! The layer and its settings.
use super::{
    handler::{Handler, RecordRules, is_replayed},
    policy::HttpPolicy,
    recorded::RecordedResponse,
    service::{HttpIdempotency, Principal, Settings},
};
use http::{HeaderName, request::Parts};
use std::{sync::Arc, time::Duration};
use tower_layer::Layer;
use tr_core::{ConfigError, debug_parts, setters};
use tr_idempotency::{Builder, Handle, IdempotencyLayer};

/// Wraps the handlers of an HTTP server in [`HttpIdempotency`]; all services of one layer share one
/// set of records.
#[derive(Clone)]
pub struct HttpIdempotencyLayer {
    records: IdempotencyLayer<HttpPolicy, RecordedResponse>,
    settings: Arc<Settings>,
    kept: RecordRules,
}

impl HttpIdempotencyLayer {
    /// Starts from the defaults.
    ///
    /// `service` names the service: in a store that several services share, keys hold among
    /// processes with the same name. `principal` says whose request it is: a user, an account, a
    /// tenant. Keys hold for one principal, so that no caller gets another one's response. It reads
    /// what authentication outside of the layer left in the request's extensions; a header that the
    /// client may choose is no evidence. A request with a key for which it returns `None` is refused
    /// with 403. A service with one caller returns `Some(String::new())`.
    pub fn builder(
        service: impl Into<Box<str>>,
        principal: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> HttpBuilder {
        HttpBuilder {
            service: service.into(),
            principal: Arc::new(principal),
            records: IdempotencyLayer::builder_for(),
            require_key: false,
            max_wait: Duration::from_secs(10),
            max_request_bytes: 2 << 20,
            kept: RecordRules { max_bytes: 1 << 20, headers: is_replayed },
        }
    }

    /// The handle for listing, settling and clearing records. A record's tool is method and path
    /// (`POST /orders`), its session the principal.
    #[must_use]
    pub fn handle(&self) -> Handle<RecordedResponse> {
        self.records.handle()
    }
}

impl<S> Layer<S> for HttpIdempotencyLayer {
    type Service = HttpIdempotency<S>;

    fn layer(&self, inner: S) -> HttpIdempotency<S> {
        let handler = Handler { inner, kept: self.kept };
        HttpIdempotency::new(self.records.layer(handler), self.settings.clone())
    }
}

debug_parts! { HttpIdempotencyLayer, |it| records = it.records }

/// Configures an [`HttpIdempotencyLayer`].
#[must_use]
pub struct HttpBuilder {
    service: Box<str>,
    principal: Arc<Principal>,
    records: Builder<tr_core::DefaultPolicy, RecordedResponse>,
    require_key: bool,
    max_wait: Duration,
    max_request_bytes: usize,
    kept: RecordRules,
}

impl HttpBuilder {
    setters! {
        /// Sets how records are kept: the store, the times to live and all else of
        /// [`tr_idempotency::Builder`], except its `instance`, `max_wait` and `max_record_bytes`,
        /// which this builder sets. By default records live in this process: 25,000 of them, for 24
        /// hours.
        fn records(records: Builder<tr_core::DefaultPolicy, RecordedResponse>) { records = records }

        /// Sets whether a `POST`, a `PATCH` or a request of an unknown method needs a key; it does
        /// not by default, and passes. If so, one without a key is refused with 400.
        fn require_key(require: bool) { require_key = require }

        /// Sets how long a duplicate waits for the first request's response before it gets 409; 10
        /// s by default. Zero: it gets 409 at once, as the IETF draft has it.
        fn max_wait(wait: Duration) { max_wait = wait }

        /// Sets the most bytes of the body of a request with a key, 2 MiB by default: beyond, it
        /// gets 413. The body is held in memory until the handler has it.
        fn max_request_bytes(bytes: usize) { max_request_bytes = bytes }

        /// Sets the most bytes of a response's body that are recorded, 1 MiB by default. A longer
        /// one reaches its client as it comes, and repeats get 409 with the code `answer_not_kept`.
        fn max_response_bytes(bytes: usize) { kept.max_bytes = bytes }

        /// Sets which headers of a response are recorded and replayed. By default all except those
        /// of the connection, `content-length` and `date`, which the server writes for each
        /// response, and `set-cookie`: cookies are secrets, and the records hold what they replay.
        fn replayed_headers(headers: fn(&HeaderName) -> bool) { kept.headers = headers }
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// If a setting is out of its range; the error lists every such setting.
    pub fn build(self) -> Result<HttpIdempotencyLayer, ConfigError> {
        let Self { service, principal, records, require_key, max_wait, max_request_bytes, kept } =
            self;
        // With the headers, a response may be longer than its body.
        let record = kept.max_bytes.saturating_add(HEADERS);
        let mut records = records.policy(HttpPolicy).instance(service).max_record_bytes(record);
        let waits = !max_wait.is_zero();
        if waits {
            records = records.max_wait(max_wait);
        }
        let settings = Settings { principal, require_key, waits, max_request_bytes };
        Ok(HttpIdempotencyLayer { records: records.build()?, settings: Arc::new(settings), kept })
    }
}

/// Room for a response's headers beside its body.
const HEADERS: usize = 64 << 10;

debug_parts! { HttpBuilder, |it| service = it.service, records = it.records }
