//! Messages of all forms, short.
use serde_json::Value;
use tr_transcript::{Format, Message, Transcript};

pub(crate) const FORMATS: [Format; 4] =
    [Format::AnthropicMessages, Format::OpenAiChat, Format::OpenAiResponses, Format::Gemini];

pub(crate) fn anthropic(messages: &[&str]) -> Transcript {
    of(Format::AnthropicMessages, messages)
}

pub(crate) fn openai(messages: &[&str]) -> Transcript {
    of(Format::OpenAiChat, messages)
}

pub(crate) fn of(format: Format, messages: &[impl AsRef<str>]) -> Transcript {
    let messages: Vec<_> = messages.iter().map(|raw| native(format, raw.as_ref())).collect();
    Transcript::read_as(format, &format!("[{}]", messages.join(","))).unwrap()
}

pub(crate) fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":"{text}"}}"#)
}

pub(crate) fn says(text: &str) -> String {
    format!(r#"{{"role":"assistant","content":"{text}"}}"#)
}

/// The one message with these uses.
pub(crate) fn uses(format: Format, ids: &[&str]) -> String {
    let step = step(format, ids);
    let [message] = &step[..] else { panic!("{} messages: take `step`", step.len()) };
    message.clone()
}

/// The messages of a step with these uses.
pub(crate) fn step(format: Format, ids: &[&str]) -> Vec<String> {
    let uses: Vec<_> = ids.iter().map(|id| one_use(format, id)).collect();
    let all = uses.join(",");
    match format {
        Format::AnthropicMessages => {
            vec![format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"so"}},{all}]}}"#
            )]
        }
        Format::OpenAiChat => {
            vec![format!(r#"{{"role":"assistant","content":"so","tool_calls":[{all}]}}"#)]
        }
        Format::Gemini => vec![format!(r#"{{"role":"model","parts":[{{"text":"so"}},{all}]}}"#)],
        _ => uses,
    }
}

fn one_use(format: Format, id: &str) -> String {
    match format {
        Format::AnthropicMessages => {
            format!(r#"{{"type":"tool_use","id":"{id}","name":"read","input":{{}}}}"#)
        }
        Format::OpenAiChat => format!(
            r#"{{"id":"{id}","type":"function","function":{{"name":"read","arguments":"{{}}"}}}}"#
        ),
        Format::Gemini => {
            format!(r#"{{"functionCall":{{"id":"{id}","name":"read","args":{{}}}}}}"#)
        }
        _ => format!(
            r#"{{"type":"function_call","call_id":"{id}","name":"read","arguments":"{{}}"}}"#
        ),
    }
}

/// The messages that answer these uses, each with its own text.
pub(crate) fn results(format: Format, answers: &[(&str, &str)]) -> Vec<String> {
    match format {
        Format::AnthropicMessages => {
            let blocks: Vec<_> = answers.iter().map(|(id, text)| result_block(id, text)).collect();
            vec![format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(","))]
        }
        Format::OpenAiChat => answers.iter().map(|(id, text)| tool(id, text)).collect(),
        Format::Gemini => {
            let parts: Vec<_> = answers.iter().map(|(id, text)| response(id, text)).collect();
            vec![format!(r#"{{"role":"user","parts":[{}]}}"#, parts.join(","))]
        }
        _ => answers.iter().map(|(id, text)| output(id, text)).collect(),
    }
}

pub(crate) fn result_block(id: &str, text: &str) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}"#)
}

pub(crate) fn tool(id: &str, text: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
}

pub(crate) fn output(id: &str, text: &str) -> String {
    format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"{text}"}}"#)
}

pub(crate) fn response(id: &str, text: &str) -> String {
    format!(
        r#"{{"functionResponse":{{"id":"{id}","name":"read","response":{{"output":"{text}"}}}}}}"#
    )
}

pub(crate) fn message(format: Format, raw: impl Into<Box<str>>) -> Message {
    format.read(native(format, &raw.into())).unwrap()
}

/// A plain text in the form's own way: Gemini has parts where others have a content.
fn native(format: Format, raw: &str) -> String {
    let value: Value = serde_json::from_str(raw).unwrap_or_default();
    let text = &value["content"];
    if !text.is_string() || format != Format::Gemini {
        return raw.to_owned();
    }
    let role = if value["role"] == "assistant" { "model" } else { "user" };
    format!(r#"{{"role":"{role}","parts":[{{"text":{text}}}]}}"#)
}
