//! The last step of a session, which may still get results: its waiting uses.
use crate::keys::{Key, Keys, Lookup};
use std::sync::OnceLock;

/// The last step, which may still get results.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The index where it begins.
    pub(super) message: usize,
    /// The model may add to it.
    pub(super) grows: bool,
    uses: Vec<OpenUse>,
    /// How many of its uses wait, and the index before which none does.
    waiting: usize,
    first: usize,
    /// An index of its uses by key, if there are many.
    keys: OnceLock<Box<Keys>>,
}

#[derive(Clone, Debug)]
pub(super) struct OpenUse {
    pub(super) message: usize,
    pub(super) block: usize,
    pub(super) key: Key,
    pub(super) noun: &'static str,
    waits: bool,
}

/// Up to this many uses, a linear search is as fast as an index.
const FEW: usize = 8;

impl OpenUse {
    pub(super) const fn new(message: usize, block: usize, key: Key, noun: &'static str) -> Self {
        Self { message, block, key, noun, waits: true }
    }
}

impl Step {
    /// A step that begins at `message`.
    pub(super) const fn new(message: usize, grows: bool) -> Self {
        Self { message, grows, uses: Vec::new(), waiting: 0, first: 0, keys: OnceLock::new() }
    }

    pub(super) fn extend(&mut self, uses: Vec<OpenUse>) {
        self.waiting += uses.len();
        if let Some(keys) = self.keys.get_mut() {
            uses.iter().for_each(|open| keys.push(&open.key));
        }
        if self.uses.is_empty() {
            self.uses = uses;
        } else {
            self.uses.extend(uses);
        }
    }

    /// Whether a use waits.
    pub(super) const fn waits(&self) -> bool {
        self.waiting > 0
    }

    /// The uses that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &OpenUse> {
        self.uses[self.first..].iter().filter(|open| open.waits)
    }

    /// Assigns a result to the first waiting use with its key: pairs are made in order. Returns
    /// which use it is.
    pub(super) fn matching(&mut self, key: &Key) -> Lookup {
        let place = if self.uses.len() <= FEW {
            let mut same = (0..self.uses.len()).filter(|&at| self.uses[at].key.pairs(key));
            let last = same.clone().next_back().map_or(Lookup::None, Lookup::Answered);
            same.find(|&at| self.uses[at].waits).map_or(last, Lookup::Waits)
        } else {
            self.keys().find(key)
        };
        if let Lookup::Waits(at) = place {
            self.answer(at);
        }
        place
    }

    /// The first use with this id that waits.
    pub(super) fn waiting_with(&self, id: &str) -> Option<&OpenUse> {
        if self.uses.len() <= FEW {
            return self.waiting().find(|open| *open.key.id == *id);
        }
        self.keys().waiting_with(id).map(|at| &self.uses[at])
    }

    fn keys(&self) -> &Keys {
        self.keys.get_or_init(|| {
            let mut keys = Keys::of(self.uses.iter().map(|open| &open.key));
            let answered = self.uses.iter().enumerate().filter(|(_, open)| !open.waits);
            answered.for_each(|(at, open)| keys.answer(at, &open.key));
            Box::new(keys)
        })
    }

    /// Marks the uses in one of its messages as answered.
    pub(super) fn answer_in(&mut self, message: usize) {
        let from = self.uses.partition_point(|open| open.message < message);
        let to = self.uses.partition_point(|open| open.message <= message);
        (from..to).for_each(|at| self.answer(at));
    }

    fn answer(&mut self, at: usize) {
        let open = &mut self.uses[at];
        if !std::mem::replace(&mut open.waits, false) {
            return;
        }
        self.waiting -= 1;
        if let Some(keys) = self.keys.get_mut() {
            keys.answer(at, &open.key);
        }
        while self.uses.get(self.first).is_some_and(|open| !open.waits) {
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OpenUse, Step};
    use crate::{Format, Transcript};

    /// With a look through all of them for each, this would take hours.
    #[test]
    fn a_use_that_waits_is_found_at_once() {
        let uses = (0..200_000)
            .map(|n| format!(r#"{{"type":"tool_use","id":"t{n}","name":"read","input":{{}}}}"#));
        let uses = uses.collect::<Vec<_>>().join(",");
        let text = format!(r#"[{{"role":"assistant","content":[{uses}]}}]"#);
        let transcript = Transcript::read_as(Format::AnthropicMessages, &text).unwrap();
        let blocks = transcript.messages()[0].blocks();
        let keys = || blocks.iter().filter_map(|block| block.kind.key(false)).enumerate();

        let mut step = Step::new(0, false);
        step.extend(keys().map(|(at, key)| OpenUse::new(0, at, key, "use")).collect());
        for (at, key) in keys().skip(1).step_by(2) {
            assert_eq!(step.waiting_with(&key.id).map(|open| open.block), Some(at));
            step.matching(&key);
        }
        for (at, key) in keys() {
            let waits = (at % 2 == 0).then_some(at);
            assert_eq!(step.waiting_with(&key.id).map(|open| open.block), waits);
        }
        assert!(step.waiting_with("another").is_none());
    }
}
