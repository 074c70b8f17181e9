//! A content filter blocks an answer in the middle of a tool call, without the guard and with it.
//!
//! The agent runs a tool as soon as the model has asked for it, while the answer is still streaming. Then a filter
//! blocks the rest. The agent does not keep the blocked answer, but the tool's result is already in the session,
//! without its use: the provider refuses that session from then on. With the two layers of tr-integrity the same
//! agent continues, and the session keeps the tool's use and result. `cargo run -p examples --example outage`
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use std::{convert::Infallible, fmt::Write, pin::pin, vec};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolOutcome};
use tr_integrity::{Format, IntegrityLayer, ModelGuardLayer, SessionId, Sessions};

type Events = StreamBody<stream::Iter<vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// A fake of Anthropic's API: it validates as that does, and blocks the first answer in its middle.
async fn model(request: Request<String>) -> Result<Response<Events>, BoxError> {
    let request: Value = serde_json::from_str(request.body())?;
    let messages = request["messages"].as_array().ok_or("no messages")?;
    let respond = |status, pieces: Vec<String>| {
        let frames: Vec<_> =
            pieces.into_iter().map(|piece| Ok(Frame::data(Bytes::from(piece)))).collect();
        let mut response = Response::new(StreamBody::new(stream::iter(frames)));
        *response.status_mut() = status;
        Ok(response)
    };
    if let Some(message) = orphan(messages) {
        let error = json!({"type": "invalid_request_error", "message": message});
        let body = json!({"type": "error", "error": error}).to_string();
        return respond(StatusCode::BAD_REQUEST, vec![body]);
    }
    let block = |index, block| json!({"type": "content_block_start", "index": index, "content_block": block});
    let text = |text| json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}});
    let start = json!({"type": "message_start", "message": {"role": "assistant", "content": []}});
    let events = if messages.len() == 1 {
        let error = json!({"type": "invalid_request_error", "message": "Output blocked by content filtering policy"});
        vec![
            start,
            block(
                0,
                json!({"type": "tool_use", "id": "toolu_1", "name": "book_flight", "input": {}}),
            ),
            json!({"type": "content_block_stop", "index": 0}),
            block(1, json!({"type": "text", "text": ""})),
            text("Meanwhile, here is how to"),
            json!({"type": "error", "error": error}),
        ]
    } else {
        let knows = request.to_string().contains("receipt F-1");
        let reply = if knows { "Yes. You are booked, receipt F-1." } else { "Yes." };
        vec![
            start,
            block(0, json!({"type": "text", "text": ""})),
            text(reply),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ]
    };
    respond(StatusCode::OK, events.iter().map(|event| format!("data: {event}\n\n")).collect())
}

/// Checks one of Anthropic's rules: a result's use is in the message before it.
fn orphan(messages: &[Value]) -> Option<String> {
    let ids = |message: &Value, kind, id| -> Vec<String> {
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let blocks = blocks.iter().filter(|block| block["type"] == kind);
        blocks.filter_map(|block| block[id].as_str()).map(Into::into).collect()
    };
    (0..messages.len()).find_map(|at| {
        let uses = at.checked_sub(1).map_or(vec![], |before| ids(&messages[before], "tool_use", "id"));
        let results = ids(&messages[at], "tool_result", "tool_use_id");
        let orphan = results.into_iter().find(|result| !uses.contains(result))?;
        Some(format!("messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {orphan}"))
    })
}

async fn book_flight(_: ToolCall) -> Result<ToolOutcome, BoxError> {
    Ok(ToolOutcome::success(json!("receipt F-1")))
}

/// An agent that keeps its session, and records what happens.
struct Agent {
    sessions: Sessions,
    is_guarded: bool,
    told: String,
}

impl Agent {
    fn push(&self, message: &Value) -> Result<(), BoxError> {
        let message = Format::AnthropicMessages.read(message.to_string())?;
        self.sessions.with("s", |session, _| session.push(message));
        Ok(())
    }

