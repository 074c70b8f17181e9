//! Follows a session's active branch while its entries come, in bounded memory.
use super::{
    drafts::{self, Draft},
    entry::{self, Entry, Link, What},
    finding::{FileFault, FileFinding},
    form::FileForm,
    located::{Located, Place},
    path::{self, Path},
    relink,
    walk::Walk,
};
use crate::{
    format::Applies,
    message::{Blank, Block, Body, Kind, Message, Role, Unknown},
};
use std::borrow::Cow;

/// The newest entries of a session, and the findings of the older ones.
#[derive(Debug)]
pub(super) struct Branch {
    form: FileForm,
    /// About how many bytes of entries are kept.
    window: usize,
    entries: Vec<Located>,
    cost: usize,
    /// The cost at which older entries are settled.
    limit: usize,
    /// Which members that the provider refuses on their own are checked, if they are.
    members: Option<Applies>,
    /// Whether it is noted where each message begins.
    notes: bool,
    /// The findings of the entries before these.
    settled: Option<Walk>,
    is_linked: bool,
}

impl Branch {
    pub(super) fn new(form: FileForm, window: usize, members: bool, notes: bool) -> Self {
        let (entries, cost, limit) = (Vec::new(), 0, window);
        let members = members.then(|| form.applies());
        Self { form, window, entries, cost, limit, members, notes, settled: None, is_linked: false }
    }

    pub(super) fn push(&mut self, entry: Entry, at: Place) {
        match self.form {
            FileForm::Other => return,
            // In these files no entry hides earlier ones.
            FileForm::Messages(format) => {
                let walk =
                    self.settled.get_or_insert_with(|| Walk::new(format, self.members, self.notes));
                if let Some(message) = entry.as_message() {
                    walk.push(message, |_| at);
                }
                return;
            }
            _ => {}
        }
        if let (What::Header { is_openais: false }, Some(members)) =
            (&entry.what, &mut self.members)
        {
            members.is_other = true;
        }
        if entry.is_outside() && !matches!(entry.what, What::Leaf { .. }) {
            return;
        }
        if let What::Undone(turns) = entry.what
            && relink::undo(&mut self.entries, turns, self.settled.is_some())
        {
            return;
        }
        self.cost += cost(&entry);
        self.entries.push(Located { entry, place: at });
        if self.cost > self.limit {
            self.settle();
        }
    }

    /// What was found on the active branch; `None` if nothing is known of such files.
    pub(super) fn finish(mut self) -> Option<Walk> {
        let (path, drafts) = self.view();
        let mut walk = self.begin(&path)?;
        self.walk(&mut walk, &path, &drafts);
        Some(walk)
    }

    /// The active branch so far, and its messages.
    fn view(&mut self) -> (Path, Vec<Draft>) {
        let (form, has_before) = (self.form, self.settled.is_some());
        relink::link(&mut self.entries, has_before);
        self.is_linked = self.is_linked || path::is_linked(&self.entries);
        let path = Path::active(form, &self.entries, has_before, self.is_linked);
        let drafts = drafts::drafts(form, &self.entries, &path);
        (path, drafts)
    }

    /// Starts the walk, or continues the one that this path extends.
    fn begin(&mut self, path: &Path) -> Option<Walk> {
        let mut walk = self.settled.take().filter(|_| path.continues);
        if let Some(walk) = walk.as_mut().filter(|_| path.forgets) {
            walk.forget();
        }
        walk.or_else(|| {
            let mut walk = Walk::new(self.form.messages()?, self.members, self.notes);
            // Messages that are not known may hold the uses of later results.
            walk.validator.items.continues = path.rewritten.is_some();
            Some(walk)
        })
    }

    fn walk(&self, walk: &mut Walk, path: &Path, drafts: &[Draft]) {
        for draft in drafts {
            let message = draft.to_skeleton(&self.entries);
            walk.push(&message, |block| self.entries[draft.node(&self.entries, block)].place);
        }
        let unsure = path.unsure.iter().map(|&node| (node, FileFault::UnsurePlace));
        let unread = path.unread.iter().map(|&node| (node, FileFault::UnreadMessage));
        for (node, fault) in path.phantoms.iter().copied().chain(unsure).chain(unread) {
            let Located { entry, place } = &self.entries[node];
            let finding = FileFinding::of_record(fault, place.line, place.offset);
            let parent = match &entry.link {
                Link::To(parent) if fault.is_of_parent() => Some((&**parent).into()),
                _ => None,
            };
            walk.others.push(FileFinding { parent, ..finding });
        }
    }

