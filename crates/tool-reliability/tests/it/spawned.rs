//! Every pair of layers, and the whole stack, in a task of its own: `tokio::spawn` wants `Send`, and
//! the compiler finds that out without the lifetimes of the types that the block holds across an
//! await.
use bytes::Bytes;
use http_body_util::Full;
use std::{fmt, pin::Pin, sync::Arc, time::Duration};
use tool_reliability::{
    ErrorsAsOutcomes, ToolStack,
    adapter::AdapterLayer,
    breaker::BreakerLayer,
    checked::CheckedLayer,
    hooks::{HooksLayer, Place},
    idempotency::IdempotencyLayer,
    integrity::{Format, IntegrityLayer, ModelGuardLayer, Sessions},
    loopguard::LoopGuardLayer,
    retry::RetryLayer,
    telemetry::{Signals, TelemetryLayer},
    timeout::{AttemptTimeoutLayer, DeadlineLayer},
};
use tower::{Layer, Service, ServiceExt, service_fn, util::BoxCloneSyncService};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};

#[derive(Debug)]
struct Down;

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("down")
    }
}

impl std::error::Error for Down {}

type Request<B = Full<Bytes>> = http::Request<B>;
type Response<B = Full<Bytes>> = http::Response<B>;

/// What can be spawned. In a box, so that tokio's part is compiled once.
type Task = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

fn ask() -> ToolCall {
    ToolCall::new("read", Params::empty_object()).session("s").idempotency_key("k")
}

fn get() -> Request {
    Request::new(Full::default())
}

fn prompt() -> Request<String> {
    Request::new(r#"{"messages":[]}"#.to_owned())
}

/// Calls a service in a task. (tower's `Oneshot` has such a bound itself: it is spawned as it is, or
/// made outside of the block.)
macro_rules! spawns {
    ($service:expr, $request:ident) => {{
        let mut service = $service;
        let call: Task = Box::pin(async move {
            service.ready().await?.call($request()).await?;
            Ok(())
        });
        tokio::spawn(call).await.unwrap().unwrap();
    }};
}

/// Does so with every ordered pair of these layers around what is inside.
macro_rules! every_pair {
    ($tool:path, $request:ident: $($layer:ident)*) => {
        every_pair!(@ $tool, $request [$($layer)*] $($layer)*)
    };
    (@ $tool:path, $request:ident $inner:tt) => {};
    (@ $tool:path, $request:ident [$($inner:ident)*] $outer:ident $($rest:ident)*) => {
        $(spawns!($outer().layer($inner().layer($tool())), $request);)*
        every_pair!(@ $tool, $request [$($inner)*] $($rest)*);
    };
}

fn deadline() -> DeadlineLayer {
    DeadlineLayer::builder().per_call(Duration::from_secs(5)).build().unwrap()
}

fn attempt_timeout() -> AttemptTimeoutLayer {
    AttemptTimeoutLayer::default()
}

fn breaker() -> BreakerLayer {
    BreakerLayer::default()
}

fn retry() -> RetryLayer {
    RetryLayer::default()
}

fn telemetry() -> TelemetryLayer {
    TelemetryLayer::call(&Signals::builder().build().unwrap())
}

fn idempotency() -> IdempotencyLayer {
    IdempotencyLayer::builder().build().unwrap()
}

fn integrity() -> IntegrityLayer {
    IntegrityLayer::builder().build()
}

fn loop_guard() -> LoopGuardLayer {
    LoopGuardLayer::default()
}

fn model_guard() -> ModelGuardLayer {
    ModelGuardLayer::new(Sessions::new(Format::AnthropicMessages))
}

fn checked() -> CheckedLayer {
    CheckedLayer
}

fn adapter() -> AdapterLayer {
    AdapterLayer::new()
}

fn hooks() -> HooksLayer {
    let none: [_; 0] = [];
    HooksLayer::new(&Arc::from(none), Place::Call)
}

/// What a tool, or a client, is here: of one type wherever it is used, so that a layer around it is compiled once.
trait Leaf<Q, T, E>:
    Service<Q, Response = T, Error = E, Future: Send> + Clone + Send + Sync + 'static
{
}

impl<S, Q, T, E> Leaf<Q, T, E> for S where
    S: Service<Q, Response = T, Error = E, Future: Send> + Clone + Send + Sync + 'static
{
}

/// A tool with an error of any type.
fn tool<E: 'static>() -> impl Leaf<ToolCall, ToolOutcome, E> {
    service_fn(|call: ToolCall| async move {
        tokio::task::yield_now().await;
        Ok::<_, E>(ToolOutcome::success(call.parts().params.clone()))
    })
}

/// One whose service has no type of its own, as programs keep them.
fn boxed() -> BoxCloneSyncService<ToolCall, ToolOutcome, BoxError> {
    BoxCloneSyncService::new(tool::<BoxError>())
}

/// An HTTP client with bodies and an error of any type.
fn client<B: Send + 'static, E: 'static>() -> impl Leaf<Request<B>, Response<B>, E> {
    service_fn(|req: Request<B>| async move {
        tokio::task::yield_now().await;
        Ok::<_, E>(Response::new(req.into_body()))
    })
}

macro_rules! of_tool_calls {
    ($($name:ident: $tool:path;)*) => {$(
        #[tokio::test]
        async fn $name() {
            every_pair!($tool, ask:
                telemetry hooks integrity loop_guard checked idempotency deadline retry breaker
                attempt_timeout adapter
            );
        }
    )*};
}
of_tool_calls! {
    layers_around_a_tool_whose_error_is_boxed: tool::<BoxError>;
    layers_around_a_tool_with_an_error_of_its_own: tool::<Down>;
    layers_around_a_tool_in_a_box: boxed;
}

macro_rules! of_http_requests {
    ($($name:ident: $client:path, $request:ident: $($layer:ident)*;)*) => {$(
        #[tokio::test]
        async fn $name() {
            every_pair!($client, $request: $($layer)*);
        }
    )*};
}
of_http_requests! {
    layers_around_a_client_whose_error_is_boxed:
        client::<Full<Bytes>, BoxError>, get: telemetry deadline retry breaker attempt_timeout;
    layers_around_a_client_with_an_error_of_its_own:
        client::<Full<Bytes>, Down>, get: telemetry deadline retry breaker attempt_timeout;
    layers_around_a_model_whose_error_is_boxed:
        client::<String, BoxError>, prompt: model_guard deadline retry breaker attempt_timeout;
    layers_around_a_model_with_an_error_of_its_own:
        client::<String, Down>, prompt: model_guard deadline retry breaker attempt_timeout;
}

#[tokio::test]
async fn the_stack() {
    let stack = ToolStack::default();
    macro_rules! around {
        ($($tool:expr)*) => {$(
            spawns!(stack.service($tool), ask);
            spawns!(ErrorsAsOutcomes::new(stack.service($tool)), ask);
            let oneshot = stack.service($tool).oneshot(ask());
            tokio::spawn(oneshot).await.unwrap().unwrap();
        )*};
    }
    around!(tool::<BoxError>() tool::<Down>() boxed());
}
