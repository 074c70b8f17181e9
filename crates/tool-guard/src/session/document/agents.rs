//! Recognizes sessions of agents whose formats are not supported, by their published structure; the
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
const VERCEL: &str = "the Vercel AI SDK";

/// An agent, and members that only it writes together: `name=a|b*` with this string, or one that begins so, and `!name`
/// absent.
type Members = (&'static str, &'static [&'static str]);

/// Of a JSON text.
const DOCUMENTS: [Members; 8] = [
    ("gemini-cli", &["sessionId", "projectHash", "messages"]),
    ("goose", &["conversation", "working_dir"]),
    (BEDROCK, &["modelId", "messages"]),
    (OLLAMA, &["keep_alive", "messages"]),
    ("Amp", &["v", "id=T-*", "messages"]),
    ("Continue", &["sessionId", "workspaceDirectory", "history"]),
    ("opencode", &["id=prt_*", "messageID", "sessionID"]),
    ("opencode", &["id=msg_*", "role", "sessionID"]),
];

/// Of a line.
const LINES: [Members; 14] = [
    ("gemini-cli", &["/sessionId", "/projectHash"]),
    ("gemini-cli", &["/type=gemini", "/id", "/timestamp"]),
    ("Qwen Code", &["/uuid", "/sessionId", "/message/parts", "!/message/content"]),
    ("OpenHands", &["/action", "/source", "/timestamp"]),
    ("OpenHands", &["/observation", "/source", "/timestamp"]),
    ("OpenHands", &["/kind=System*|Message*|Action*|Observation*|Agent*", "/source", "/timestamp"]),
    ("Copilot CLI", &["/type=session.*", "/data/sessionId", "/data/copilotVersion"]),
    ("Copilot CLI", &["/type=user.*|assistant.*|tool.*", "/data", "/id", "/parentId"]),
    ("Cursor", &["/role=user|assistant", "/message/content", "!/message/role", "!/type"]),
    ("Factory's droid", &["/type=session_start", "/title", "/cwd"]),
    ("Kimi CLI", &["/role=_checkpoint", "/id"]),
    ("Kimi CLI", &["/role=_usage", "/token_count"]),
    ("opencode", &["/sessionID", "/part/messageID"]),
    ("Codex (2025)", &["/id", "/timestamp", "/instructions", "!/type", "!/role"]),
];

/// Of a message of a list or a line.
const MESSAGES: [Members; 9] = [
    ("LangChain", &["/lc", "/kwargs"]),
    ("LangChain", &["/type=human|ai|tool|system|function", "/data"]),
    ("LangChain", &["/type=human|ai|tool|system|function", "/additional_kwargs"]),
    ("Cline or Roo Code", &["/type=say|ask", "/ts"]),
    ("opencode", &["/info", "/parts"]),
    ("pydantic-ai", &["/kind=request|response", "/parts/0/part_kind"]),
    (VERCEL, &["/role", "/toolInvocations"]),
    (VERCEL, &["/role", "/parts/0/type"]),
    (OLLAMA, &["/role=tool", "/tool_name", "!/tool_call_id", "!/toolCallId"]),
];

/// Of a part of a message's content.
const PARTS: [Members; 2] = [
    (VERCEL, &["/type=tool-call|tool-result", "/toolCallId"]),
    ("goose", &["/type=toolRequest|toolResponse", "/id"]),
];

/// Of a database, its columns.
const DATABASES: [Members; 2] = [
    ("opencode", &["session.project_id", "message.session_id", "part.message_id"]),
    ("the OpenAI Agents SDK", &["agent_sessions.session_id", "agent_messages.message_data"]),
];

/// The first agent with all of its members.
fn agent_of<'t>(
    agents: &'static [Members],
    text: impl Fn(&str) -> Option<&'t str>,
) -> Option<&'static str> {
    let is = |own: &str, text: &str| match own.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => text == own,
    };
    let has = |member: &&str| match (member.strip_prefix('!'), member.split_once('=')) {
        (Some(absent), _) => text(absent).is_none(),
        (_, Some((name, own))) => {
            text(name).is_some_and(|it| own.split('|').any(|own| is(own, it)))
        }
        _ => text(member).is_some(),
    };
    let (agent, _) = agents.iter().find(|(_, members)| members.iter().all(has))?;
    Some(agent)
}

/// The same of an object, whose members are named by pointers.
fn agent_of_object(agents: &'static [Members], object: &Value) -> Option<&'static str> {
    agent_of(agents, |name| Some(object.pointer(name)?.as_str().unwrap_or_default()))
}

/// Refuses another agent's database with these columns.
pub(crate) fn refuse_database(columns: &[String]) -> Result<(), Failure> {
    let text = |name: &str| columns.iter().find(|column| *column == name).map(String::as_str);
    refuse(agent_of(&DATABASES, text))
}

/// Refuses a JSON text that is another agent's session.
pub(super) fn refuse_document(outline: &Outline<'_>) -> Result<(), Failure> {
    let of_messages = || outline.messages().find_map(|message| agent_of_message(&message));
    refuse(agent_of(&DOCUMENTS, |name| outline.text(name)).or_else(of_messages))
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
                refuse(agent_of_object(&LINES, &record).or_else(|| agent_of_message(&record)))?;
                envelope.add(&record);
            }
        }
    }
    let Some(names) = envelope.names() else { return Ok(()) };
    let help = "it may be a log, and the program that wrote it is not known here; to have its \
                messages judged, check a copy with nothing but them";
    let reason = format!("each line has members that no message has: {names}");
    Err(NotJudged::new(reason, help).into())
}

fn refuse(agent: Option<&'static str>) -> Result<(), Failure> {
    let Some(agent) = agent else { return Ok(()) };
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

/// The agent that wrote a message of a list, if its members tell.
fn agent_of_message(message: &Value) -> Option<&'static str> {
    let parts = || message.get("role").and(message["content"].as_array()).into_iter().flatten();
    agent_of_object(&MESSAGES, message).or_else(|| parts().find_map(agent_of_part))
}

/// The agent that wrote a part of a message's content, if its members tell.
fn agent_of_part(part: &Value) -> Option<&'static str> {
    const CONVERSE: [&str; 7] =
        ["toolUse", "toolResult", "text", "reasoningContent", "cachePoint", "image", "document"];
    let is_converse = || {
        let members = part.as_object().filter(|members| members.len() == 1)?;
        CONVERSE.iter().any(|name| members.contains_key(*name)).then_some(BEDROCK)
    };
    agent_of_object(&PARTS, part).or_else(is_converse)
}

/// The common members of a file's lines, in addition to their messages: such a file is a log, or the session of an
/// unknown agent.
#[derive(Debug, Default)]
struct Envelope {
    /// Members that each line has, and no message; `None` before the first line.
    shared: Option<BTreeSet<String>>,
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
        let names: BTreeSet<_> = names.collect();
        self.shared = Some(match self.shared.take() {
            Some(shared) => &shared & &names,
            None => names,
        });
    }

    /// The members' names, for display; `None` if there are none.
    fn names(self) -> Option<String> {
        let shared = self.shared.filter(|shared| !self.is_mixed && !shared.is_empty())?;
        Some(shared.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", "))
    }
}
