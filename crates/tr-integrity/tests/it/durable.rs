//! Sessions with a store: what is there when, and what is told when it is not.
mod calls;
mod conflicts;
mod manage;
mod model;
mod shaky;
mod together;
mod told;

use crate::common::{json as text, message, user};
use shaky::Shaky;
use std::{mem, sync::Mutex};
use tower::{Layer, Service, service_fn};
use tr_core::{
    BoxError, CallInfo, Event, Json, Observer, Params, SessionAction, ToolCall, ToolOutcome,
};
use tr_integrity::{Format, Integrity, IntegrityLayer, Sessions, store::SessionStore};

const FORMAT: Format = Format::AnthropicMessages;

/// A process of its own.
fn process(store: impl SessionStore) -> Sessions {
    Sessions::builder(FORMAT).store(store).build().unwrap()
}

/// A store, and a process with it.
fn alone() -> (Shaky, Sessions) {
    let store = Shaky::default();
    (store.clone(), process(store))
}

/// A store, and two processes with it.
fn both() -> (Shaky, Sessions, Sessions) {
    let (store, one) = alone();
    (store.clone(), one, process(store))
}

/// What an observer is told of the session.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<(String, SessionAction)>>);

impl Observer for Heard {
    fn on_event(&self, call: &CallInfo<'_>, event: &Event<'_>) {
        assert_eq!(call.session, Some("s"));
        let Event::Session { action, .. } = event else { panic!("{event:?}") };
        self.0.lock().unwrap().push((call.tool.into(), *action));
    }
}

impl Heard {
    fn take(&self) -> Vec<(String, SessionAction)> {
        mem::take(&mut self.0.lock().unwrap())
    }

    fn actions(&self) -> Vec<SessionAction> {
        self.take().into_iter().map(|(_, action)| action).collect()
    }
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

async fn says(sessions: &Sessions, text: &str) {
    let message = message(FORMAT, user(text));
    sessions.change("s", |session, _| session.push(message)).await.unwrap();
}
