//! `GET` and `POST /debug/tool-reliability`: the HTTP admin endpoint of a stack.
//!
//! # When to use
//!
//! For operators, beside the program's own traffic: on a listener of its own that only this machine
//! reaches, or behind a token. `tool-guard mcp --admin` has one built in.
//!
//! # Example
//!
//! ```
//! use http::{Method, Request};
//! use http_body_util::{BodyExt, Full};
//! use tool_reliability::{ToolStack, admin::{Admin, PATH, Peer}};
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let stack = ToolStack::default();
//! let admin = Admin::new(&stack);
//!
//! // What a listener does with each request:
//! let mut request = Request::builder().uri(PATH).header("host", "localhost:9000");
//! request.extensions_mut().unwrap().insert(Peer("127.0.0.1:50000".parse()?));
//! let response = admin.oneshot(request.body(Full::<bytes::Bytes>::default())?).await?;
//! assert_eq!(response.status(), 200);
//! let state: serde_json::Value = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
//! assert_eq!(state["records"]["unknown"], 0);
//! # Ok(()) }
//! ```
//!
//! # What can be asked and ordered
//!
//! | | body | answer |
//! |---|---|---|
//! | `GET` | | the mode, and the rollout behind it as a configuration spells it; breakers, counts of records, calls in flight past their lease, calls of unknown outcome; 100 of each |
//! | `POST` | `{"action": "reset", "breaker": "pay"}`, also `force_open`, `disable`, `shadow`, `enforce` | its state then; 404 if there is no such breaker |
//! | | `{"action": "flush", "session": "s-1"}`, also `key`, `tool` | `{"wouldFlush": 3}`: nothing is done yet |
//! | | the same with `"confirm": 3` | `{"flushed": 3}`; 409 and the new number if it is another by now |
//! | | `{"action": "settle", "key": "…", "epoch": 1, "outcome": "did_not_run"}`, or `"done"` with `"output": …` | 404 if no call of unknown outcome has this key and epoch; 409 for `did_not_run` if the call [may still run](tr_idempotency::MayStillRun), unless `"force": true` is added; records in this process are not checked |
//! | | `{"action": "switch", "on": false}` | turns the stack off or on |
//! | | `{"action": "reload"}` | `{"needsRestart": ["retry"]}`; 422 with every mistake, and nothing has changed; 404 if the program has no [configuration](Admin::on_reload) |
//!
//! `tool` means all tools whose label starts so. A flush forgets settled records only: calls in
//! flight and mutating calls of unknown outcome stay. Each order may have `"why": "…"`: it is logged, and a
//! record in a store keeps who [settled](tr_idempotency::Settlement) it, and why.
//!
//! # Who may
//!
//! Without a [token](Admin::token): `GET` from this machine ([`Peer`] says where it comes from),
//! with a `Host` of this machine, so that a web page cannot reach it under a name of its own. Orders are
//! refused (403): any program of this machine could send them, a coding agent's too. With a token: requests
//! with `Authorization: Bearer …`. In either case a request that a browser made for another site is refused. Each order is logged as `admin_change`, each refusal as
//! `admin_refused`, without values that could be secrets.
mod access;
mod act;
mod answer;
mod order;
mod view;

pub use self::access::{Access, Peer, WeakToken};
#[doc(hidden)]
pub use self::access::{is_local as is_local_host, same as is_same_token, without_port};

