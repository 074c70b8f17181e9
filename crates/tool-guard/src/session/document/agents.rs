//! Recognises sessions of agents whose formats are not supported, by their published structure; the
//! commands name the agent and leave the file unchanged.
use super::outline::Outline;
use crate::{
    files::{CliError, File},
    session::verdict::{Failure, NotJudged},
};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, io::Read as _};
use tr_core::printable;
use tr_transcript::{Piece, Records, internal::is_of_messages};

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
    let reading = |error| Failure::from(CliError::reading(&file.real, &error));
    // A longer line would have to be read as a whole.
    let mut records = Records::new(file.rewound()?.take(HEAD)).max_record(1 << 20);
    let mut envelope = Envelope::default();
    for _ in 0..RECORDS {
        match records.next().map_err(reading)? {
            None => break,
            Some(Piece::Skipped(_)) => {}
            Some(Piece::Record(record)) => {
                let record = serde_json::from_str(&record.text).unwrap_or_default();
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
    match document {
        _ if document.has(&["sessionId", "projectHash", "messages"]) => Some("gemini-cli"),
        _ if document.has(&["conversation", "working_dir"]) => Some("goose"),
        _ if document.has(&["modelId"]) && document.messages().next().is_some() => Some(BEDROCK),
        _ if document.has(&["keep_alive", "messages"]) => Some(OLLAMA),
        _ => document.messages().find_map(|message| agent_of_message(&message)),
    }
}

/// The agent that wrote a message of a list, if its members tell.
fn agent_of_message(message: &Value) -> Option<&'static str> {
    let has = |name: &str| has(message, name);
    let (role, parts) = (text(message, "role"), list(message, "parts"));
    let is_of_pydantic = matches!(text(message, "kind"), "request" | "response");
    match text(message, "type") {
        _ if has("lc") && has("kwargs") => Some("LangChain"),
        "human" | "ai" | "tool" | "system" | "function"
            if has("data") || has("additional_kwargs") =>
        {
            Some("LangChain")
        }
        "say" | "ask" if message["ts"].is_number() => Some("Cline or Roo Code"),
        _ if has("info") && has("parts") => Some("opencode"),
        _ if is_of_pydantic && parts.iter().any(|part| self::has(part, "part_kind")) => {
            Some("pydantic-ai")
        }
        _ if role.is_empty() => None,
        _ if has("toolInvocations") || parts.iter().any(|part| !text(part, "type").is_empty()) => {
            Some("the Vercel AI SDK")
        }
        _ if role == "tool" && has("tool_name") && !(has("tool_call_id") || has("toolCallId")) => {
            Some(OLLAMA)
        }
        _ => list(message, "content").iter().find_map(agent_of_part),
    }
}

/// The agent that wrote a part of a message's content, if its members tell.
fn agent_of_part(part: &Value) -> Option<&'static str> {
    const CONVERSE: [&str; 7] =
        ["toolUse", "toolResult", "text", "reasoningContent", "cachePoint", "image", "document"];
    match text(part, "type") {
        "tool-call" | "tool-result" if has(part, "toolCallId") => Some("the Vercel AI SDK"),
        "toolRequest" | "toolResponse" if has(part, "id") => Some("goose"),
        "" if part.as_object().map_or(0, Map::len) == 1
            && CONVERSE.iter().any(|name| has(part, name)) =>
        {
            Some(BEDROCK)
        }
        _ => None,
    }
}

/// The agent that wrote a line, if its members tell.
fn agent_of_record(record: &Value) -> Option<&'static str> {
    let has = |name: &str| has(record, name);
    let is_event = text(record, "kind").ends_with("Event") || has("action") || has("observation");
    match text(record, "type") {
        _ if has("sessionId") && has("projectHash") => Some("gemini-cli"),
        "gemini" if has("id") && has("timestamp") => Some("gemini-cli"),
        _ if has("uuid") && has("sessionId") => {
            let message = record.get("message")?;
            let has = |name: &str| self::has(message, name);
            (has("parts") && !has("content")).then_some("Qwen Code")
        }
        _ if is_event && has("source") && has("timestamp") => Some("OpenHands"),
        _ => agent_of_message(record),
    }
}

fn has(object: &Value, name: &str) -> bool {
    object.get(name).is_some()
}

/// A member's string; empty if it is no string.
fn text<'o>(object: &'o Value, name: &str) -> &'o str {
    object[name].as_str().unwrap_or_default()
}

/// The elements of a member's array.
fn list<'o>(object: &'o Value, name: &str) -> &'o [Value] {
    object[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The common members of a file's lines, in addition to their messages: such a file is a log, or the session of an
/// unknown agent.
#[derive(Debug, Default)]
struct Envelope {
    lines: usize,
    /// Members that each line has, and no message.
    shared: BTreeSet<String>,
    /// Whether a line is no message.
    is_mixed: bool,
}

impl Envelope {
    fn add(&mut self, line: &Value) {
        self.is_mixed |= line["role"].as_str().is_none_or(str::is_empty);
        if self.is_mixed {
            return;
        }
        let is_own = |name: &&String| match name.as_str() {
            // Agents add these to a message, beside those that messages have in one of the forms.
            "api" | "author" | "call_id" | "created" | "createdAt" | "created_at" | "date"
            | "effort" | "errorMessage" | "extra_content" | "function_call" | "images"
            | "index" | "message_id" | "metadata" | "meta" | "object" | "parts" | "prefix"
            | "provider" | "provider_extra" | "responseId" | "stopReason" | "thinking" | "time"
            | "weight" => false,
            name => !is_of_messages(name),
        };
        let names = line.as_object().into_iter().flat_map(Map::keys).filter(is_own).cloned();
        if self.lines == 0 {
            self.shared = names.collect();
        } else {
            let names: BTreeSet<_> = names.collect();
            self.shared.retain(|name| names.contains(name));
        }
        self.lines += 1;
    }

    /// The members' names, for display; `None` if there are none.
    fn names(self) -> Option<String> {
        let is_one = !self.is_mixed && !self.shared.is_empty();
        let names = self.shared.iter().map(|name| printable(name).to_string());
        is_one.then(|| names.collect::<Vec<_>>().join(", "))
    }
}
