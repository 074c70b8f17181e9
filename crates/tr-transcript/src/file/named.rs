//! Finds a line that names a call whose outcome a repair would report as unknown: a line in an
//! unknown form may hold that outcome.
use super::{
    done::{FileActionKind, FilePlan},
    drafts::Draft,
    entry::{Entry, What},
    form::FileForm,
    records::find_in_records,
    session_file::SessionFile,
};
use crate::{
    json::{self, Members},
    message::{Kind, Message},
    repair::{ActionKind, Names},
};
use memchr::memmem::Finder;
use std::collections::{BTreeSet, HashMap};

/// Up to this many ids are searched for one by one at first.
const FEW: usize = 16;

/// The lines of real results that are not sent to the model, by the ids of their calls.
pub(super) type UnsentResults = HashMap<Box<str>, u64>;

impl FilePlan {
    /// The calls whose outcome the repair reports as unknown.
    fn made_up(&self) -> BTreeSet<&str> {
        let acts = self.actions.iter().filter_map(|action| match &action.action {
            FileActionKind::Message(action) => Some(action),
            _ => None,
        });
        let made_up = acts.filter(|action| action.action == ActionKind::AddUnknown);
        let ids = made_up.filter_map(|action| action.tool_use_id.as_deref());
        ids.filter(|id| !id.is_empty()).collect()
    }

    /// Notes whether a result of such a call exists that is not sent to the model.
    pub(super) fn look_aside(&mut self, aside: &UnsentResults) {
        let made_up = self.made_up().into_iter();
        self.named_elsewhere = made_up.filter_map(|id| Some((*aside.get(id)?, id.into()))).min();
    }

    /// Searches the whole file for a line that names such a call.
    pub(super) fn look_for_names(&mut self, bytes: &[u8]) {
        let ids = self.made_up();
        if self.named_elsewhere.is_none() && !ids.is_empty() {
            self.named_elsewhere = first(FileForm::of(bytes), bytes, &ids);
        }
    }
}

impl SessionFile {
    /// The results that are not sent to the model with these messages.
    pub(super) fn unsent_results(&self, drafts: &[Draft]) -> UnsentResults {
        let mut is_shown = vec![false; self.entries.len()];
        let nodes = drafts.iter().flat_map(|draft| &draft.nodes);
        nodes.for_each(|&node| is_shown[node] = true);
        let mut aside = HashMap::new();
        for (located, _) in self.entries.iter().zip(is_shown).filter(|(_, is_shown)| !is_shown) {
            for block in located.entry.as_message().into_iter().flat_map(Message::blocks) {
                if let Kind::Result { id, synthetic: false, .. } = &block.kind {
                    aside.entry(Box::from(&**id)).or_insert(located.place.line);
                }
            }
        }
        aside
    }
}

/// The first line that names one of these calls, unless it is a message or a record that cannot
/// tell an outcome.
pub(super) fn first(form: FileForm, bytes: &[u8], ids: &BTreeSet<&str>) -> Option<(u64, Box<str>)> {
    let is_agents =
        form.is_claude_code() || matches!(form, FileForm::Codex | FileForm::OpenClaw { .. });
    if ids.is_empty() || !is_agents {
        return None;
    }
    let ids: Vec<&str> = ids.iter().copied().collect();
    let quoted: Vec<_> = ids.iter().map(|id| json::quote(id)).collect();
    let names = Names::of(&quoted);
    // A few are looked for before a line is read.
    let few: Vec<_> = quoted.iter().take(FEW).map(Finder::new).collect();
    let may_name = |line: &[u8]| ids.len() > FEW || few.iter().any(|id| id.find(line).is_some());
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let mut lines = lines.filter(|(_, line)| may_name(line));
    let named = |record: &str| names.find(record).next().filter(|_| tells(form, record));
    lines.find_map(|(number, line)| Some((number, ids[find_in_records(line, named)?].into())))
}

/// The members that tell whether a record may.
const READ: [&str; 6] = ["type", "role", "hookEvent", "message", "attachment", "payload"];

/// Whether a record that names a call may tell its outcome. Messages are judged elsewhere; records
/// that a call starts, awaits approval or is running tell no outcome.
fn tells(form: FileForm, record: &str) -> bool {
    if let What::Message { .. } | What::Empty(_) | What::Header { .. } | What::Leaf { .. } =
        Entry::read(form, record).what
    {
        return false;
    }
    let wire = Members::of(record, &READ).unwrap_or_default();
    let inside = |name, member| wire.inside(name, &READ).text(member);
    let is_silent = match form {
        FileForm::Codex => {
            let kind = inside("payload", "type");
            ["_begin", "_request", "_delta"].iter().any(|end| kind.ends_with(end))
        }
        _ if wire.text("type") == "attachment" => inside("attachment", "hookEvent") == "PreToolUse",
        _ => wire.text("type") == "progress",
    };
    inside("message", "role") != "assistant" && !is_silent
}
