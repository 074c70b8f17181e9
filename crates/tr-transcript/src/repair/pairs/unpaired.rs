//! Results that their own step does not pair: the call that one certainly answers, the text that
//! it becomes otherwise, and the marks that a replacement keeps.
use super::{Fate, Found, Pairs, copies::Copies, is_random};
use crate::{
    format::{Format, with_mark_of},
    json,
    message::{Message, Role},
};
use serde_json::Value;
use std::collections::HashMap;

/// The uses of an id, each as its step and its place there, in order.
type Uses = HashMap<Box<str>, Vec<(usize, usize)>>;

impl Pairs<'_> {
    /// Pairs each remaining real result with the unanswered use that it certainly answers.
    pub(super) fn bring_home(&mut self, messages: &[&Message]) {
        let mut uses = Uses::new();
        for (number, step) in self.steps.iter().enumerate() {
            for (place, used) in step.uses.iter().enumerate() {
                uses.entry(used.id.clone()).or_default().push((number, place));
            }
        }
        let turns = turns(messages);
        for result in 0..self.found.len() {
            let found = &self.found[result];
            // Without an id, a result outside of its step cannot be assigned to a call.
            if found.fate != Fate::Unpaired || found.is_synthetic || !found.has_own_id {
                continue;
            }
            let Some(uses) = uses.get(&*found.key.id) else { continue };
            let Some((step, place)) = self.certain(result, uses, &turns) else { continue };
            if let Some(synthetic) = self.steps[step].uses[place].answer.replace(result) {
                self.found[synthetic].fate = Fate::Drop;
                self.found[result].instead_of.push(synthetic);
            }
            self.found[result].fate = Fate::Answers;
            self.found[result].is_moved = self.found[result].home != Some(step);
        }
    }

    /// The unanswered use that a result certainly answers: the only one with its random id. An id
    /// that was counted up, or that repeats, may be that of a lost call, too. So it names only a
    /// call of the same turn of the user's whose step waits no longer; of several such calls, one of
    /// the last step before the result.
    fn certain(
        &self,
        result: usize,
        uses: &[(usize, usize)],
        turns: &[usize],
    ) -> Option<(usize, usize)> {
        let found = &self.found[result];
        let waits = |&&(step, place): &&(usize, usize)| {
            let answer = self.steps[step].uses[place].answer;
            answer.is_none_or(|answer| self.found[answer].is_synthetic)
        };
        if let [only] = uses
            && is_random(&found.key.id)
        {
            return Some(only).filter(waits).copied();
        }
        let before = uses.partition_point(|&(step, _)| self.steps[step].at <= found.at);
        let uses = if uses.len() == 1 { uses } else { &uses[..before] };
        let last = uses.last()?.0;
        let step = &self.steps[last];
        if step.is_live || turns[step.at] != turns[found.at] {
            return None;
        }
        // Within a step, uses are answered in order.
        uses.iter().filter(|(step, _)| *step == last).find(waits).copied()
    }

    /// Turns unpaired results into text; removes those that a repair added or that are certainly
    /// copies.
    pub(super) fn settle_strays(&mut self, messages: &[&Message]) {
        let is_stray = |found: &Found<'_>| matches!(found.fate, Fate::Unpaired | Fate::Duplicate);
        if !self.found.iter().any(is_stray) {
            return;
        }
        let copies = Copies::of(self, messages);
        let answers = self.found.iter().enumerate().filter(|(_, it)| it.fate == Fate::Answers);
        let answers: HashMap<(&str, Option<&str>), usize> =
            answers.map(|(at, found)| ((found.id, found.content), at)).collect();
        for result in 0..self.found.len() {
            let found = &self.found[result];
            if !is_stray(found) {
                continue;
            }
            let same = answers.get(&(found.id, found.content)).copied();
            let same = same.filter(|&same| copies.has(found, &self.found[same], messages));
            let goes = found.is_synthetic || same.is_some();
            self.found[result].fate = if goes { Fate::Drop } else { Fate::Text };
            if let Some(same) = same {
                self.found[same].instead_of.push(result);
            }
        }
    }

    /// The cache marks that results inherit from those they replace, by message and block.
    pub(in super::super) fn marked<'m>(
        &self,
        messages: &[&'m Message],
    ) -> HashMap<(usize, usize), Vec<&'m str>> {
        let text = |&was: &usize| {
            let Found { at, block, .. } = self.found[was];
            messages[at].text(&messages[at].blocks()[block].span)
        };
        let heirs = self.found.iter().filter(|found| !found.instead_of.is_empty());
        let marked = heirs
            .map(|found| ((found.at, found.block), found.instead_of.iter().map(text).collect()));
        marked.collect()
    }
}

impl Found<'_> {
    /// The result as text: blocks, or a message. The text says whether the tool failed, and keeps
    /// the result's cache mark.
    pub(in super::super) fn as_text(
        &self,
        format: Format,
        messages: &[&Message],
        pairs: &Pairs<'_>,
    ) -> Vec<String> {
        let message = messages[self.at];
        let whole = message.text(&message.blocks()[self.block].span);
        let mut texts =
            format.result_as_text(&self.title(whole, pairs), self.id, whole, self.content);
        if let Some(last) = texts.pop() {
            texts.push(with_mark_of(last, whole));
        }
        texts
    }

    fn title(&self, result: &str, pairs: &Pairs<'_>) -> String {
        let failed = if has_failed(result) { "failed " } else { "" };
        let id = if self.id.is_empty() { String::new() } else { format!(": {}", self.id) };
        if self.is_guessed {
            return format!(
                "[{failed}result of one of several calls of a tool, it is not known of which{id}]"
            );
        }
        match pairs.answers_of(self) {
            None => format!("[{failed}result of a tool call that is not in this session{id}]"),
            Some(false) if self.home.is_some() || is_random(self.id) => {
                format!("[{failed}result of a tool call{id}]")
            }
            Some(false) => format!("[{failed}result of a tool call, it is not known of which{id}]"),
            Some(true) => format!("[further {failed}result of a tool call{id}]"),
        }
    }
}

/// Whether a member other than the content says that the tool failed.
fn has_failed(result: &str) -> bool {
    let members = json::members(result).unwrap_or_default();
    let says = |name: &str, values: &[Value]| {
        let value = members.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
        value.is_some_and(|value: Value| values.contains(&value))
    };
    says("is_error", &[true.into()])
        || says("isError", &[true.into()])
        || says("success", &[false.into()])
        || says("status", &["incomplete".into(), "failed".into()])
}

/// For each message, how many before it begin a turn of the user's.
fn turns(messages: &[&Message]) -> Vec<usize> {
    let mut turns = 0;
    let before = messages.iter().map(|message| {
        let before = turns;
        turns += usize::from(message.role() == Role::User && !message.has_only_results());
        before
    });
    before.collect()
}
