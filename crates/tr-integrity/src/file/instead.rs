//! What takes the place of entries that a repair removes.
use std::collections::HashMap;

/// What stands in the place of entries that go.
#[derive(Debug, Default)]
pub(super) struct Instead {
    /// As a parent.
    pub(super) parents: HashMap<Box<str>, Option<Box<str>>>,
    /// As the first that is kept.
    pub(super) nexts: HashMap<Box<str>, Box<str>>,
    waiting: Vec<Box<str>>,
}

impl Instead {
    /// An entry of the branch goes that stands behind `parent`.
    pub(super) fn go(&mut self, id: Option<&str>, parent: Option<&str>) {
        let Some(id) = id else { return };
        self.parents.insert(id.into(), parent.map(Into::into));
        self.waiting.push(id.into());
    }

    /// The next entry that stays.
    pub(super) fn next(&mut self, id: &str) {
        for gone in self.waiting.drain(..) {
            self.nexts.insert(gone, id.into());
        }
    }

    /// The nearest entry up the tree that stays.
    pub(super) fn parent_of(&self, gone: &str) -> Option<Box<str>> {
        let mut parent = Some(gone);
        // A circle of links ends after all of them.
        for _ in 0..=self.parents.len() {
            match parent.and_then(|id| self.parents.get(id)) {
                Some(up) => parent = up.as_deref(),
                None => break,
            }
        }
        parent.map(Into::into)
    }
}
