//! Pairs results with uses, wherever they are in the transcript.
mod copies;
mod ids;
mod unpaired;

pub(super) use self::copies::is_random;
use super::zone::zone;
use crate::{
    format::{Blanks, Format, Results, Rules},
    json,
    keys::{Key, Keys, Lookup},
    message::{Kind, Message, Role},
};
use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
};

/// Members next to the content of a result, or members that hold the content when it is `null`.
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
    /// The index of its first message among the kept ones.
    pub(super) at: usize,
    pub(super) uses: Vec<Use>,
    /// The messages that may hold its results.
    pub(super) zone: std::ops::Range<usize>,
    /// Results may still follow: unanswered uses stay unanswered.
    pub(super) is_live: bool,
}

pub(super) struct Use {
    /// The index of its message among the kept ones.
    pub(super) at: usize,
    pub(super) block: usize,
    pub(super) id: Box<str>,
    pub(super) key: Key,
    /// The provider refuses its id.
    is_refused: bool,
    /// The index of its result among all results.
    pub(super) answer: Option<usize>,
    pub(super) new_id: Option<Box<str>>,
}

/// A result, wherever it is.
pub(super) struct Found<'t> {
    /// The index of its message among the kept ones.
    pub(super) at: usize,
    pub(super) block: usize,
    pub(super) id: &'t str,
    /// It names an id itself.
    has_own_id: bool,
    key: Key,
    /// Its content; the whole result if the content is in the wrong place.
    pub(super) content: Option<&'t str>,
    pub(super) is_synthetic: bool,
    /// The step in whose zone it is; in a form of items, the step that it answers by position.
    pub(super) home: Option<usize>,
    pub(super) fate: Fate,
    /// It answers a use of another step.
    pub(super) is_moved: bool,
    /// The id that it gets, because it has none.
    pub(super) given: Option<Box<str>>,
    /// Other content precedes it in its message.
    is_behind: bool,
    /// It answers one of several calls; which one is a guess.
    pub(super) is_guessed: bool,
    /// Results that it replaces.
    instead_of: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Not paired yet.
    Unpaired,
    /// It is at a use, and its content repeats that of the result of this use.
    Duplicate,
    /// It answers a use.
    Answers,
    /// It becomes text.
    Text,
    /// It is removed: it holds nothing that another result does not hold.
    Drop,
}

pub(super) struct Pairs<'t> {
    pub(super) steps: Vec<Step>,
    pub(super) found: Vec<Found<'t>>,
    /// The calls, and those of them that are answered; built on first use.
    calls: OnceCell<(Keys, Keys)>,
}

/// For an id: the steps that lack results and how many, and its last step.
type MissingResults = (Vec<(usize, usize)>, usize);

/// The results of an id at a step, and its uses.
type ResultsAndUses = (Vec<usize>, Vec<usize>);

impl Use {
    fn of(kind: &Kind, at: usize, block: usize) -> Option<Self> {
        let key = kind.key(true)?;
        let (id, is_refused) = (Box::from(&*key.id), false);
        Some(Self { at, block, id, key, is_refused, answer: None, new_id: None })
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
        Some(Self {
            at,
            block,
            id,
            has_own_id: key.has_id,
            key,
            content,
            is_synthetic: *synthetic,
            home,
            fate: Fate::Unpaired,
            is_moved: false,
            given: None,
            is_behind: false,
            is_guessed: false,
            instead_of: Vec::new(),
        })
    }

    /// Whether it follows other content of its message, where the provider does not accept it.
    pub(super) fn is_late(&self, format: Format) -> bool {
        format.rules().blanks == Blanks::Texts && self.is_behind
    }
}

/// Whether a result without content has a member that may hold what is left of it.
fn says_more(result: &str) -> bool {
    let members = json::members(result).unwrap_or_default();
    members.keys().any(|name| !BESIDE.contains(&&**name))
}

