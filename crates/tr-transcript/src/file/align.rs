//! Compares a list of messages before and after a repair: which stay, change, move, go, or are new.
use crate::{
    message::{Kind, Message, Role},
    repair::RepairPlan,
};
use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    sync::Arc,
};

/// A message after the repair.
#[derive(Debug)]
pub(super) enum Aligned<'p> {
    /// Unchanged in its place: its index before.
    Kept(usize),
    /// Unchanged, but in another place.
    Moved(usize),
    /// A changed message, and the index of the one it replaces.
    Changed(usize, &'p Message),
    New(&'p Message),
}

/// The messages after a repair, and the indexes of those that are gone.
pub(super) fn align<'p>(
    before: &[Message],
    plan: &'p RepairPlan,
) -> (Vec<Aligned<'p>>, Vec<usize>) {
    let identity = |message: &Message| Arc::as_ptr(&message.body) as usize;
    let places: HashMap<usize, usize> =
        before.iter().enumerate().map(|(at, message)| (identity(message), at)).collect();
    let after = plan.messages();
    let was: Vec<Option<usize>> =
        after.iter().map(|message| places.get(&identity(message)).copied()).collect();
    let in_place = longest_rise(&was);

    let mut gone: Vec<bool> = vec![true; before.len()];
    was.iter().flatten().for_each(|&at| gone[at] = false);
    // For each message: itself or the next one that keeps its place.
    let mut kept_behind = vec![before.len(); after.len()];
    let mut next = before.len();
    for at in (0..after.len()).rev() {
        next = was[at].filter(|_| in_place[at]).unwrap_or(next);
        kept_behind[at] = next;
    }
    let mut places = Places::of(before);
    let mut now: Vec<Aligned<'p>> = Vec::with_capacity(after.len());
    let mut from = 0;
    for (at, message) in after.iter().enumerate() {
        now.push(match was[at] {
            Some(was) if in_place[at] => {
                from = was + 1;
                Aligned::Kept(was)
            }
            Some(was) => Aligned::Moved(was),
            // It replaces a message that stood before the next kept one.
            None => match places.take(message, &gone, from..kept_behind[at]) {
                Some(place) => {
                    gone[place] = false;
                    from = place + 1;
                    Aligned::Changed(place, message)
                }
                None => Aligned::New(message),
            },
        });
    }
    let gone = gone.iter().enumerate().filter(|(_, gone)| **gone).map(|(at, _)| at).collect();
    (now, gone)
}

/// The class of a message: a repair changes a message only into one of its class. Of a tool's message
/// it only changes the id; an orphaned result becomes a user's text.
type Class<'m> = (Role, Option<&'m str>);

/// What a message may have been made of.
fn class(message: &Message) -> Class<'_> {
    let role = message.role();
    (role, if role == Role::Tool { content(message) } else { None })
}

/// The places of removed messages that a changed one may take; each is looked at once.
struct Places<'m>(HashMap<Class<'m>, VecDeque<usize>>);

impl<'m> Places<'m> {
    fn of(before: &'m [Message]) -> Self {
        let mut places: HashMap<Class<'m>, VecDeque<usize>> = HashMap::new();
        for (at, message) in before.iter().enumerate() {
            places.entry(class(message)).or_default().push_back(at);
            if message.role() == Role::Tool {
                places.entry((Role::User, None)).or_default().push_back(at);
            }
        }
        Self(places)
    }

    /// The first place within `range` whose message is gone and that `message` may replace. Later
    /// calls pass ranges that begin no earlier.
    fn take(&mut self, message: &'m Message, gone: &[bool], range: Range<usize>) -> Option<usize> {
        let places = self.0.get_mut(&class(message))?;
        while places.front().is_some_and(|&place| place < range.start || !gone[place]) {
            places.pop_front();
        }
        places.front().filter(|place| **place < range.end)?;
        places.pop_front()
    }
}

/// What a tool answered, in a form where results are messages.
fn content(message: &Message) -> Option<&str> {
    let kind = &message.blocks().first()?.kind;
    let Kind::Result { content: Some(span), .. } = kind else { return None };
    Some(message.text(span))
}

/// Which of the numbers, in their order, make the longest rising sequence.
fn longest_rise(numbers: &[Option<usize>]) -> Vec<bool> {
    // The last of the best sequence of each length, and what comes before each.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = vec![None; numbers.len()];
    for (at, number) in numbers.iter().enumerate() {
        if number.is_none() {
            continue;
        }
        let length = ends.partition_point(|&end| numbers[end] < *number);
        previous[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut rises = vec![false; numbers.len()];
    let mut next = ends.last().copied();
    while let Some(at) = next {
        rises[at] = true;
        next = previous[at];
    }
    rises
}

#[cfg(test)]
mod tests {
    use super::longest_rise;

    #[test]
    fn few_numbers_are_out_of_order() {
        let rise = |numbers: &[usize]| {
            let all: Vec<_> = numbers.iter().copied().map(Some).collect();
            let rises = longest_rise(&all);
            numbers
                .iter()
                .zip(rises)
                .filter(|(_, rises)| *rises)
                .map(|(n, _)| *n)
                .collect::<Vec<_>>()
        };
        assert_eq!(rise(&[0, 1, 2, 3]), [0, 1, 2, 3]);
        assert_eq!(rise(&[0, 3, 1, 2, 4]), [0, 1, 2, 4]);
        assert_eq!(rise(&[2, 0, 1]), [0, 1]);
        assert!(rise(&[]).is_empty());
    }
}
