//! Which result answers which use, wherever in the transcript they stand.
use super::zone;
use crate::{
    format::{Format, Results, Rules},
    json,
    message::{Key, Kind, Message, Role},
};
use serde::de::IgnoredAny;
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

/// What stands beside the content of a result, and what holds the content where it is not `null`.
const BESIDE: [&str; 13] = [
    "cache_control",
    "call_id",
    "content",
    "id",
    "is_error",
    "isError",
    "output",
    "role",
    "status",
    "tool_call_id",
    "tool_use_id",
    "toolCallId",
    "type",
];

/// A step with uses.
pub(super) struct Step {
    /// Where it begins, among the messages that are kept.
    pub(super) at: usize,
    pub(super) uses: Vec<Use>,
    /// The messages in which its results belong.
    pub(super) zone: std::ops::Range<usize>,
    /// Results may still come: unanswered uses stay so.
    pub(super) is_live: bool,
}

pub(super) struct Use {
    /// Its message, among those that are kept.
    pub(super) at: usize,
    pub(super) block: usize,
    pub(super) id: Box<str>,
    key: Key,
    /// Its result, among all.
    pub(super) answer: Option<usize>,
    pub(super) new_id: Option<Box<str>>,
}

/// A result, wherever it stands.
pub(super) struct Found<'t> {
    /// Its message, among those that are kept.
    pub(super) at: usize,
    pub(super) block: usize,
    pub(super) id: &'t str,
    key: Key,
    /// What it says: all of it, if its content is not where it belongs.
    pub(super) content: Option<&'t str>,
    pub(super) is_synthetic: bool,
    /// The step in whose zone it stands; in a form of items, the one that it answers by its place.
    pub(super) home: Option<usize>,
    pub(super) fate: Fate,
    /// It answers a use from which it stands apart.
    pub(super) is_moved: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nobody wants it yet.
    Stray,
    /// It answers a use.
    Answers,
    /// It becomes text.
    Text,
    /// It says nothing that is not said elsewhere.
    Drop,
}

pub(super) struct Pairs<'t> {
    pub(super) steps: Vec<Step>,
    pub(super) found: Vec<Found<'t>>,
}

impl Use {
    fn of(kind: &Kind, at: usize, block: usize) -> Option<Self> {
        let key = kind.key(true)?;
        Some(Self { at, block, id: key.id.clone(), key, answer: None, new_id: None })
    }
}

impl<'t> Found<'t> {
    fn of(message: &'t Message, at: usize, block: usize, home: Option<usize>) -> Option<Self> {
        let kind = &message.blocks()[block].kind;
        let (Kind::Result { id, content, synthetic, .. }, Some(key)) = (kind, kind.key(true))
        else {
            return None;
        };
        let whole = message.text(&message.blocks()[block].span);
        let content = content.as_ref().map(|span| message.text(span));
        let content = content.or_else(|| says_more(whole).then_some(whole));
        let (is_synthetic, fate) = (*synthetic, Fate::Stray);
        Some(Self { at, block, id, key, content, is_synthetic, home, fate, is_moved: false })
    }
}

/// Whether a result without content has a member that may be what is left of it.
fn says_more(result: &str) -> bool {
    let members: BTreeMap<Cow<'_, str>, IgnoredAny> = json::object(result).unwrap_or_default();
    members.keys().any(|name| !BESIDE.contains(&&**name))
}

