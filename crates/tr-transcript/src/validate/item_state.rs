//! The validator's state for forms of items, where a result may be anywhere after its use.
use super::ids::{Ids, Link};

/// The state for items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Items {
    /// The provider stores earlier items that are not here.
    pub(crate) continues: bool,
    /// The first reference to a stored item, which may be a use or a result.
    pub(super) reference: Option<usize>,
    /// The uses of each id.
    pub(super) uses: Ids<Place>,
    /// The uses that were answered, in order.
    answers: Vec<Answer>,
    /// The items of each id.
    pub(super) ids: Ids,
    /// Reasoning without output so far: the messages, and the items' ids.
    pub(super) reasoning: Vec<(usize, Box<str>)>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    result: usize,
    used: usize,
    /// The last use of its id at that time.
    last: usize,
}

/// Uses of one id and one step are answered in order, those of a later step first.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The index where its step begins.
    step: usize,
    pub(super) result: Option<usize>,
    /// The next use of this id in the step.
    next: Link,
    /// For the first use of an id in a step: the waiting use of an earlier step, which is next once
    /// all of this step are answered.
    below: Link,
    /// For the first use: itself. For others: the first one.
    first: Link,
    /// For the last use of an id: the use that the next result answers.
    open: Link,
}

impl Items {
    /// Adds a use of a step.
    pub(super) fn note(&mut self, id: &str, message: usize, step: usize) {
        let at = Link::to(self.uses.len());
        let last = self.uses.of(id).next();
        let mut place =
            Place { step, result: None, next: Link::NONE, below: Link::NONE, first: at, open: at };
        if let Some(last) = last {
            let was = self.uses.what_mut(last);
            if was.step == step {
                was.next = at;
                place.first = was.first;
                let waits = was.open;
                let is_same = |&open: &usize| self.uses.what(open).step == step;
                // If all uses before it are answered, it is the next one to answer.
                place.open = waits.at().filter(is_same).map_or(at, |_| waits);
            } else {
                place.below = was.open;
            }
        }
        self.uses.note(id, message, place);
    }

    /// Assigns a result to the nearest step with an unanswered use of this id, and there to the
    /// first one.
    pub(super) fn answer(&mut self, id: &str, result: usize) -> Option<usize> {
        let last = self.uses.of(id).next()?;
        let used = self.uses.what(last).open.at()?;
        let Place { next, first, .. } = *self.uses.what(used);
        let below = first.at().map_or(Link::NONE, |first| self.uses.what(first).below);
        let open = if next == Link::NONE { below } else { next };
        self.uses.what_mut(last).open = open;
        self.uses.what_mut(used).result = Some(result);
        self.answers.push(Answer { result, used, last });
        Some(self.uses.message(used))
    }

    /// Removes the uses and ids of all but the first `len` messages.
    pub(super) fn truncate(&mut self, len: usize) {
        while let Some(Answer { used, last, .. }) = self.answers.pop_if(|it| it.result >= len) {
            self.uses.what_mut(used).result = None;
            self.uses.what_mut(last).open = Link::to(used);
        }
        while let Some(before) = self.uses.pop_from(len) {
            if let Some(before) = before {
                self.uses.what_mut(before).next = Link::NONE;
            }
        }
        self.ids.truncate(len);
    }
}
