//! Recognises sessions of agents whose formats are not supported, by their published structure; the
//! commands name the agent and leave the file unchanged.
mod envelope;

use self::envelope::Envelope;
use super::outline::{Message, Outline, Part, Record};
use crate::{
    files::{CliError, File},
    session::verdict::{Failure, NotJudged},
};
use std::io::Read as _;
use tr_transcript::{Piece, Records};

/// The limits for detection in a file of JSON lines: its first bytes, and its first records.
const HEAD: u64 = 8 << 20;
const RECORDS: usize = 200;

const BEDROCK: &str = "Bedrock Converse";
const OLLAMA: &str = "Ollama";

/// Refuses a JSON text that is another agent's session.
pub(super) fn refuse_document(outline: &Outline<'_>) -> Result<(), Failure> {
    agent_of_document(outline).map_or(Ok(()), refuse)
}

/// Refuses a file of JSON lines that is another agent's session.
pub(super) fn refuse_lines(file: &File) -> Result<(), Failure> {
    let reading = |error| Failure::from(CliError::reading(file.real(), &error));
    // A longer line would have to be read as a whole.
    let mut records = Records::new(file.rewound()?.take(HEAD)).max_record(1 << 20);
    let mut envelope = Envelope::default();
    for _ in 0..RECORDS {
        match records.next().map_err(reading)? {
            None => break,
            Some(Piece::Skipped(_)) => {}
            Some(Piece::Record(record)) => {
                let record = Record::of(&record.text);
                if let Some(agent) = agent_of_record(&record) {
                    return refuse(agent);
                }
                envelope.add(&record);
            }
        }
    }
    envelope.names().as_deref().map_or(Ok(()), refuse_envelope)
}

fn refuse_envelope(names: &str) -> Result<(), Failure> {
    let help = "it may be a log, and the program that wrote it is not known here; to have its \
                messages judged, check a copy with nothing but them";
    let reason = format!("each line has members that no message has: {names}");
    Err(NotJudged::new(reason, help).into())
}

fn refuse(agent: &'static str) -> Result<(), Failure> {
    let save = match agent {
        // The file is the body of a request already.
        BEDROCK => "write its messages in the form of Anthropic Messages".into(),
        OLLAMA => "write its messages in the form of OpenAI Chat Completions".into(),
        _ => format!("save the body of the request that {agent} sends to the model"),
    };
    let help = format!(
        "it is left as it is: the rules of {agent} are not known here. To have it judged, {save}, \
         and check that"
    );
    let reason = match agent {
        OLLAMA => "this is an Ollama request".into(),
        _ => format!("this is a session of {agent}"),
    };
    Err(NotJudged { reason, agent: Some(agent), help }.into())
}

fn agent_of_document(document: &Outline<'_>) -> Option<&'static str> {
    if document.has(&["sessionId", "projectHash", "messages"]) {
        return Some("gemini-cli");
    }
    if document.has(&["conversation", "working_dir"]) {
        return Some("goose");
    }
    if document.has(&["modelId"]) && document.messages().next().is_some() {
        return Some(BEDROCK);
    }
    if document.has(&["keep_alive", "messages"]) {
        return Some(OLLAMA);
    }
    document.messages().find_map(|message| agent_of_message(&message))
}

/// The agent that wrote a message of a list, if its members tell.
fn agent_of_message(message: &Message<'_>) -> Option<&'static str> {
    let kind = message.text("type");
    let is_langchain = |kind: &str| matches!(kind, "human" | "ai" | "tool" | "system" | "function");
    if message.has("lc") && message.has("kwargs")
        || is_langchain(&kind) && (message.has("data") || message.has("additional_kwargs"))
    {
        return Some("LangChain");
    }
    if matches!(&*kind, "say" | "ask") && message.is_number("ts") {
        return Some("Cline or Roo Code");
    }
    let parts = message.list("parts");
    if message.has("info") && message.has("parts") {
        return Some("opencode");
    }
    if matches!(&*message.text("kind"), "request" | "response")
        && parts.iter().any(|part| part.has("part_kind"))
    {
        return Some("pydantic-ai");
    }
    if message.text("role").is_empty() {
        return None;
    }
    if message.has("toolInvocations") || parts.iter().any(|part| !part.text("type").is_empty()) {
        return Some("the Vercel AI SDK");
    }
    let is_clines = message.is_number("ts") || message.has("modelInfo");
    if is_clines && message.has("content") {
        return Some("Cline or Roo Code");
    }
    let has_id = message.has("tool_call_id") || message.has("toolCallId");
    if message.text("role") == "tool" && message.has("tool_name") && !has_id {
        return Some(OLLAMA);
    }
    message.list("content").iter().find_map(agent_of_part)
}

/// The agent that wrote a part of a message's content, if its members tell.
fn agent_of_part(part: &Part<'_>) -> Option<&'static str> {
    const CONVERSE: [&str; 7] =
        ["toolUse", "toolResult", "text", "reasoningContent", "cachePoint", "image", "document"];
    match &*part.text("type") {
        "tool-call" | "tool-result" if part.has("toolCallId") => Some("the Vercel AI SDK"),
        "toolRequest" | "toolResponse" if part.has("id") => Some("goose"),
        "" if part.len() == 1 && CONVERSE.iter().any(|name| part.has(name)) => Some(BEDROCK),
        _ => None,
    }
}

/// The agent that wrote a line, if its members tell.
fn agent_of_record(record: &Record<'_>) -> Option<&'static str> {
    let kind = record.text("type");
    if record.has("sessionId") && record.has("projectHash") {
        return Some("gemini-cli");
    }
    if kind == "gemini" && record.has("id") && record.has("timestamp") {
        return Some("gemini-cli");
    }
    if record.has("uuid") && record.has("sessionId") {
        let message = record.member("message")?;
        return (message.has("parts") && !message.has("content")).then_some("Qwen Code");
    }
    let is_openhands = record.has("action") || record.has("observation");
    if is_openhands && record.has("source") && record.has("timestamp") {
        return Some("OpenHands");
    }
    if record.text("kind").ends_with("Event") && record.has("source") && record.has("timestamp") {
        return Some("OpenHands");
    }
    agent_of_message(record)
}