    /// Drops the older half of the entries, as if no later entry refers to them.
    fn settle(&mut self) {
        let (mut path, drafts) = self.view();
        let Some(mut walk) = self.begin(&path) else { return };
        let cut = cut(&self.entries, &drafts);
        let first_kept = drafts.get(cut).map_or(self.entries.len(), |draft| {
            draft.nodes.iter().copied().min().unwrap_or_default()
        });
        let settled: Vec<usize> =
            drafts[..cut].iter().flat_map(|draft| draft.nodes.clone()).collect();
        let mut is_settled = vec![false; self.entries.len()];
        settled.iter().for_each(|&at| is_settled[at] = true);
        path.phantoms.retain(|&(phantom, _)| is_settled[phantom]);
        path.unread.retain(|&unread| unread < first_kept);
        path.unsure.retain(|&unsure| unsure < first_kept);
        self.walk(&mut walk, &path, &drafts[..cut]);
        self.settled = Some(walk);

        let is_kept = |(at, is_settled): (usize, &bool)| at >= first_kept && !is_settled;
        let keeps: Vec<bool> = is_settled.iter().enumerate().map(is_kept).collect();
        // The walk has applied these already; they must not hide anything twice.
        if cut > 0 {
            for located in &mut self.entries {
                if matches!(
                    located.entry.what,
                    What::Reset(_) | What::Rewritten | What::Compaction(_)
                ) {
                    located.entry.what = What::Hidden;
                }
            }
        }
        self.keep(keeps);
        if self.cost > self.window / 4 * 3 {
            self.drop_other_branches();
        }
        self.limit = self.window.max(self.cost.saturating_mul(2));
    }

    /// Drops the entries of other branches, except those after the last step of the active one.
    fn drop_other_branches(&mut self) {
        let (path, drafts) = self.view();
        let last_step = drafts.iter().rfind(|draft| draft.role == Role::Assistant);
        let newest = last_step.map_or(self.entries.len(), |step| step.nodes[0]);
        let mut keeps: Vec<bool> = (0..self.entries.len()).map(|at| at >= newest).collect();
        let nodes = drafts.iter().flat_map(|draft| &draft.nodes).chain(&path.branch);
        nodes.for_each(|&node| keeps[node] = true);
        self.keep(keeps);
    }

    fn keep(&mut self, keeps: Vec<bool>) {
        let mut keeps = keeps.into_iter();
        self.entries.retain(|_| keeps.next().unwrap_or_default());
        self.cost = self.entries.iter().map(|located| cost(&located.entry)).sum();
    }
}

/// How many of the drafts can be settled: about two thirds, up to the start of a turn or a step.
/// The last step stays, because its results may be linked to any of its lines.
fn cut(entries: &[Located], drafts: &[Draft]) -> usize {
    let begins_turn = |draft: &Draft| {
        let is_text = |&(node, block): &(usize, usize)| {
            let message = entries[node].entry.as_message();
            message.is_some_and(|message| !message.blocks()[block].kind.is_result())
        };
        draft.role == Role::User && draft.blocks.iter().all(is_text)
    };
    let last_step = drafts.iter().rposition(|draft| draft.role == Role::Assistant);
    let Some(last_step) = last_step else { return 0 };
    let most = (drafts.len() / 3 * 2).min(last_step);
    let turn = (most..=last_step).find(|&at| begins_turn(&drafts[at]));
    let step = || (0..=most).rfind(|&at| drafts[at].role == Role::Assistant);
    turn.or_else(step).unwrap_or(0)
}

/// About how many bytes an entry takes up.
fn cost(entry: &Entry) -> usize {
    let blocks = entry.as_message().map_or(0, |message| message.blocks().len());
    400 + 200 * blocks
}

impl Draft {
    /// The entry that holds this block, or the message's first entry.
    fn node(&self, entries: &[Located], block: Option<usize>) -> usize {
        let node = block.and_then(|block| {
            let blank = || self.blanks(entries).nth(block - self.blocks.len());
            self.blocks.get(block).map(|&(node, _)| node).or_else(blank)
        });
        node.unwrap_or(self.nodes[0])
    }

    /// Whether the draft is exactly one entry's message.
    pub(super) fn is_one_entry(&self) -> bool {
        self.nodes.len() == 1 && self.blocks.is_sorted()
    }

    /// The message with its blocks, without their texts.
    pub(super) fn to_skeleton<'e>(&self, entries: &'e [Located]) -> Cow<'e, Message> {
        let message = |node: usize| entries[node].entry.as_message();
        if self.is_summary {
            return Cow::Owned(entry::said());
        }
        if self.is_filled {
            return Cow::Owned(entry::filled());
        }
        if let Some(only) = message(self.nodes[0]).filter(|_| self.is_one_entry()) {
            return Cow::Borrowed(only);
        }
        let blocks = self.blocks.iter().filter_map(|&(node, block)| {
            message(node).map(|message| message.blocks()[block].clone())
        });
        let blank = |_| Block::new(0..0, Kind::Text(Blank::Empty));
        let blocks = blocks.chain(self.blanks(entries).map(blank));
        let (role, blocks) = (self.role, blocks.collect());
        // If one line is not understood, the joined message is not either.
        let mut all = self.nodes.iter().filter_map(|&node| message(node)?.body.unknown);
        let unknown = all.find(|unknown| *unknown == Unknown::Content);
        let refused =
            self.nodes.iter().find_map(|&node| message(node)?.refused().cloned()).map(Box::new);
        let images = |&node: &usize| message(node).map_or(0, |message| message.body.images);
        let images = self.nodes.iter().map(images).sum();
        let body = Body { role, blocks, unknown, refused, images, ..Body::of(Box::default()) };
        Cow::Owned(Message::new(body))
    }
}
