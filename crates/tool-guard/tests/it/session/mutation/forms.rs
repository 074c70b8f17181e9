//! The story as each form of request writes it: a record for each message, item or content.
use super::story::{Call, Step, Turn};
use serde_json::{Value, json};

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(crate) fn anthropic(story: &[Turn]) -> Vec<Value> {
    let mut messages = Vec::new();
    for turn in story {
        let prompt = json!({"type": "text", "text": turn.prompt});
        let source = json!({"type": "base64", "media_type": "image/png", "data": PIXEL});
        let content = match turn.has_image {
            true => json!([prompt, {"type": "image", "source": source}]),
            false => json!(turn.prompt),
        };
        messages.push(json!({"role": "user", "content": content}));
        for step in &turn.steps {
            messages.push(json!({"role": "assistant", "content": anthropic_step(step)}));
            let results: Vec<_> = step.calls.iter().map(anthropic_result).collect();
            messages.push(json!({"role": "user", "content": results}));
        }
        let answer = json!([{"type": "text", "text": turn.answer}]);
        messages.push(json!({"role": "assistant", "content": answer}));
    }
    messages
}

pub(crate) fn anthropic_step(step: &Step) -> Vec<Value> {
    let think =
        |thought| json!({"type": "thinking", "thinking": thought, "signature": "c2lnbmF0dXJl"});
    let mut blocks: Vec<_> = step.thought.iter().map(think).collect();
    blocks.extend(step.says.iter().map(|says| json!({"type": "text", "text": says})));
    blocks.extend(step.calls.iter().map(|call| {
        let input = json!({"what": call.argument, "n": 1.0, "deep": {"list": [1, null]}});
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
    }));
    blocks
}

pub(crate) fn anthropic_result(call: &Call) -> Value {
    let content = match call.id.len() % 2 {
        0 => json!(call.result),
        _ => json!([{"type": "text", "text": call.result}]),
    };
    let mut result = json!({"type": "tool_result", "tool_use_id": call.id, "content": content});
    if call.is_error {
        result["is_error"] = json!(true);
    }
    result
}

pub(crate) fn chat(story: &[Turn]) -> Vec<Value> {
    let mut messages = vec![json!({"role": "system", "content": "Be brief."})];
    for turn in story {
        let prompt = json!({"type": "text", "text": turn.prompt});
        let url = format!("data:image/png;base64,{PIXEL}");
        let content = match turn.has_image {
            true => json!([prompt, {"type": "image_url", "image_url": {"url": url}}]),
            false => json!(turn.prompt),
        };
        messages.push(json!({"role": "user", "content": content}));
        for step in &turn.steps {
            let calls: Vec<_> = step.calls.iter().map(chat_call).collect();
            let says = &step.says;
            messages.push(json!({"role": "assistant", "content": says, "tool_calls": calls}));
            messages.extend(step.calls.iter().map(
                |call| json!({"role": "tool", "tool_call_id": call.id, "content": call.result}),
            ));
        }
        messages.push(json!({"role": "assistant", "content": turn.answer}));
    }
    messages
}

fn chat_call(call: &Call) -> Value {
    let arguments = json!({"what": call.argument}).to_string();
    let function = json!({"name": call.name, "arguments": arguments});
    json!({"id": call.id, "type": "function", "function": function})
}

pub(crate) fn responses(story: &[Turn]) -> Vec<Value> {
    let mut items = Vec::new();
    for (at, turn) in story.iter().enumerate() {
        let mut content = vec![json!({"type": "input_text", "text": turn.prompt})];
        if turn.has_image {
            let url = format!("data:image/png;base64,{PIXEL}");
            content.push(json!({"type": "input_image", "image_url": url}));
        }
        items.push(json!({"type": "message", "role": "user", "content": content}));
        for step in &turn.steps {
            items.extend(step.thought.iter().map(|thought| {
                let summary = json!([{"type": "summary_text", "text": thought}]);
                let id = format!("rs_{}", step.calls[0].id);
                json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": "gAAAAA"})
            }));
            items.extend(step.says.iter().map(|says| responses_says(says)));
            items.extend(step.calls.iter().map(|call| {
                let arguments = json!({"what": call.argument}).to_string();
                json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id,
                    "name": call.name, "arguments": arguments})
            }));
            items.extend(step.calls.iter().map(|call| {
                json!({"type": "function_call_output", "call_id": call.id, "output": call.result})
            }));
        }
        let mut answer = responses_says(&turn.answer);
        answer["id"] = json!(format!("msg_{at}"));
        items.push(answer);
    }
    items
}

fn responses_says(says: &str) -> Value {
    let content = json!([{"type": "output_text", "text": says, "annotations": []}]);
    json!({"type": "message", "role": "assistant", "content": content})
}

pub(crate) fn gemini(story: &[Turn]) -> Vec<Value> {
    let mut contents = Vec::new();
    for turn in story {
        let mut parts = vec![json!({"text": turn.prompt})];
        if turn.has_image {
            parts.push(json!({"inlineData": {"mimeType": "image/png", "data": PIXEL}}));
        }
        contents.push(json!({"role": "user", "parts": parts}));
        for step in &turn.steps {
            let thought =
                step.thought.iter().map(|thought| json!({"text": thought, "thought": true}));
            let says = step.says.iter().map(|says| json!({"text": says}));
            let calls = step.calls.iter().enumerate().map(|(at, call)| {
                let mut part =
                    json!({"functionCall": {"name": call.name, "args": {"what": call.argument}}});
                if at == 0 {
                    part["thoughtSignature"] = json!("c2lnbmF0dXJl");
                }
                part
            });
            let parts: Vec<_> = thought.chain(says).chain(calls).collect();
            contents.push(json!({"role": "model", "parts": parts}));
            let results = step.calls.iter().map(|call| {
                let response = json!({"output": call.result});
                json!({"functionResponse": {"name": call.name, "response": response}})
            });
            contents.push(json!({"role": "user", "parts": results.collect::<Vec<_>>()}));
        }
        contents.push(json!({"role": "model", "parts": [{"text": turn.answer}]}));
    }
    contents
}
