//! Every pair of layers, and the whole stack, in a task of its own: `tokio::spawn` wants `Send`, and
//! the compiler finds that out without the lifetimes of the types that the block holds across an
//! await.
use bytes::Bytes;
use http_body_util::Full;
use std::{fmt, sync::Arc, time::Duration};
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

const fn is_send<F: Send + 'static>(future: F) -> F {
    future
}

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
        let call = async move {
            let answer = service.ready().await?.call($request()).await?;
            Ok::<_, BoxError>(answer)
        };
        tokio::spawn(is_send(call)).await.unwrap().unwrap();
    }};
}

/// Does so with every ordered pair of these layers around what is inside.
macro_rules! every_pair {
    ($tool:ident, $request:ident: $($layer:ident)*) => {
        every_pair!(@ $tool $request [$($layer)*] $($layer)*)
    };
    (@ $tool:ident $request:ident $inner:tt) => {};
    (@ $tool:ident $request:ident [$($inner:ident)*] $outer:ident $($rest:ident)*) => {
        $(spawns!($outer().layer($inner().layer($tool!())), $request);)*
        every_pair!(@ $tool $request [$($inner)*] $($rest)*);
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
    CheckedLayer::new()
}

fn adapter() -> AdapterLayer {
    AdapterLayer::new()
}

fn hooks() -> HooksLayer {
    let none: [_; 0] = [];
    HooksLayer::new(&Arc::from(none), Place::Call)
}

/// A tool with an error of this type.
macro_rules! tool {
    ($name:ident, $error:ty) => {
        macro_rules! $name {
            () => {
                service_fn(|call: ToolCall| async move {
                    tokio::task::yield_now().await;
                    Ok::<_, $error>(ToolOutcome::success(call.parts().params.clone()))
                })
            };
        }
    };
}
tool!(with_box_error, BoxError);
tool!(with_its_own_error, Down);

/// One whose service has no type of its own, as programs keep them.
macro_rules! boxed {
    () => {
        BoxCloneSyncService::new(with_box_error!())
    };
}

/// An HTTP client with an error of this type.
macro_rules! client {
    ($name:ident, $body:ty, $error:ty) => {
        macro_rules! $name {
            () => {
                service_fn(|req: Request<$body>| async move {
                    tokio::task::yield_now().await;
                    Ok::<_, $error>(Response::new(req.into_body()))
                })
            };
        }
    };
}
client!(client_with_box_error, Full<Bytes>, BoxError);
client!(client_with_its_own_error, Full<Bytes>, Down);
client!(model_with_box_error, String, BoxError);
client!(model_with_its_own_error, String, Down);

macro_rules! of_tool_calls {
    ($($name:ident: $tool:ident;)*) => {$(
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
    layers_around_a_tool_whose_error_is_boxed: with_box_error;
    layers_around_a_tool_with_an_error_of_its_own: with_its_own_error;
    layers_around_a_tool_in_a_box: boxed;
}

macro_rules! of_http_requests {
    ($($name:ident: $client:ident, $request:ident: $($layer:ident)*;)*) => {$(
        #[tokio::test]
        async fn $name() {
            every_pair!($client, $request: $($layer)*);
        }
    )*};
}
of_http_requests! {
    layers_around_a_client_whose_error_is_boxed:
        client_with_box_error, get: telemetry deadline retry breaker attempt_timeout;
    layers_around_a_client_with_an_error_of_its_own:
        client_with_its_own_error, get: telemetry deadline retry breaker attempt_timeout;
    layers_around_a_model_whose_error_is_boxed:
        model_with_box_error, prompt: model_guard deadline retry breaker attempt_timeout;
    layers_around_a_model_with_an_error_of_its_own:
        model_with_its_own_error, prompt: model_guard deadline retry breaker attempt_timeout;
}

#[tokio::test]
async fn the_stack() {
    let stack = ToolStack::default();
    macro_rules! around {
        ($($tool:ident)*) => {$(
            spawns!(stack.service($tool!()), ask);
            let mut folded = ErrorsAsOutcomes::new(stack.service($tool!()));
            let call = async move { folded.ready().await?.call(ask()).await };
            tokio::spawn(is_send(call)).await.unwrap().unwrap();
            let oneshot = stack.service($tool!()).oneshot(ask());
            tokio::spawn(is_send(oneshot)).await.unwrap().unwrap();
        )*};
    }
    around!(with_box_error with_its_own_error boxed);
}