    /// Sends a message to the model, reads its streamed answer, and runs the tools that it asks for.
    async fn say<M, B, T>(&mut self, words: &str, model: M, tool: &T) -> Result<(), BoxError>
    where
        M: Service<Request<String>, Response = Response<B>, Error = BoxError>,
        B: Body<Data = Bytes, Error: Into<BoxError>>,
        T: Service<ToolCall, Response = ToolOutcome, Error = BoxError> + Clone,
    {
        writeln!(self.told, "user:  {words}")?;
        self.push(&json!({"role": "user", "content": words}))?;
        let messages = self.sessions.with("s", |session, _| session.transcript().to_json());
        let mut request =
            Request::post("/v1/messages").body(format!(r#"{{"messages":{messages}}}"#))?;
        request.extensions_mut().insert(SessionId::new("s"));
        let response = model.oneshot(request).await?;

        let status = response.status().as_u16();
        let mut body = pin!(response.into_body());
        let mut said = String::new();
        while let Some(frame) = body.frame().await {
            let data = match frame.map_err(Into::into) {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(error) => return Ok(writeln!(self.told, "agent: {error}")?),
            };
            let event: Value =
                serde_json::from_slice(data.strip_prefix(b"data: ").unwrap_or(&data))?;
            match event["type"].as_str() {
                Some("content_block_start") if event["content_block"]["type"] == "tool_use" => {
                    self.run(&event["content_block"], tool).await?;
                }
                Some("content_block_delta") => {
                    said += event["delta"]["text"].as_str().unwrap_or_default();
                }
                Some("error") => {
                    if !said.is_empty() {
                        writeln!(self.told, "model: {said} …")?;
                    }
                    let message = event["error"]["message"].as_str().unwrap_or_default();
                    writeln!(self.told, "api:   {status} {message}")?;
                }
                Some("message_stop") => {
                    writeln!(self.told, "model: {said}")?;
                    self.push(&json!({"role": "assistant", "content": said}))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn run<T>(&mut self, used: &Value, tool: &T) -> Result<(), BoxError>
    where
        T: Service<ToolCall, Response = ToolOutcome, Error = BoxError> + Clone,
    {
        let [id, name] = ["id", "name"].map(|key| used[key].as_str().unwrap_or_default());
        let call = ToolCall::new(name, Params::empty_object()).session("s").tool_call_id(id);
        let outcome = tool.clone().oneshot(call).await?;
        let result = outcome.content().map_or("nothing", |content| content.get());
        writeln!(self.told, "tool:  {name} ran: {result}")?;
        if self.is_guarded {
            return Ok(()); // The layer around the tool has recorded use and result together.
        }
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": result});
        self.push(&json!({"role": "user", "content": [block]}))
    }
}

const WORDS: [&str; 3] = ["Book my flight.", "Is it booked?", "Are you there?"];

async fn story() -> Result<String, BoxError> {
    let mut told = String::new();
    for is_guarded in [false, true] {
        writeln!(told, "── {} the guard", if is_guarded { "with" } else { "without" })?;
        let sessions = Sessions::new(Format::AnthropicMessages);
        let tool = ServiceBuilder::new()
            .option_layer(is_guarded.then(|| IntegrityLayer::new(sessions.clone())))
            .service(service_fn(book_flight));
        let guarded = ModelGuardLayer::streamed(sessions.clone()).layer(service_fn(model));
        let mut agent = Agent { sessions, is_guarded, told };
        for words in WORDS {
            if is_guarded {
                agent.say(words, guarded.clone(), &tool).await?;
            } else {
                agent.say(words, service_fn(model), &tool).await?;
            }
        }
        told = agent.told;
    }
    Ok(told)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    print!("{}", story().await?);
    Ok(())
}

#[tokio::test]
async fn it_prints_what_the_guide_shows() {
    let guide = include_str!("../docs/integrity.md");
    let told = story().await.unwrap();
    assert!(
        guide.contains(&format!("```text\n{told}```\n")),
        "docs/integrity.md does not show\n{told}"
    );
}
