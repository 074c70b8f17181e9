//! An agent's loop with the stack and the model guard; its model repeats `read({})`.
//!
//! The agent keeps its session, runs its tools through the ready stack, and asks its model through the model guard.
//! The tool refuses `read({})`; the second failure ends in `[LOOP DETECTED]`, and the third call is not executed. Its
//! use is already in the session, and the refusal answers it there: the model reads the reason, and its next call is
//! accepted. `cargo run -p examples --example agent_loop`
use serde_json::{Value, json};
use std::{fmt::Write, future::ready};
use tool_reliability::{
    ToolStack,
    integrity::{Format, ModelCall, ModelGuardLayer, Sessions},
};
use tower::{Layer, Service, ServiceExt, service_fn};
use tr_core::{BoxError, Params, ToolCall, ToolError, ToolOutcome};

/// A scripted model API: it calls `read` without a path until its call is refused.
fn model(call: &ModelCall) -> Result<String, BoxError> {
    let request: Value = serde_json::from_str(&call.body)?;
    let messages = request["messages"].as_array().ok_or("no messages")?;
    let last = messages.last().ok_or("no messages")?;
    let told = last["content"][0]["content"].as_str().unwrap_or_default();
    let content = if told.starts_with("[LOOP DETECTED]") {
        json!([{"type": "text", "text": "I cannot read the file: I was given no path."}])
    } else {
        let id = format!("toolu_{}", messages.len() / 2);
        json!([{"type": "tool_use", "id": id, "name": "read", "input": {}}])
    };
    Ok(json!({"role": "assistant", "content": content, "stop_reason": "end_turn"}).to_string())
}

async fn read(_: ToolCall) -> Result<ToolOutcome, BoxError> {
    Ok(ToolOutcome::failure(ToolError::new("invalid_params", "Missing required parameter: path")))
}

/// The agent's loop: ask the model, run its tools, repeat.
async fn agent<M, T>(sessions: &Sessions, model: M, tool: T) -> Result<String, BoxError>
where
    M: Service<ModelCall, Response = String, Error = BoxError> + Clone,
    T: Service<ToolCall, Response = ToolOutcome, Error = BoxError> + Clone,
{
    let mut told = String::new();
    let push = |message: &Value| -> Result<(), BoxError> {
        let message = Format::AnthropicMessages.read(message.to_string())?;
        sessions.with("s", |session, _| session.push(message));
        Ok(())
    };
    push(&json!({"role": "user", "content": "Read the file."}))?;
    loop {
        let messages = sessions.with("s", |session, _| session.transcript().to_json());
        let body = format!(r#"{{"messages":{messages}}}"#);
        let answer = model.clone().oneshot(ModelCall::new("s", body)).await?;
        let answer: Value = serde_json::from_str(&answer)?;
        push(&json!({"role": "assistant", "content": answer["content"]}))?;

        let blocks = answer["content"].as_array().ok_or("no content")?;
        let uses: Vec<_> = blocks.iter().filter(|block| block["type"] == "tool_use").collect();
        if uses.is_empty() {
            writeln!(told, "model: {}", blocks[0]["text"].as_str().unwrap_or_default())?;
            return Ok(told);
        }
        for used in uses {
            let [id, name] = ["id", "name"].map(|key| used[key].as_str().unwrap_or_default());
            writeln!(told, "model: {name}({})", used["input"])?;
            let params = Params::from_text(used["input"].to_string())?;
            let call = ToolCall::new(name, params).session("s").tool_call_id(id);
            // The session has the call's result or error, so the loop goes on.
            match tool.clone().oneshot(call).await {
                Ok(outcome) => {
                    let failed = outcome.error().map_or("", |error| &error.message);
                    writeln!(told, "tool:  {failed}")?;
                }
                Err(error) => {
                    let why = error.to_string();
                    writeln!(told, "stack: {}", why.lines().next().unwrap_or_default().trim_end())?;
                }
            }
        }
    }
}

async fn story() -> Result<String, BoxError> {
    let sessions = Sessions::new(Format::AnthropicMessages);
    let stack = ToolStack::builder().sessions(sessions.clone()).build()?;
    let guard = ModelGuardLayer::new(sessions.clone());
    let model = guard.layer(service_fn(|call: ModelCall| ready(model(&call))));
    agent(&sessions, model, stack.service(service_fn(read))).await
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
    assert!(told.contains("[LOOP DETECTED]"), "{told}");
    assert!(
        guide.contains(&format!("```text\n{told}```\n")),
        "docs/integrity.md does not show\n{told}"
    );
}
