//! An agent over the wire forms of Anthropic (Messages) and OpenAI (Chat Completions), with retried model calls.
//!
//! A scripted model on loopback is overloaded at first (529, 429 with `Retry-After`), then calls a tool and answers. The
//! model's calls are retried, since they change nothing; the tools are behind the stack, which repeats only what
//! reads. `cargo run -p examples --example model_agent`
use axum::{Router, extract::State, http::StatusCode, response::IntoResponse, routing::post};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::net::TcpListener;
use tool_reliability::ToolStack;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tr_breaker::BreakerLayer;
use tr_core::{BoxError, DefaultPolicy, Effect, Params, PolicyExt, ToolCall, ToolOutcome};
use tr_retry::RetryLayer;
use tr_timeout::AttemptTimeoutLayer;

/// The two forms in which a conversation goes over the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wire {
    Anthropic,
    OpenAi,
}

/// A tool that the model wants to use.
struct Use {
    id: String,
    name: String,
    input: String,
}

impl Wire {
    const fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "/v1/messages",
            Self::OpenAi => "/v1/chat/completions",
        }
    }

    /// The model's message in its response.
    fn message(self, response: &Value) -> Value {
        match self {
            Self::Anthropic => json!({ "role": "assistant", "content": response["content"] }),
            Self::OpenAi => response["choices"][0]["message"].clone(),
        }
    }

    fn uses(self, message: &Value) -> Vec<Use> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = match self {
            Self::Anthropic => &message["content"],
            Self::OpenAi => &message["tool_calls"],
        };
        let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
        let uses = all.iter().filter(|it| it["type"] == "tool_use" || it["type"] == "function");
        uses.map(|it| match self {
            Self::Anthropic => {
                Use { id: text(&it["id"]), name: text(&it["name"]), input: it["input"].to_string() }
            }
            Self::OpenAi => Use {
                id: text(&it["id"]),
                name: text(&it["function"]["name"]),
                input: text(&it["function"]["arguments"]),
            },
        })
        .collect()
    }

    /// The messages that answer all uses of one message.
    fn results(self, results: &[(String, String)]) -> Vec<Value> {
        match self {
            Self::Anthropic => {
                let blocks: Vec<_> = results
                    .iter()
                    .map(|(id, text)| json!({ "type": "tool_result", "tool_use_id": id, "content": text }))
                    .collect();
                vec![json!({ "role": "user", "content": blocks })]
            }
            Self::OpenAi => results
                .iter()
                .map(|(id, text)| json!({ "role": "tool", "tool_call_id": id, "content": text }))
                .collect(),
        }
    }

    fn said(self, message: &Value) -> &str {
        match self {
            Self::Anthropic => message["content"][0]["text"].as_str(),
            Self::OpenAi => message["content"].as_str(),
        }
        .unwrap_or_default()
    }
}

// ── the agent

/// Sends a request and reads the whole answer, so that a timeout covers both.
async fn send(client: reqwest::Client, req: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
    let response = client.execute(reqwest::Request::try_from(req)?).await?;
    let (head, body) = Response::<reqwest::Body>::from(response).into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}

/// Asks the model and runs its tools until it answers.
async fn agent<M, T>(wire: Wire, at: &str, mut model: M, tools: T) -> Result<String, BoxError>
where
    M: Service<Request<Bytes>, Response = Response<Bytes>, Error = BoxError>,
    T: Service<ToolCall, Response = ToolOutcome, Error = BoxError> + Clone,
{
    let mut messages =
        vec![json!({ "role": "user", "content": "Is tea in stock? Then buy some." })];
    loop {
        let body = json!({ "model": "scripted", "max_tokens": 100, "messages": messages });
        let request = Request::post(format!("{at}{}", wire.path()))
            .header("content-type", "application/json")
            .body(Bytes::from(body.to_string()))?;
        let response = model.ready().await?.call(request).await?;
        if !response.status().is_success() {
            return Err(format!("the model answered {}", response.status()).into());
        }
        let message = wire.message(&serde_json::from_slice(response.body())?);
        let uses = wire.uses(&message);
        if uses.is_empty() {
            return Ok(wire.said(&message).to_owned());
        }
        messages.push(message);
        let mut results = Vec::new();
        for used in uses {
            let effect = if used.name == "buy" { Effect::Mutating } else { Effect::ReadOnly };
            let call = ToolCall::new(&*used.name, Params::from_text(used.input)?)
                .effect(effect)
                .session(format!("{wire:?}"))
                .tool_call_id(&*used.id)
                .idempotency_key(&*used.id);
            // A refusal is a result, too: the model reads why.
            let text = match tools.clone().oneshot(call).await {
                Ok(outcome) => outcome.content().map_or("failed", |it| it.get()).to_owned(),
                Err(error) => error.to_string(),
            };
            println!("  {}: {text}", used.name);
            results.push((used.id, text));
        }
        messages.extend(wire.results(&results));
    }
}

