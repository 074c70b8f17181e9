//! Messages of both forms, short.
use tr_integrity::{Format, Message, Transcript};

pub(crate) const FORMATS: [Format; 2] = [Format::AnthropicMessages, Format::OpenAiChat];

pub(crate) fn anthropic(messages: &[&str]) -> Transcript {
    of(Format::AnthropicMessages, messages)
}

pub(crate) fn openai(messages: &[&str]) -> Transcript {
    of(Format::OpenAiChat, messages)
}

pub(crate) fn of(format: Format, messages: &[impl AsRef<str>]) -> Transcript {
    let messages: Vec<_> = messages.iter().map(AsRef::as_ref).collect();
    Transcript::read_as(format, &format!("[{}]", messages.join(","))).unwrap()
}

pub(crate) fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":"{text}"}}"#)
}

pub(crate) fn says(text: &str) -> String {
    format!(r#"{{"role":"assistant","content":"{text}"}}"#)
}

/// An assistant message with these uses.
pub(crate) fn uses(format: Format, ids: &[&str]) -> String {
    let uses: Vec<_> = ids.iter().map(|id| one_use(format, id)).collect();
    let uses = uses.join(",");
    match format {
        Format::AnthropicMessages => {
            format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"so"}},{uses}]}}"#)
        }
        _ => format!(r#"{{"role":"assistant","content":"so","tool_calls":[{uses}]}}"#),
    }
}

fn one_use(format: Format, id: &str) -> String {
    match format {
        Format::AnthropicMessages => {
            format!(r#"{{"type":"tool_use","id":"{id}","name":"read","input":{{}}}}"#)
        }
        _ => format!(
            r#"{{"id":"{id}","type":"function","function":{{"name":"read","arguments":"{{}}"}}}}"#
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
        _ => answers.iter().map(|(id, text)| tool(id, text)).collect(),
    }
}

pub(crate) fn result_block(id: &str, text: &str) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}"#)
}

pub(crate) fn tool(id: &str, text: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
}

pub(crate) fn message(format: Format, raw: impl Into<Box<str>>) -> Message {
    format.read(raw).unwrap()
}
