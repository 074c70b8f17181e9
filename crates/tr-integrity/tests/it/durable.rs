//! Sessions with a store: what is there when, and what is told when it is not.
mod calls;
mod conflicts;
mod manage;
mod model;
mod shaky;
mod together;
mod told;

use crate::common::{message, user};
use shaky::Shaky;
use tower::{Layer, Service, service_fn};
use tr_core::{BoxError, Json, Params, ToolCall, ToolOutcome};
use tr_integrity::{Format, Integrity, IntegrityLayer, Sessions, store::SessionStore};

const FORMAT: Format = Format::AnthropicMessages;

/// A process of its own.
fn process(store: impl SessionStore) -> Sessions {
    Sessions::builder(FORMAT).store(store).build().unwrap()
}

fn call(id: &str) -> ToolCall {
    ToolCall::new("pay", Params::from_text(r#"{"eur":5}"#).unwrap()).session("s").tool_call_id(id)
}

/// Answers with the id of its call, and has what happens meanwhile happen.
fn tool<F, M>(
    sessions: &Sessions,
    meanwhile: M,
) -> Integrity<
    impl Service<ToolCall, Response = ToolOutcome, Error = BoxError, Future: Send> + Clone + use<F, M>,
>
where
    F: Future<Output = ()> + Send + 'static,
    M: Fn() -> F + Clone + Send,
{
    IntegrityLayer::new(sessions.clone()).layer(service_fn(move |call: ToolCall| {
        let meanwhile = meanwhile();
        async move {
            meanwhile.await;
            let said = format!("\"answer {};\"", call.parts().tool_call_id.as_deref().unwrap());
            Ok(ToolOutcome::success(Json::from_text(&said)?))
        }
    }))
}

/// What a process that starts now finds, as text; it is valid.
async fn found(store: &Shaky) -> String {
    let sessions = process(store.store.clone());
    sessions.load("s").await.unwrap();
    text(&sessions)
}

fn text(sessions: &Sessions) -> String {
    sessions.with("s", |session, _| {
        assert!(session.validate().valid, "{}", session.transcript().to_json());
        session.transcript().to_json()
    })
}

async fn says(sessions: &Sessions, text: &str) {
    let message = message(FORMAT, user(text));
    sessions.change("s", |session, _| session.push(message)).await.unwrap();
}