// ── what it talks to

static LOOKS: AtomicU32 = AtomicU32::new(0);
static BOUGHT: AtomicU32 = AtomicU32::new(0);

/// Looking fails every other time.
async fn tools(call: ToolCall) -> Result<ToolOutcome, BoxError> {
    if call.parts().tool.label() == "buy" {
        return Ok(ToolOutcome::success(json!({ "order": BOUGHT.fetch_add(1, Relaxed) + 1 })));
    }
    match LOOKS.fetch_add(1, Relaxed) % 2 {
        0 => Err("read ECONNRESET".into()),
        _ => Ok(ToolOutcome::success(json!({ "tea": true }))),
    }
}

/// A scripted model: overloaded for its first request, then one step after another. The last tool call comes twice with
/// one id, as after a lost connection.
async fn model(State((wire, requests)): State<(Wire, Arc<AtomicU32>)>) -> impl IntoResponse {
    let used = |id: &str, name: &str| match wire {
        Wire::Anthropic => {
            json!({ "content": [{ "type": "tool_use", "id": id, "name": name, "input": {} }] })
        }
        Wire::OpenAi => json!({ "choices": [{ "message": { "role": "assistant", "tool_calls": [
            { "type": "function", "id": id, "function": { "name": name, "arguments": "{}" } }
        ] } }] }),
    };
    let body = match requests.fetch_add(1, Relaxed) {
        0 => {
            let status = if wire == Wire::Anthropic { 529 } else { 429 };
            let status = StatusCode::from_u16(status).unwrap_or_default();
            let body = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
            return (status, [("retry-after-ms", "30")], body.to_string());
        }
        1 => used("call_1", "look"),
        2 | 3 => used("call_2", "buy"),
        _ if wire == Wire::Anthropic => {
            json!({ "content": [{ "type": "text", "text": "Bought." }] })
        }
        _ => json!({ "choices": [{ "message": { "role": "assistant", "content": "Bought." } }] }),
    };
    (StatusCode::OK, [("retry-after-ms", "0")], body.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // A model's call changes nothing: a repeat costs tokens, and nothing else.
    let model_calls = DefaultPolicy.read_only();
    let retry = RetryLayer::builder()
        .policy(model_calls)
        .base(Duration::from_millis(5))
        .max_elapsed(Duration::from_secs(300))
        .build()?;
    let stack = ToolStack::default();
    for (n, wire) in [Wire::Anthropic, Wire::OpenAi].into_iter().enumerate() {
        println!("── {wire:?}");
        let requests = Arc::new(AtomicU32::new(0));
        let app =
            Router::new().route(wire.path(), post(model)).with_state((wire, requests.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let at = format!("http://{}", listener.local_addr()?);
        let server = axum::serve(listener, app);
        tokio::spawn(async { server.await });

        let client = reqwest::Client::new();
        let model = ServiceBuilder::new()
            .layer(retry.clone())
            .layer(BreakerLayer::default())
            .layer(AttemptTimeoutLayer::builder().after(Duration::from_secs(120)).build()?)
            .service(service_fn(move |req| send(client.clone(), req)));
        let said = agent(wire, &at, model, stack.service(service_fn(tools))).await?;
        println!("model: {said} ({} requests)", requests.load(Relaxed));
        assert_eq!((&*said, requests.load(Relaxed)), ("Bought.", 5), "one was repeated");
        let bought = u32::try_from(n + 1)?;
        assert_eq!(BOUGHT.load(Relaxed), bought, "once, although the model asked twice");
        assert_eq!(LOOKS.load(Relaxed), 2 * bought, "what reads is repeated");
    }
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
