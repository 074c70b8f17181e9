//! The messages of a branch as the model sees them: Claude Code writes one as several lines.
use super::{
    entry::{Link, What},
    form::FileForm,
    located::{Ids, Located},
    path::Path,
};
use crate::message::{Message, Role, Unknown};
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};

/// A message as the model sees it, and the entries that form it.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) role: Role,
    /// The entry that names its group, if one does.
    group: Option<usize>,
    /// Its blocks: each an entry's, by its place in the list of entries.
    pub(super) blocks: SmallVec<[(usize, usize); 1]>,
    pub(super) nodes: SmallVec<[usize; 1]>,
    /// How many of its blocks are results. In Claude Code's form those come first.
    results: usize,
    /// Whether it is a summary, which stands for entries that are not shown.
    pub(super) is_summary: bool,
    /// Whether it is an answer without blocks, for which Claude Code sends a text of its own.
    pub(super) is_filled: bool,
}

/// The messages of a path.
pub(super) fn drafts(form: FileForm, entries: &[Located], path: &Path) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::with_capacity(path.nodes.len());
    if let Some(summary) = path.summary {
        drafts.push(Draft { is_summary: true, ..Draft::new(Role::User, None, summary) });
    }
    let joins = form.is_claude_code();
    let nodes = if joins { with_siblings(entries, path) } else { path.nodes.clone() };
    for node in nodes {
        let What::Message { message, group } = &entries[node].entry.what else { continue };
        let role = message.role();
        let group_of = |node: Option<usize>| entries[node?].entry.answer();
        let open = if joins {
            Draft::to_join(&mut drafts, role, group.as_deref(), group_of)
        } else {
            None
        };
        match open {
            Some(open) => open.join(node, message, joins),
            None => {
                let mut draft = Draft::new(role, group.as_ref().map(|_| node), node);
                draft.nodes.clear();
                draft.join(node, message, joins);
                drafts.push(draft);
            }
        }
    }
    let is_nothing = |&node: &usize| {
        let message = entries[node].entry.as_message();
        message
            .is_some_and(|it| it.body.unknown != Some(Unknown::Content) && it.refused().is_none())
    };
    let is_result = |&(node, block): &(usize, usize)| {
        let message = entries[node].entry.as_message();
        message.is_some_and(|message| message.blocks()[block].kind.is_result())
    };
    for draft in &mut drafts {
        if joins && draft.role == Role::Assistant && draft.blocks.is_empty() {
            draft.is_filled = draft.nodes.iter().all(is_nothing);
        }
        let is_mixed = draft.results > 0 && draft.results < draft.blocks.len();
        if is_mixed {
            draft.blocks.sort_by_key(|at| !is_result(at));
        }
    }
    drafts
}

impl Draft {
    fn new(role: Role, group: Option<usize>, node: usize) -> Self {
        let (blocks, nodes) = (SmallVec::new(), smallvec![node]);
        Self { role, group, blocks, nodes, results: 0, is_summary: false, is_filled: false }
    }

    /// The draft that a message belongs to: a user's message joins the user's before it, the
    /// model's joins its group, from which only results may separate it.
    fn to_join<'d, 'e>(
        drafts: &'d mut [Self],
        role: Role,
        group: Option<&str>,
        group_of: impl Fn(Option<usize>) -> Option<&'e str>,
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
                    .filter(|draft| draft.role == role && group_of(draft.group) == group)
            }
            _ => None,
        }
    }

    /// Its lines with the text `""`: next to other lines, Claude Code sends each as a block.
    pub(super) fn blanks(&self, entries: &[Located]) -> impl Iterator<Item = usize> {
        let is_blank = |node: &usize| {
            let message = entries[*node].entry.as_message();
            message.is_some_and(|it| it.blocks().is_empty() && it.body.unknown.is_none())
        };
        let is_asked = self.role == Role::User && self.nodes.len() > 1;
        self.nodes.iter().copied().filter(move |node| is_asked && is_blank(node))
    }

    /// Counts the results if they come first, as Claude Code sends them.
    fn join(&mut self, node: usize, message: &Message, hoists: bool) {
        self.nodes.push(node);
        self.blocks.extend((0..message.blocks().len()).map(|block| (node, block)));
        if hoists && self.role == Role::User {
            self.results += message.tool_results().count();
        }
    }
}

/// The path's nodes and what Claude Code sends with them: behind the last line of each answer on the
/// path the answer's other lines, wherever they are linked, in the order of the file, and then the
/// results that are linked to any of its lines. In a step with several results each is linked to the
/// line of its own use, so that the branch contains only one of them.
fn with_siblings(entries: &[Located], path: &Path) -> Vec<usize> {
    let mut is_on_path = vec![false; entries.len()];
    path.nodes.iter().for_each(|&node| is_on_path[node] = true);
    // Of the lines off the path: those of each answer, and the results linked to each line.
    let (mut lines_of, mut results_of) =
        (HashMap::<&str, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
    let found =
        |at: usize| entries[at].entry.as_message().into_iter().flat_map(Message::tool_results);
    let id = |at: usize| entries[at].entry.id.as_ref();
    let mut results = Vec::new();
    for at in (0..entries.len()).filter(|&at| !is_on_path[at]) {
        match (entries[at].entry.answer(), &entries[at].entry.link) {
            (Some(answer), _) => lines_of.entry(answer).or_default().push(at),
            (None, Link::To(parent)) if found(at).next().is_some() => results.push((at, &**parent)),
            _ => {}
        }
    }
    if lines_of.is_empty() && results.is_empty() {
        return path.nodes.clone();
    }
    let mut answered: HashSet<&str> = path.nodes.iter().flat_map(|&node| found(node)).collect();
    let parents: HashSet<&str> = results.iter().map(|&(_, parent)| parent).collect();
    let ids = Ids::among(entries, |id| parents.contains(id));
    for (at, parent) in results {
        if let Some(parent) = ids.parent(parent, at) {
            results_of.entry(parent).or_default().push(at);
        }
    }
    let mut on_path: HashMap<&str, Vec<usize>> = HashMap::new();
    for &node in &path.nodes {
        if let Some(answer) = entries[node].entry.answer() {
            on_path.entry(answer).or_default().push(node);
        }
    }
    let mut nodes = Vec::with_capacity(path.nodes.len());
    for &node in &path.nodes {
        nodes.push(node);
        let Some(answer) = entries[node].entry.answer() else { continue };
        let lines = on_path.get(answer).filter(|lines| lines.last() == Some(&node));
        let Some(mut lines) = lines.cloned() else { continue };
        let mut said: HashSet<_> = lines.iter().filter_map(|&line| id(line)).collect();
        for line in lines_of.remove(answer).unwrap_or_default() {
            // Claude Code reads the lines of one id as one.
            if id(line).is_none_or(|id| said.insert(id)) {
                nodes.push(line);
            }
            lines.push(line);
        }
        for line in lines {
            for result in results_of.remove(&line).unwrap_or_default() {
                if found(result).all(|id| !answered.contains(id)) {
                    answered.extend(found(result));
                    nodes.push(result);
                }
            }
        }
    }
    nodes
}
