//! New lines of a session file. They are deterministic: no clock, no random numbers.
use super::{entry::What, form::FileForm, session_file::SessionFile};
use crate::{
    json::{self, quote},
    message::{Kind, Message, Role},
    name::Name,
};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

/// Members of Claude Code's lines that describe the session and are copied into a new line.
const CLAUDE_CODE: [&str; 7] =
    ["isSidechain", "agentId", "userType", "cwd", "sessionId", "version", "gitBranch"];

/// Generates ids for new entries.
#[derive(Debug)]
pub(super) struct NewIds {
    form: FileForm,
    has_ids: bool,
    taken: HashSet<Name>,
    /// The seeds and texts for which ids were generated, and how many candidates were tried.
    tried: HashMap<blake3::Hash, u64>,
}

impl NewIds {
    pub(super) fn of(file: &SessionFile) -> Self {
        let ids = file.entries.iter().filter_map(|located| located.entry.id.clone());
        let (form, taken) = (file.form(), ids.collect::<HashSet<_>>());
        let has_ids = match form {
            FileForm::ClaudeCode | FileForm::ClaudeSubagent => !taken.is_empty(),
            FileForm::OpenClaw { version } => version >= 2 || file.is_linked,
            FileForm::Codex | FileForm::Messages(_) | FileForm::Other => false,
        };
        Self { form, has_ids, taken, tried: HashMap::new() }
    }

    /// An id for an entry with this text that follows the entry with id `seed`; `None` where
    /// entries have no ids.
    pub(super) fn next(&mut self, seed: Option<&str>, text: &str) -> Option<Name> {
        if !self.has_ids {
            return None;
        }
        let mut of_these = blake3::Hasher::new();
        of_these.update(seed.unwrap_or_default().as_bytes());
        of_these.update(text.as_bytes());
        let tried = self.tried.entry(of_these.finalize()).or_default();
        loop {
            let mut hasher = of_these.clone();
            hasher.update(&tried.to_le_bytes());
            *tried += 1;
            let hex = hasher.finalize().to_hex();
            let id = match self.form {
                // UUID version 8, for custom values.
                FileForm::ClaudeCode | FileForm::ClaudeSubagent => format!(
                    "{}-{}-8{}-8{}-{}",
                    &hex[..8],
                    &hex[8..12],
                    &hex[13..16],
                    &hex[17..20],
                    &hex[20..32]
                ),
                _ => hex[..8].to_owned(),
            };
            let id = Name::from(&*id);
            if self.taken.insert(id.clone()) {
                return Some(id);
            }
        }
    }
}

/// The text of a moved entry, with its new parent and its new id if it gets one.
pub(super) fn moved(
    file: &SessionFile,
    text: &str,
    id: Option<&str>,
    parent: Option<&str>,
) -> String {
    if !file.is_linked {
        return text.to_owned();
    }
    let text = json::set_member(text, file.form().parent_member(), &quoted(parent));
    match id {
        Some(id) => json::set_member(&text, file.form().id_member(), &quote(id)),
        None => text,
    }
}

/// Writes new entries, each with the metadata of a neighbor.
pub(super) struct Writer<'f> {
    file: &'f SessionFile,
    /// The neighbor that was read last, and its metadata.
    like: Option<(Option<usize>, Copied)>,
    /// The tool of each use; filled when the first result needs one.
    tools: Option<HashMap<&'f str, &'f str>>,
}

/// Members of an entry that a new one copies, as JSON.
#[derive(Default)]
struct Copied {
    members: HashMap<&'static str, Box<str>>,
    /// The timestamp inside its message.
    timestamp: Option<Box<str>>,
}

impl Copied {
    fn of(file: &SessionFile, node: usize) -> Self {
        let text = file.text(node);
        let members = json::members(&text).unwrap_or_default();
        let names = CLAUDE_CODE.into_iter().chain(["timestamp", file.form().parent_member()]);
        let inner = members.get("message").and_then(|message| json::members(message.get()).ok());
        let inner = inner.unwrap_or_default();
        Self {
            members: names
                .filter_map(|name| Some((name, members.get(name)?.get().into())))
                .collect(),
            timestamp: inner.get("timestamp").map(|raw| raw.get().into()),
        }
    }

    fn get(&self, name: &'static str) -> Option<(&'static str, Cow<'_, str>)> {
        self.members.get(name).map(|json| (name, Cow::Borrowed(&**json)))
    }
}

impl<'f> Writer<'f> {
    pub(super) const fn new(file: &'f SessionFile) -> Self {
        Self { file, like: None, tools: None }
    }