impl<'t> Pairs<'t> {
    /// Pairs the results in `messages` under these rules; `is_live` says whether a step may still
    /// get results, and `is_refused` whether the provider refuses a use's id.
    pub(super) fn of(
        format: Format,
        rules: Rules,
        messages: &[&'t Message],
        is_live: impl Fn(&Step) -> bool,
        is_refused: impl Fn(&Message, usize) -> bool,
    ) -> Self {
        let mut pairs = Self { steps: Vec::new(), found: Vec::new(), calls: OnceCell::new() };
        if format.rules().results == Results::Items {
            pairs.note_items(format, messages);
        } else {
            for (at, message) in messages.iter().enumerate() {
                pairs.note(format, messages, at, message);
            }
        }
        if format.rules().names_pair {
            pairs.pair_names();
        } else {
            pairs.give_ids();
        }
        for step in &mut pairs.steps {
            step.is_live = is_live(step);
            for used in &mut step.uses {
                used.is_refused = is_refused(messages[used.at], used.block);
            }
        }
        pairs.pair_at_home();
        pairs.bring_home(messages);
        if format.rules().results == Results::Blocks {
            pairs.keep_tail_whole();
        }
        if format.rules().names_pair {
            pairs.part_guesses();
        }
        pairs.settle_strays(messages);
        pairs.rename(rules);
        pairs
    }

    fn note(&mut self, format: Format, messages: &[&'t Message], at: usize, message: &'t Message) {
        let mut uses = Vec::new();
        let last_zone = self.steps.last().filter(|step| step.zone.contains(&at));
        let home = last_zone.map(|_| self.steps.len() - 1);
        let mut is_behind = false;
        for (block, part) in message.blocks().iter().enumerate() {
            match &part.kind {
                Kind::Use { .. } if message.role() == Role::Assistant => {
                    uses.extend(Use::of(&part.kind, at, block));
                }
                _ => {
                    let found = Found::of(message, at, block, home);
                    self.found.extend(found.map(|found| Found { is_behind, ..found }));
                }
            }
            is_behind |= !part.kind.is_result();
        }
        if !uses.is_empty() {
            let zone = zone(format, messages, at);
            self.steps.push(Step { at, uses, zone, is_live: false });
        }
    }

    /// Steps are runs of items; a result's home is the nearest step before it that lacks a result.
    fn note_items(&mut self, format: Format, messages: &[&'t Message]) {
        let mut lacking = HashMap::<&str, MissingResults>::new();
        let mut run = 0;
        for (at, message) in messages.iter().enumerate() {
            if message.role() != Role::Assistant {
                run = at + 1;
            }
            for (block, part) in message.blocks().iter().enumerate() {
                if let Kind::Result { id, .. } = &part.kind {
                    let home = lacking.get_mut(&**id).map(|(open, last)| {
                        let Some((step, left)) = open.last_mut() else { return *last };
                        let step = *step;
                        *left -= 1;
                        if *left == 0 {
                            open.pop();
                        }
                        step
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
                let (open, last) = lacking.entry(id).or_default();
                *last = number;
                match open.last_mut().filter(|(last, _)| *last == number) {
                    Some((_, left)) => *left += 1,
                    None => open.push((number, 1)),
                }
            }
        }
    }

    /// Gives each result that pairs by name, in its own step's zone, the id of a use: the first one
    /// without a result, else any.
    fn pair_names(&mut self) {
        let mut keys: HashMap<usize, Keys> = HashMap::new();
        for found in &mut self.found {
            let Some(number) = found.home else { continue };
            let uses = &self.steps[number].uses;
            let keys = keys.entry(number);
            let keys = keys.or_insert_with(|| Keys::of(uses.iter().map(|used| &used.key)));
            let (Lookup::Waits(place) | Lookup::Answered(place)) = keys.find(&found.key) else {
                continue;
            };
            keys.answer(place, &uses[place].key);
            found.key = uses[place].key.clone();
        }
    }

    /// Pairs results with uses of their own step in order; real results before those of repairs.
    fn pair_at_home(&mut self) {
        // Results and uses for each id and step.
        let mut at_home = HashMap::<(usize, &str), ResultsAndUses>::new();
        for (result, found) in self.found.iter().enumerate() {
            if let Some(home) = found.home {
                at_home.entry((home, &*found.key.id)).or_default().0.push(result);
            }
        }
        for (number, step) in self.steps.iter().enumerate() {
            for (place, used) in step.uses.iter().enumerate() {
                let same = at_home.get_mut(&(number, &*used.id));
                same.into_iter().for_each(|(_, uses)| uses.push(place));
            }
        }
        let same: Vec<_> = at_home.into_iter().map(|((number, _), same)| (number, same)).collect();
        for (number, (results, uses)) in same.into_iter().filter(|(_, (_, uses))| !uses.is_empty())
        {
            let mut chosen = results.clone();
            chosen.sort_by_key(|&result| self.found[result].is_synthetic);
            chosen.truncate(uses.len());
            chosen.sort_unstable();
            let mut said = HashSet::new();
            for (place, result) in uses.into_iter().zip(chosen) {
                self.steps[number].uses[place].answer = Some(result);
                self.found[result].fate = Fate::Answers;
                said.insert(self.found[result].content);
            }
            // A repeated content in one step must not answer a use of another step.
            for result in results {
                let found = &mut self.found[result];
                if found.fate == Fate::Unpaired && said.contains(&found.content) {
                    found.fate = Fate::Duplicate;
                }
            }
        }
    }

    /// In this form the results of a step share one message, so a live tail keeps all of them or
    /// none.
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

    /// Whether another result answers the call that a result names; `None` if the call is missing.
    pub(super) fn answers_of(&self, found: &Found<'_>) -> Option<bool> {
        let (calls, answered) = self.calls.get_or_init(|| {
            let uses = || self.steps.iter().flat_map(|step| &step.uses);
            let answered = uses().filter(|used| used.answer.is_some());
            (Keys::of(uses().map(|used| &used.key)), Keys::of(answered.map(|used| &used.key)))
        });
        calls.has(&found.key).then(|| answered.has(&found.key))
    }

    /// The results of a step in their new order: those in the right message keep their order, the
    /// others are inserted in the order of their uses. `None` stands for an unknown outcome.
    pub(super) fn order(&self, number: usize) -> Vec<(usize, Option<usize>)> {
        let step = &self.steps[number];
        let is_home = |result: usize| self.found[result].home == Some(number);
        let uses = step.uses.iter().enumerate();
        let (mut order, guests): (Vec<_>, Vec<_>) = uses
            .map(|(place, used)| (place, used.answer))
            .partition(|(_, answer)| answer.is_some_and(is_home));
        order.sort_by_key(|&(_, answer)| answer);
        // The highest position up to each.
        let mut highest = 0;
        let up_to = order.iter().map(|&(place, _)| {
            highest = highest.max(place);
            highest
        });
        let up_to: Vec<_> = up_to.collect();
        let mut guests = guests.into_iter().filter(|(_, answer)| answer.is_some() || !step.is_live);
        let mut next = guests.next();
        let mut all = Vec::with_capacity(step.uses.len());
        for (at, home) in order.into_iter().enumerate() {
            while let Some(guest) = next.filter(|(place, _)| up_to[at] > *place) {
                all.push(guest);
                next = guests.next();
            }
            all.push(home);
        }
        all.extend(next.into_iter().chain(guests));
        all
    }
}
