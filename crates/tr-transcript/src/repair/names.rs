//! Searches a text for many ids at once, each quoted as in JSON.
use std::collections::{HashMap, VecDeque};

/// Ids, quoted as in JSON.
///
/// A quoted id occurs in a text if the parts between its quotes occur there between quotes. Most
/// ids have one part; one with escaped quotes has several. The parts form a trie, and a text is
/// matched in one pass (Aho–Corasick).
#[derive(Debug, Default)]
pub(crate) struct Names<'n> {
    nodes: Vec<Node>,
    next: HashMap<(usize, &'n str), usize>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// The id that ends at this node.
    name: Option<usize>,
    /// The node of the longest proper suffix that is also in the trie.
    back: usize,
    /// The nearest node along the suffix links at which an id ends.
    shorter: usize,
}

impl<'n> Names<'n> {
    /// Ids that are already quoted.
    pub(crate) fn of(quoted: &'n [String]) -> Self {
        let mut names = Self { nodes: vec![Node::default()], next: HashMap::new() };
        let mut children: Vec<Vec<(&str, usize)>> = vec![Vec::new()];
        for (name, quoted) in quoted.iter().enumerate() {
            let mut node = 0;
            for part in quoted[1..quoted.len() - 1].split('"') {
                let fresh = names.nodes.len();
                let child = *names.next.entry((node, part)).or_insert(fresh);
                if child == fresh {
                    names.nodes.push(Node::default());
                    children.push(Vec::new());
                    children[node].push((part, child));
                }
                node = child;
            }
            names.nodes[node].name = Some(name);
        }
        let mut open = VecDeque::from([0]);
        while let Some(node) = open.pop_front() {
            for &(part, child) in &children[node] {
                let back = if node == 0 { 0 } else { names.step(names.nodes[node].back, part) };
                let at_back = &names.nodes[back];
                let shorter = if at_back.name.is_some() { back } else { at_back.shorter };
                names.nodes[child] = Node { back, shorter, ..names.nodes[child] };
                open.push_back(child);
            }
        }
        names
    }

    /// The ids that occur in a text.
    pub(crate) fn find(&self, text: &str) -> impl Iterator<Item = usize> {
        let mut parts = text.split('"');
        // The text before the first quote and after the last one is not between quotes.
        parts.next();
        parts.next_back();
        let mut node = 0;
        parts.flat_map(move |part| {
            node = self.step(node, part);
            let ends = std::iter::successors(Some(node), |&at| {
                Some(self.nodes[at].shorter).filter(|&shorter| shorter != 0)
            });
            ends.filter_map(|at| self.nodes[at].name)
        })
    }

    fn step(&self, mut node: usize, part: &str) -> usize {
        loop {
            if let Some(&next) = self.next.get(&(node, part)) {
                return next;
            }
            if node == 0 {
                return 0;
            }
            node = self.nodes[node].back;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use crate::json;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        /// As looking for each alone would.
        #[test]
        fn all_that_stand_in_a_text_are_found(
            ids in vec("[ab\"]{0,3}", 1..8),
            text in "[ab\"\\\\]{0,30}",
        ) {
            let mut quoted: Vec<_> = ids.iter().map(|id| json::quote(id)).collect();
            quoted.sort();
            quoted.dedup();
            let names = Names::of(&quoted);
            let mut found: Vec<_> = names.find(&text).collect();
            found.sort_unstable();
            found.dedup();
            let within = (0..quoted.len()).filter(|&name| text.contains(&quoted[name]));
            prop_assert_eq!(found, within.collect::<Vec<_>>());
        }
    }
}