impl<'t> Pairs<'t> {
    /// Pairs the results in `messages`; `is_live` says whether a step may still get results.
    pub(super) fn of(
        format: Format,
        messages: &[&'t Message],
        is_live: impl Fn(&Step) -> bool,
    ) -> Self {
        let mut pairs = Self { steps: Vec::new(), found: Vec::new() };
        if format.rules().results == Results::Items {
            pairs.note_items(format, messages);
        } else {
            for (at, message) in messages.iter().enumerate() {
                pairs.note(format, messages, at, message);
            }
        }
        if format.rules().names_pair {
            pairs.pair_names();
        }
        for step in &mut pairs.steps {
            step.is_live = is_live(step);
        }
        pairs.pair_at_home();
        pairs.bring_home();
        if format.rules().results == Results::Blocks {
            pairs.keep_tail_whole();
        }
        pairs.settle_strays();
        pairs.rename(format.rules());
        pairs
    }

    fn note(&mut self, format: Format, messages: &[&'t Message], at: usize, message: &'t Message) {
        let mut uses = Vec::new();
        let last_zone = self.steps.last().filter(|step| step.zone.contains(&at));
        let home = last_zone.map(|_| self.steps.len() - 1);
        for (block, part) in message.blocks().iter().enumerate() {
            match &part.kind {
                Kind::Use { .. } if message.role() == Role::Assistant => {
                    uses.extend(Use::of(&part.kind, at, block));
                }
                _ => self.found.extend(Found::of(message, at, block, home)),
            }
        }
        if !uses.is_empty() {
            let zone = zone(format, messages, at);
            self.steps.push(Step { at, uses, zone, is_live: false });
        }
    }

    /// Steps are runs of items, and a result's home is the nearest step before it that lacks one.
    fn note_items(&mut self, format: Format, messages: &[&'t Message]) {
        let mut lacking: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
        let mut run = 0;
        for (at, message) in messages.iter().enumerate() {
            if message.role() != Role::Assistant {
                run = at + 1;
            }
            for (block, part) in message.blocks().iter().enumerate() {
                if let Kind::Result { id, .. } = &part.kind {
                    let steps = lacking.get_mut(&**id);
                    let home = steps.and_then(|steps| {
                        let open = steps.iter_mut().rev().find(|(_, left)| *left > 0);
                        let Some((step, left)) = open else { return Some(steps.last()?.0) };
                        *left -= 1;
                        Some(*step)
                    });
                    self.found.extend(Found::of(message, at, block, home));
                }
                let Kind::Use { id, .. } = &part.kind else { continue };
                if self.steps.last().is_none_or(|step| step.at != run) {
                    let zone = zone(format, messages, run);
                    self.steps.push(Step { at: run, uses: Vec::new(), zone, is_live: false });
                }
                let number = self.steps.len() - 1;
                self.steps[number].uses.extend(Use::of(&part.kind, at, block));
                let steps = lacking.entry(id).or_default();
                match steps.last_mut().filter(|(last, _)| *last == number) {
                    Some((_, left)) => *left += 1,
                    None => steps.push((number, 1)),
                }
            }
        }
    }

    /// Gives each result at home that pairs with a use by name the use's id: the first that no
    /// other has, else any.
    fn pair_names(&mut self) {
        let mut taken = HashSet::new();
        for found in &mut self.found {
            let Some(number) = found.home else { continue };
            let uses = self.steps[number].uses.iter().enumerate();
            let same: Vec<_> = uses.filter(|(_, used)| used.key.pairs(&found.key)).collect();
            let free = same.iter().find(|(place, _)| !taken.contains(&(number, *place)));
            let Some((place, used)) = free.or(same.last()) else { continue };
            taken.insert((number, *place));
            found.key = used.key.clone();
        }
    }

    /// Pairs what stands where it belongs, by occurrence; real before synthetic.
    fn pair_at_home(&mut self) {
        let mut at_home: HashMap<(usize, Box<str>), Vec<usize>> = HashMap::new();
        for (result, found) in self.found.iter().enumerate() {
            if let Some(home) = found.home {
                at_home.entry((home, found.key.id.clone())).or_default().push(result);
            }
        }
        for (number, step) in self.steps.iter_mut().enumerate() {
            let ids: HashSet<Box<str>> = step.uses.iter().map(|used| used.id.clone()).collect();
            for id in ids {
                let Some(results) = at_home.get(&(number, id.clone())) else { continue };
                let uses: Vec<_> = step.uses.iter_mut().filter(|used| used.id == id).collect();
                let mut chosen = results.clone();
                chosen.sort_by_key(|&result| self.found[result].is_synthetic);
                chosen.truncate(uses.len());
                chosen.sort_unstable();
                let mut paired = Vec::new();
                for (used, &result) in uses.into_iter().zip(&chosen) {
                    used.answer = Some(result);
                    self.found[result].fate = Fate::Answers;
                    paired.push(self.found[result].content);
                }
                // Said twice in one place is said once, and must not answer another use.
                for &result in results {
                    let found = &mut self.found[result];
                    if found.fate == Fate::Stray && paired.contains(&found.content) {
                        found.fate = Fate::Drop;
                    }
                }
            }
        }
    }

    /// Gives each real stray to a use of its id that has none: the nearest before it, else the
    /// nearest behind it.
    fn bring_home(&mut self) {
        let mut waiting: HashMap<Box<str>, Vec<(usize, usize)>> = HashMap::new();
        for (number, step) in self.steps.iter().enumerate() {
            for (place, used) in step.uses.iter().enumerate() {
                if used.answer.is_none_or(|answer| self.found[answer].is_synthetic) {
                    waiting.entry(used.id.clone()).or_default().push((number, place));
                }
            }
        }
        for result in 0..self.found.len() {
            let found = &self.found[result];
            if found.fate != Fate::Stray || found.is_synthetic {
                continue;
            }
            let Some(uses) = waiting.get_mut(&found.key.id).filter(|uses| !uses.is_empty()) else {
                continue;
            };
            let behind = uses.partition_point(|&(step, _)| self.steps[step].at <= found.at);
            // Of one step's uses the first comes first, as pairs are made by occurrence.
            let nearest = match behind.checked_sub(1) {
                Some(last) => uses.partition_point(|&(step, _)| step < uses[last].0),
                None => 0,
            };
            let (step, place) = uses.remove(nearest);
            let used = &mut self.steps[step].uses[place];
            if let Some(synthetic) = used.answer.replace(result) {
                self.found[synthetic].fate = Fate::Drop;
            }
            self.found[result].fate = Fate::Answers;
            self.found[result].is_moved = self.found[result].home != Some(step);
        }
    }

    /// All results of a step share one message in this form: a live tail gets all or none.
    fn keep_tail_whole(&mut self) {
        for step in self.steps.iter_mut().filter(|step| step.is_live) {
            if step.uses.iter().all(|used| used.answer.is_some()) {
                step.is_live = false;
                continue;
            }
            for used in &mut step.uses {
                if let Some(result) = used.answer.take() {
                    self.found[result].fate = Fate::Text;
                }
            }
        }
    }

    /// What answers nothing becomes text, unless it is said elsewhere.
    fn settle_strays(&mut self) {
        let answers: HashSet<(&str, Option<&str>)> = self
            .found
            .iter()
            .filter(|found| found.fate == Fate::Answers)
            .map(|found| (found.id, found.content))
            .collect();
        for found in self.found.iter_mut().filter(|found| found.fate == Fate::Stray) {
            let is_said = found.is_synthetic || answers.contains(&(found.id, found.content));
            found.fate = if is_said { Fate::Drop } else { Fate::Text };
        }
    }

    /// What stands at no use here answers one that only the provider knows.
    pub(super) fn keep_strays(&mut self) {
        for found in self.found.iter_mut().filter(|found| found.home.is_none()) {
            found.fate = Fate::Answers;
        }
    }

    /// Makes repeated ids unique where they are refused, by the number of the occurrence; and gives
    /// ids to uses that have none, where no name stands for it.
    fn rename(&mut self, rules: Rules) {
        let all = self.steps.iter().flat_map(|step| &step.uses).map(|used| used.id.clone());
        let mut taken: HashSet<Box<str>> = all.collect();
        let mut count: HashMap<Box<str>, usize> = HashMap::new();
        for used in self.steps.iter_mut().flat_map(|step| &mut step.uses) {
            let count = count.entry(used.id.clone()).or_default();
            *count += 1;
            let has_none = used.id.is_empty() && !rules.names_pair;
            if !has_none && (*count == 1 || !rules.refuses_repeated_ids) {
                continue;
            }
            let stem = if has_none { "call" } else { &*used.id };
            let free = (*count..).map(|n| format!("{stem}_r{n}").into_boxed_str());
            let new_id =
                free.into_iter().find(|id| !taken.contains(id)).expect("numbers don't end");
            taken.insert(new_id.clone());
            used.new_id = Some(new_id);
        }
    }

    /// What uses and their results are called now, by message and block.
    pub(super) fn new_ids(&self) -> HashMap<(usize, usize), Box<str>> {
        let mut new_ids = HashMap::new();
        for used in self.steps.iter().flat_map(|step| &step.uses) {
            let Some(new_id) = &used.new_id else { continue };
            new_ids.insert((used.at, used.block), new_id.clone());
            if let Some(answer) = used.answer.map(|answer| &self.found[answer]) {
                new_ids.insert((answer.at, answer.block), new_id.clone());
            }
        }
        new_ids
    }

    /// The results of a step in the order in which they are to stand: what is at home stays in
    /// its order, the others are set between by their uses. Unknown outcomes are `None`.
    pub(super) fn order(&self, number: usize) -> Vec<(usize, Option<usize>)> {
        let step = &self.steps[number];
        let is_home = |result: usize| self.found[result].home == Some(number);
        let uses = step.uses.iter().enumerate();
        let (mut order, guests): (Vec<_>, Vec<_>) = uses
            .map(|(place, used)| (place, used.answer))
            .partition(|(_, answer)| answer.is_some_and(is_home));
        order.sort_by_key(|&(_, answer)| answer);
        for (place, answer) in guests {
            if answer.is_none() && step.is_live {
                continue;
            }
            let at = order.iter().position(|&(other, _)| other > place).unwrap_or(order.len());
            order.insert(at, (place, answer));
        }
        order
    }
}
