//! Detects repairs that add "outcome unknown" although the answer may be in the transcript.
use super::{names::Names, zone::zone};
use crate::{
    json,
    keys::Key,
    message::{Kind, Message, Role},
    name::Name,
    transcript::Transcript,
};
use std::collections::{HashMap, HashSet};

impl Transcript {
    /// The first message that may hold the answer to a call for which `after` adds an unknown
    /// outcome: it names the call and is not fully understood, or it is the only result of a step's
    /// only call, under another tool's name, or it is a result with the call's id that `after` has
    /// as text. Such a repair may record a false outcome.
    #[must_use]
    pub fn first_doubtful_answer(&self, after: &Self) -> Option<usize> {
        let mut unknown = results(after, true);
        for (id, count) in results(self, true) {
            let left = unknown.get(id).copied().unwrap_or_default().saturating_sub(count);
            unknown.insert(id, left);
        }
        unknown.retain(|id, left| *left > 0 && !id.is_empty());
        if unknown.is_empty() {
            return None;
        }
        let ids: Vec<&str> = unknown.keys().copied().collect();
        let quoted: Vec<_> = ids.iter().map(|id| json::quote(id)).collect();
        let names = Names::of(&quoted);
        let (before, after) = (results(self, false), results(after, false));
        let is_text = |id: &str| unknown.contains_key(id) && after.get(id) < before.get(id);
        let may_answer = |(at, message): (usize, &Message)| {
            may_name(message, &ids, &names)
                || results_of(message, false).any(is_text)
                || self.misnamed_in(at).is_some_and(|id| unknown.contains_key(&*id))
        };
        self.messages().iter().enumerate().position(may_answer)
    }

    /// The id of the only call before the only result in this message, if both lack ids and their
    /// names differ.
    fn misnamed_in(&self, at: usize) -> Option<Name> {
        let (format, messages) = (self.format(), self.messages());
        if !format.rules().names_pair {
            return None;
        }
        let asked = at.checked_sub(1).filter(|&asked| messages[asked].role() == Role::Assistant)?;
        let call = only(&messages[asked], false)?;
        let result = only(&messages[at], true)?;
        let is_misnamed = zone(format, messages, asked).contains(&at)
            && !call.has_id
            && !result.has_id
            && !call.pairs(&result);
        is_misnamed.then_some(call.id)
    }
}

/// How many results there are for each id: those of repairs, or the others that name their id.
fn results(transcript: &Transcript, made_up: bool) -> HashMap<&str, usize> {
    let mut count = HashMap::new();
    for id in transcript.messages().iter().flat_map(|message| results_of(message, made_up)) {
        *count.entry(id).or_default() += 1;
    }
    count
}

fn results_of(message: &Message, made_up: bool) -> impl Iterator<Item = &str> {
    message.blocks().iter().filter_map(move |block| match &block.kind {
        Kind::Result { id, synthetic: true, .. } if made_up => Some(&**id),
        Kind::Result { id, id_at: Some(_), synthetic: false, .. } if !made_up => Some(&**id),
        _ => None,
    })
}

/// Whether an unknown part of a message names one of these ids, apart from the message's own calls.
fn may_name(message: &Message, ids: &[&str], names: &Names<'_>) -> bool {
    let mut named = message.not_understood().flat_map(|text| names.find(text)).peekable();
    if named.peek().is_none() {
        return false;
    }
    let calls: HashSet<&str> = message.tool_uses().collect();
    named.any(|name| !calls.contains(ids[name]))
}

/// The key of the only result of a message, or of its only call.
fn only(message: &Message, result: bool) -> Option<Key> {
    let blocks = message.blocks().iter().filter(|block| block.kind.is_result() == result);
    let mut found = blocks.filter_map(|block| block.kind.key(true));
    found.next().filter(|_| found.next().is_none())
}
