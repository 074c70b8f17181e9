//! What a repair did to a list of messages: which stay, change, go, come, or move.
use crate::{
    message::{Kind, Message, Role},
    repair::RepairPlan,
};
use std::{collections::HashMap, sync::Arc};

/// A message after the repair.
#[derive(Debug)]
pub(super) enum Now<'p> {
    /// It stays in its place: which it was.
    Kept(usize),
    /// It stands elsewhere.
    Moved(usize),
    /// Another takes its place.
    Changed(usize, &'p Message),
    New(&'p Message),
}

/// The messages after a repair, and which are gone.
pub(super) fn align<'p>(before: &[Message], plan: &'p RepairPlan) -> (Vec<Now<'p>>, Vec<usize>) {
    let identity = |message: &Message| Arc::as_ptr(&message.body) as usize;
    let places: HashMap<usize, usize> =
        before.iter().enumerate().map(|(at, message)| (identity(message), at)).collect();
    let after = plan.messages();
    let was: Vec<Option<usize>> =
        after.iter().map(|message| places.get(&identity(message)).copied()).collect();
    let in_place = longest_rise(&was);

    let mut gone: Vec<bool> = vec![true; before.len()];
    was.iter().flatten().for_each(|&at| gone[at] = false);
    let mut now: Vec<Now<'p>> = Vec::with_capacity(after.len());
    let mut from = 0;
    for (at, message) in after.iter().enumerate() {
        now.push(match was[at] {
            Some(was) if in_place[at] => {
                from = was + 1;
                Now::Kept(was)
            }
            Some(was) => Now::Moved(was),
            None => {
                // It takes the place of one that stood before the next that is kept.
                let kept = (at..after.len()).filter(|&at| in_place[at]);
                let to = kept.filter_map(|at| was[at]).next().unwrap_or(before.len());
                let mut places = from..to;
                match places.find(|&place| gone[place] && replaces(message, &before[place])) {
                    Some(place) => {
                        gone[place] = false;
                        from = place + 1;
                        Now::Changed(place, message)
                    }
                    None => Now::New(message),
                }
            }
        });
    }
    let gone = gone.iter().enumerate().filter(|(_, gone)| **gone).map(|(at, _)| at).collect();
    (now, gone)
}

/// Whether a repair may have made one of the other.
fn replaces(after: &Message, before: &Message) -> bool {
    match before.role() {
        // An orphaned result becomes a user's text; another only gets a new id.
        Role::Tool if after.role() == Role::Tool => content(after) == content(before),
        Role::Tool => after.role() == Role::User,
        role => after.role() == role,
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