    /// A new entry with a message, with the metadata of `neighbor`.
    pub(super) fn message(
        &mut self,
        id: Option<&str>,
        parent: Option<&str>,
        neighbor: Option<usize>,
        message: &Message,
    ) -> String {
        let file = self.file;
        if let FileForm::Messages(_) | FileForm::Other = file.form() {
            return message.raw().to_owned();
        }
        if self.like.as_ref().is_none_or(|(node, _)| *node != neighbor) {
            let like = neighbor.map_or_else(Copied::default, |node| Copied::of(file, node));
            self.like = Some((neighbor, like));
        }
        let tool = match file.form() {
            FileForm::OpenClaw { .. } => self.tool_of(message),
            _ => None,
        };
        let Some((_, like)) = &self.like else { return String::new() };
        let mut line: Vec<(&str, Cow<'_, str>)> = Vec::new();
        // Where entries follow one another without links, a link on one would separate the others.
        let name = file.form().parent_member();
        let linked = || (name, Cow::Owned(quoted(parent)));
        let parent = if file.is_linked { Some(linked()) } else { like.get(name) };
        match file.form() {
            FileForm::Codex => {
                line.extend(like.get("timestamp"));
                line.push(("type", r#""response_item""#.into()));
                line.push(("payload", message.raw().into()));
            }
            FileForm::OpenClaw { .. } => {
                line.push(("type", r#""message""#.into()));
                if let Some(id) = id {
                    line.push(("id", quote(id).into()));
                    line.extend(parent);
                }
                line.extend(like.get("timestamp"));
                line.push(("message", openclaw(like, message, tool).into()));
            }
            _ => {
                line.extend(parent);
                line.extend(CLAUDE_CODE.iter().filter_map(|name| like.get(name)));
                line.push(("type", r#""user""#.into()));
                line.push(("message", message.raw().into()));
                line.extend(id.map(|id| ("uuid", quote(id).into())));
                line.extend(like.get("timestamp"));
            }
        }
        written(&line)
    }

    /// The name of the tool whose result a message is.
    fn tool_of(&mut self, message: &Message) -> Option<&'f str> {
        let id = message.tool_results().next().filter(|_| message.role() == Role::Tool)?;
        let file = self.file;
        let tools = self.tools.get_or_insert_with(|| {
            let messages = file.entries.iter().filter_map(|located| located.entry.as_message());
            let mut tools = HashMap::new();
            for block in messages.flat_map(Message::blocks) {
                if let Kind::Use { id, name, .. } = &block.kind {
                    tools.entry(&**id).or_insert(&**name);
                }
            }
            tools
        });
        tools.get(id).copied()
    }
}

fn written(line: &[(&str, Cow<'_, str>)]) -> String {
    let members: Vec<_> =
        line.iter().map(|(name, value)| format!("{}:{value}", quote(name))).collect();
    format!("{{{}}}", members.join(","))
}

/// A line of Claude Code's that hides everything before it from the model, with its line break. It
/// becomes the only line of the file, and copies the last one's metadata if there is one.
pub(super) fn boundary(file: &SessionFile) -> Option<String> {
    let tree = (0..file.entries.len()).filter(|&node| !file.entries[node].entry.is_outside());
    let nodes: Vec<usize> = tree.collect();
    let last = *nodes.last()?;
    let entry = &file.entries[last].entry;
    if nodes.len() == 1 && matches!(entry.what, What::Reset(_)) {
        return Some(format!("{}\n", file.text(last)));
    }
    let like = Copied::of(file, last);
    let mut line: Vec<(&str, Cow<'_, str>)> = vec![("parentUuid", "null".into())];
    line.extend(CLAUDE_CODE.iter().filter_map(|name| like.get(name)));
    line.push(("type", r#""system""#.into()));
    line.push(("subtype", r#""compact_boundary""#.into()));
    line.push(("content", r#""reset""#.into()));
    let id = NewIds::of(file).next(entry.id.as_deref(), "reset");
    line.push(("uuid", quote(id.as_deref().unwrap_or("reset")).into()));
    line.extend(like.get("timestamp"));
    Some(written(&line) + "\n")
}

/// OpenClaw's results hold the tool's name and a timestamp.
fn openclaw(like: &Copied, message: &Message, tool: Option<&str>) -> String {
    let mut text = message.raw().to_owned();
    let mut add = |name: &str, value: &str| {
        text.truncate(text.trim_end().len() - 1);
        text += &format!(",{}:{value}}}", quote(name));
    };
    if let Some(tool) = tool {
        add("toolName", &quote(tool));
    }
    if let Some(timestamp) = &like.timestamp {
        add("timestamp", timestamp);
    }
    text
}

pub(super) fn quoted(id: Option<&str>) -> String {
    id.map_or("null".to_owned(), quote)
}
