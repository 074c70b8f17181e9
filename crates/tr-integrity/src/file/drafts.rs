//! The messages of a branch as the model sees them: Claude Code writes one as several lines.
use super::{
    entry::{Link, What},
    form::FileForm,
    path::{Ids, Located, Path},
};
use crate::message::{Message, Role, Unknown};
use std::collections::{HashMap, HashSet};

/// A message as the model sees it, and the entries that it is made of.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) role: Role,
    group: Option<Box<str>>,
    /// Its blocks: each an entry's, by its place in the list of entries.
    pub(super) blocks: Vec<(usize, usize)>,
    pub(super) nodes: Vec<usize>,
    /// How many of its blocks are results. Those go to its head, where it is Claude Code's.
    results: usize,
    /// Whether it is a summary, which stands for entries that are not shown.
    pub(super) is_summary: bool,
}

/// The messages of a path.
pub(super) fn drafts(form: FileForm, entries: &[Located], path: &Path) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    if let Some(summary) = path.summary {
        drafts.push(Draft { is_summary: true, ..Draft::new(Role::User, None, summary) });
    }
    let nodes = match form {
        form if form.is_claude_code() => with_siblings(entries, path),
        _ => path.nodes.clone(),
    };
    for node in nodes {
        let What::Message { message, group } = &entries[node].entry.what else { continue };
        let role = message.role();
        // Claude Code sends no answer in which nothing is.
        let is_empty = message.blocks().is_empty() && message.unknown() != Some(Unknown::Content);
        if is_empty && role == Role::Assistant && form.is_claude_code() {
            continue;
        }
        let open = match form {
            form if form.is_claude_code() => Draft::to_join(&mut drafts, role, group.as_deref()),
            _ => None,
        };
        match open {
            Some(open) => open.join(node, message, form),
            None => {
                let mut draft = Draft::new(role, group.clone(), node);
                draft.nodes.clear();
                draft.join(node, message, form);
                drafts.push(draft);
            }
        }
    }
    for draft in drafts.iter_mut().filter(|draft| draft.results > 0) {
        let kind = |&(node, block): &(usize, usize)| {
            let message = entries[node].entry.as_message();
            message.is_some_and(|message| message.blocks()[block].kind.is_result())
        };
        draft.blocks.sort_by_key(|at| !kind(at));
    }
    drafts
}

impl Draft {
    fn new(role: Role, group: Option<Box<str>>, node: usize) -> Self {
        let (blocks, nodes) = (Vec::new(), vec![node]);
        Self { role, group, blocks, nodes, results: 0, is_summary: false }
    }

    /// The draft that a message belongs to: a user's to the user's before it, the model's to that
    /// of its group, from which only results may part it.
    fn to_join<'d>(
        drafts: &'d mut [Self],
        role: Role,
        group: Option<&str>,
    ) -> Option<&'d mut Self> {
        match role {
            Role::User => {
                drafts.last_mut().filter(|draft| draft.role == Role::User && !draft.is_summary)
            }
            Role::Assistant if group.is_some() => {
                let mut back = drafts.iter_mut().rev();
                let may_part =
                    |draft: &Self| draft.role == Role::User && draft.results == draft.blocks.len();
                back.find(|draft| !may_part(draft))
                    .filter(|draft| draft.role == role && draft.group.as_deref() == group)
            }
            _ => None,
        }
    }

    /// Claude Code's results go to the head, where the harness puts them too.
    fn join(&mut self, node: usize, message: &Message, form: FileForm) {
        self.nodes.push(node);
        for (block, part) in message.blocks().iter().enumerate() {
            let hoists = form.is_claude_code() && self.role == Role::User;
            self.results += usize::from(hoists && part.kind.is_result());
            self.blocks.push((node, block));
        }
    }
}

/// Claude Code links each of several results of a step to the line of its own use, so that the
/// branch passes by all but one of them. The path's nodes with those.
fn with_siblings(entries: &[Located], path: &Path) -> Vec<usize> {
    let mut is_on_path = vec![false; entries.len()];
    path.nodes.iter().for_each(|&node| is_on_path[node] = true);
    let mut beside: Vec<(usize, &str)> = Vec::new();
    for (at, located) in entries.iter().enumerate() {
        if let (Link::To(parent), Some(_)) = (&located.entry.link, located.entry.as_message())
            && !is_on_path[at]
        {
            beside.push((at, parent));
        }
    }
    if beside.is_empty() {
        return path.nodes.clone();
    }
    let mut answered: HashSet<&str> = HashSet::new();
    for &node in &path.nodes {
        answered
            .extend(entries[node].entry.as_message().into_iter().flat_map(Message::tool_results));
    }
    let parents: HashSet<&str> = beside.iter().map(|&(_, parent)| parent).collect();
    let ids = Ids::among(entries, |id| parents.contains(id));
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, parent) in beside {
        if let Some(parent) = ids.parent(parent, at) {
            children.entry(parent).or_default().push(at);
        }
    }
    let mut nodes = Vec::with_capacity(path.nodes.len());
    for &node in &path.nodes {
        nodes.push(node);
        let What::Message { message, group: Some(group) } = &entries[node].entry.what else {
            continue;
        };
        if message.role() != Role::Assistant {
            continue;
        }
        let mut found = vec![node];
        while let Some(of) = found.pop() {
            for child in children.remove(&of).unwrap_or_default() {
                let What::Message { message, group: other } = &entries[child].entry.what else {
                    continue;
                };
                let is_of_group =
                    message.role() == Role::Assistant && other.as_ref() == Some(group);
                let brings_results = message.role() == Role::User
                    && message.tool_results().next().is_some()
                    && message.tool_results().all(|id| !answered.contains(id));
                if is_of_group {
                    found.push(child);
                }
                if brings_results {
                    answered.extend(message.tool_results());
                }
                if is_of_group || brings_results {
                    nodes.push(child);
                }
            }
        }
    }
    nodes
}