use self::{act::Reload, answer::Answer};
use crate::{
    ToolStack,
    config::{Live, Reloaded},
};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use std::{
    convert::Infallible,
    error::Error,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;
use tr_core::{ToolManifest, debug_parts, setters};
use tr_telemetry::TARGET;

/// The path of the endpoint.
pub const PATH: &str = "/debug/tool-reliability";

/// The longest request body, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// The admin endpoint of a stack. A clone serves the same stack.
#[derive(Clone)]
pub struct Admin {
    stack: ToolStack,
    access: Arc<Access>,
    reload: Option<Reload>,
    manifests: Option<Manifests>,
}

/// What is known of the tools at this moment.
type Manifests = Arc<dyn Fn() -> Vec<Arc<ToolManifest>> + Send + Sync>;

impl Admin {
    /// Allows requests from this machine only, and only to read: orders need a [token](Self::token).
    #[must_use]
    pub fn new(stack: &ToolStack) -> Self {
        Self { stack: stack.clone(), access: Arc::default(), reload: None, manifests: None }
    }

    /// The same for a stack that runs by a configuration, whose catalog says which tools have
    /// [sensitive](tr_core::ToolManifest::sensitive) fields.
    #[must_use]
    pub fn live(live: &Live) -> Self {
        let of = live.clone();
        Self::new(live.stack()).manifests(move || of.catalog().iter().cloned().collect())
    }

    setters! {
        /// Where to find out which tools have [sensitive](tr_core::ToolManifest::sensitive) fields: of
        /// their failures only the codes are shown. Without it texts are redacted by the usual names
        /// alone.
        fn manifests(manifests: impl Fn() -> Vec<Arc<ToolManifest>> + Send + Sync + 'static) {
            manifests = Some(Arc::new(manifests))
        }

        /// What `{"action": "reload"}` does: reads the configuration and
        /// [applies](crate::config::Live::reload) it, or says what is wrong with it. It runs on the
        /// task that answers, so it must not block for long.
        fn on_reload(reload: impl Fn() -> Result<Reloaded, String> + Send + Sync + 'static) {
            reload = Some(Arc::new(reload))
        }
    }

    /// Allows requests with this token, also orders, from any address. It is compared in constant time.
    ///
    /// # Errors
    /// If it has less than 16 bytes, or is no visible ASCII: a header could not carry it.
    pub fn token(mut self, token: &str) -> Result<Self, WeakToken> {
        self.access = Arc::new(Access::token(token)?);
        Ok(self)
    }
}

debug_parts! { Admin, |it| access = it.access }

impl<B> Service<Request<B>> for Admin
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let admin = self.clone();
        Box::pin(async move { Ok(admin.answer(request).await.into_response()) })
    }
}

impl Admin {
    /// The document that GET answers with. If the store is unreachable, only its part is missing.
    pub async fn state(&self) -> serde_json::Value {
        let tools = self.manifests.as_ref().map(|manifests| manifests()).unwrap_or_default();
        view::state(&self.stack, &tools).await
    }

    async fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        if let Err(why) = self.access.check(&head) {
            tracing::warn!(target: TARGET, event = "admin_refused", why);
            return Answer::error(StatusCode::FORBIDDEN, why);
        }
        if head.uri.path().trim_end_matches('/') != PATH {
            return Answer::error(
                StatusCode::NOT_FOUND,
                format!("not found: the only path is {PATH}"),
            );
        }
        if head.method == Method::GET {
            return Answer::ok(self.state().await);
        }
        if head.method != Method::POST {
            return Answer::error(
                StatusCode::METHOD_NOT_ALLOWED,
                "method not allowed: use GET to read, POST to change",
            );
        }
        // Other content types need no CORS preflight, so a page of another site could send them.
        let is_json = head.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let is_json = is_json.and_then(|it| it.split(';').next());
        if !is_json.is_some_and(|it| it.trim().eq_ignore_ascii_case("application/json")) {
            let why = "send `content-type: application/json`";
            return Answer::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
        let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
            let why = format!("the body is longer than {MAX_BODY} bytes or incomplete");
            return Answer::error(StatusCode::PAYLOAD_TOO_LARGE, why);
        };
        match order::read(&body.to_bytes()) {
            Ok(order) => {
                act::act(&self.stack, self.reload.as_ref(), order, access::peer(&head)).await
            }
            Err(why) => Answer::error(StatusCode::BAD_REQUEST, why.to_string()),
        }
    }
}
