//! Lines that a repair adds to a session file. Nothing in them comes from a clock or from chance.
use super::{form::FileForm, session_file::SessionFile};
use crate::{
    json::{self, quote},
    message::{Kind, Message, Role},
};
use serde_json::value::RawValue;
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

type Members<'t> = BTreeMap<Cow<'t, str>, &'t RawValue>;

/// What Claude Code's line says of the session, and a new line says too.
const CLAUDE_CODE: [&str; 6] =
    ["isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch"];

/// The member that names an entry's parent.
pub(super) const fn parent_member(form: FileForm) -> &'static str {
    match form {
        FileForm::ClaudeCode => "parentUuid",
        _ => "parentId",
    }
}

/// The member that holds an entry's id.
pub(super) const fn id_member(form: FileForm) -> &'static str {
    match form {
        FileForm::ClaudeCode => "uuid",
        _ => "id",
    }
}

/// Makes ids for new entries.
#[derive(Debug)]
pub(super) struct NewIds {
    form: FileForm,
    has_ids: bool,
    taken: HashSet<Box<str>>,
}

impl NewIds {
    pub(super) fn of(file: &SessionFile) -> Self {
        let ids = file.entries.iter().filter_map(|located| located.entry.id.clone());
        let (form, taken) = (file.form(), ids.collect::<HashSet<_>>());
        let has_ids = match form {
            FileForm::ClaudeCode => !taken.is_empty(),
            FileForm::OpenClaw { version } => version >= 2 || file.is_linked(),
            FileForm::Messages(_) | FileForm::Other => false,
        };
        Self { form, has_ids, taken }
    }

    /// An id for an entry with this text, and behind the one of id `seed`; `None` where entries
    /// have none.
    pub(super) fn next(&mut self, seed: Option<&str>, text: &str) -> Option<Box<str>> {
        if !self.has_ids {
            return None;
        }
        let ids = (0_u64..).map(|turn| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(seed.unwrap_or_default().as_bytes());
            hasher.update(text.as_bytes());
            hasher.update(&turn.to_le_bytes());
            let hex = hasher.finalize().to_hex();
            match self.form {
                // A UUID of the version for values of one's own.
                FileForm::ClaudeCode => format!(
                    "{}-{}-8{}-8{}-{}",
                    &hex[..8],
                    &hex[8..12],
                    &hex[13..16],
                    &hex[17..20],
                    &hex[20..32]
                ),
                _ => hex[..8].to_owned(),
            }
        });
        let id: Box<str> = ids.into_iter().find(|id| !self.taken.contains(&**id))?.into();
        self.taken.insert(id.clone());
        Some(id)
    }
}

/// An entry that moved, linked to its new parent, and with another id if it gets one.
pub(super) fn moved(
    file: &SessionFile,
    text: &str,
    id: Option<&str>,
    parent: Option<&str>,
) -> String {
    if !file.is_linked() {
        return text.to_owned();
    }
    let text = json::set_member(text, parent_member(file.form()), &quoted(parent));
    match id {
        Some(id) => json::set_member(&text, id_member(file.form()), &quote(id)),
        None => text,
    }
}

/// A new entry with a message, made like `neighbour`.
pub(super) fn message(
    file: &SessionFile,
    id: Option<&str>,
    parent: Option<&str>,
    neighbour: Option<usize>,
    message: &Message,
) -> String {
    let text = neighbour.map_or(Cow::Borrowed("{}"), |node| file.text(node));
    let members: Members<'_> = json::object(&text).unwrap_or_default();
    let mut line: Vec<(&str, Cow<'_, str>)> = Vec::new();
    // Where entries just follow one another, one link would take the others apart.
    let name = parent_member(file.form());
    let like = || members.get(name).map(|raw| Cow::Borrowed(raw.get()));
    let parent = if file.is_linked() { Some(quoted(parent).into()) } else { like() };
    let parent = parent.map(|parent| (name, parent));
    match file.form() {
        FileForm::Messages(_) | FileForm::Other => return message.raw().to_owned(),
        FileForm::ClaudeCode => {
            line.extend(parent);
            let like = |&name: &&'static str| Some((name, Cow::Borrowed(members.get(name)?.get())));
            line.extend(CLAUDE_CODE.iter().filter_map(like));
            line.push(("type", r#""user""#.into()));
            line.push(("message", message.raw().into()));
            line.extend(id.map(|id| ("uuid", quote(id).into())));
        }
        FileForm::OpenClaw { .. } => {
            line.push(("type", r#""message""#.into()));
            if let Some(id) = id {
                line.push(("id", quote(id).into()));
                line.extend(parent);
            }
        }
    }
    let timestamp = members.get("timestamp").map(|raw| Cow::Borrowed(raw.get()));
    line.extend(timestamp.map(|timestamp| ("timestamp", timestamp)));
    if let FileForm::OpenClaw { .. } = file.form() {
        line.push(("message", openclaw(file, &members, message).into()));
    }
    let members: Vec<_> =
        line.iter().map(|(name, value)| format!("{}:{value}", quote(name))).collect();
    format!("{{{}}}", members.join(","))
}

/// OpenClaw's results name their tool and their time.
fn openclaw(file: &SessionFile, neighbour: &Members<'_>, message: &Message) -> String {
    let mut text = message.raw().to_owned();
    let inner: Members<'_> = neighbour
        .get("message")
        .and_then(|message| json::object(message.get()).ok())
        .unwrap_or_default();
    let mut add = |name: &str, value: &str| {
        text.truncate(text.trim_end().len() - 1);
        text += &format!(",{}:{value}}}", quote(name));
    };
    if message.role() == Role::Tool
        && let Some(tool) = message.tool_results().next().and_then(|id| tool_of(file, id))
    {
        add("toolName", &quote(tool));
    }
    if let Some(timestamp) = inner.get("timestamp") {
        add("timestamp", timestamp.get());
    }
    text
}

/// The tool of a use.
fn tool_of<'f>(file: &'f SessionFile, wanted: &str) -> Option<&'f str> {
    let messages = file.entries.iter().filter_map(|located| located.entry.as_message());
    let mut kinds = messages.flat_map(Message::blocks).map(|block| &block.kind);
    kinds.find_map(|kind| match kind {
        Kind::Use { id, name, .. } if **id == *wanted => Some(&**name),
        _ => None,
    })
}

fn quoted(id: Option<&str>) -> String {
    id.map_or("null".to_owned(), quote)
}
