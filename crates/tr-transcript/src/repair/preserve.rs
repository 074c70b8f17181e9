//! Mode `preserve`: keeps every answer of a tool, and the record that a call may have run.
mod messages;

use super::{
    action::{ActionKind, Log, LossKind},
    items::{Elsewhere, unique},
    join::RepairedMessages,
    pairs::{Fate, Found, Pairs, Step, Use},
    settings::Repair,
};
use crate::{
    format::{Applies, Blanks, Format, NewResult, OUTCOME_UNKNOWN, Refused, Results, with_mark_of},
    json::Piece,
    message::{Blank, Kind, Message, Role},
    transcript::Transcript,
};
use std::collections::HashMap;

pub(super) fn repair(transcript: &Transcript, repair: Repair, log: &mut Log) -> Vec<Message> {
    let (format, all) = (transcript.format(), transcript.messages());
    let Repair { close_tail, members, .. } = repair;
    let results = format.rules().results;
    let kept = match results {
        Results::Items => unique(format, all, log),
        _ => without_blanks(format, all, members, log),
    };
    let applies = transcript.applies();
    let kept = if members { corrected(format, kept, applies, log) } else { kept };
    let was: Vec<_> = kept.iter().map(|(was, _)| *was).collect();
    let messages: Vec<_> = kept.iter().map(|(_, message)| message).collect();

    let elsewhere = Elsewhere::of(transcript);
    let is_live = |step: &Step| match results {
        _ if elsewhere.results => true,
        Results::Items => !close_tail && step.zone.end == was.len(),
        Results::Messages => !close_tail && was[step.zone.end - 1] + 1 == all.len(),
        Results::Blocks => {
            let mut behind = all[was[step.at] + 1..].iter();
            !close_tail && behind.all(|message| message.is_aside(format.rules()))
        }
    };
    let is_refused =
        |message: &Message, block: usize| members && message.refuses_id(block, applies);
    let rules = format.rules_of(transcript.asked_in());
    let mut pairs = Pairs::of(format, rules, &messages, is_live, is_refused);
    // A result without a step here answers a use that only the provider stores.
    for found in pairs.found.iter_mut().filter(|found| elsewhere.uses && found.home.is_none()) {
        found.fate = Fate::Answers;
    }
    let places = pairs.found.iter().enumerate().map(|(n, found)| ((found.at, found.block), n));
    let places = places.collect();
    let steps = pairs.steps.iter().enumerate().map(|(n, step)| (step.at, n)).collect();
    let (new_ids, marked) = (pairs.new_ids(), pairs.marked(&messages));
    let out = RepairedMessages::default();
    let mut writer =
        Writer { format, members, was, messages, pairs, places, steps, new_ids, marked, log, out };
    writer.report();
    match results {
        Results::Blocks => writer.write_blocks(),
        Results::Messages => writer.write_messages(),
        Results::Items => return writer.write_items(close_tail, applies),
    }
    writer.out.finish(format)
}

/// Removes messages that a provider refuses because they are empty.
fn without_blanks(
    format: Format,
    all: &[Message],
    members: bool,
    log: &mut Log,
) -> Vec<(usize, Message)> {
    let rules = format.rules();
    let last = all.iter().rposition(|message| !message.is_aside(rules));
    let is_nothing = |at: usize, message: &Message| match rules.blanks {
        Blanks::Nothing => false,
        Blanks::Messages => message.blocks().is_empty(),
        Blanks::Texts => {
            let may_say_nothing = match message.role() {
                Role::User => false,
                // The last message may be empty: the model may continue it.
                Role::Assistant => !members || Some(at) == last,
                _ => true,
            };
            message.is_blank() && !(message.blocks().is_empty() && may_say_nothing)
        }
    };
    let mut kept = Vec::with_capacity(all.len());
    for (was, message) in all.iter().enumerate() {
        if message.body.unknown.is_none() && is_nothing(was, message) {
            log.act(ActionKind::RemoveEmptyMessage, was, None);
        } else {
            kept.push((was, message.clone()));
        }
    }
    kept
}

/// Corrects members that can be written in a type that their provider accepts.
fn corrected(
    format: Format,
    kept: Vec<(usize, Message)>,
    applies: Applies,
    log: &mut Log,
) -> Vec<(usize, Message)> {
    let begins_turn =
        |message: &Message| message.role() == Role::User && !message.has_only_results();
    let turn = kept.iter().rposition(|(_, message)| begins_turn(message)).unwrap_or(0);
    let turn = kept.get(turn).map_or(0, |&(was, _)| was);
    let correct = |(was, message): (usize, Message)| {
        let is_wrong = message.is_understood() && message.all_refused(applies).next().is_some();
        let correct = || format.form().corrected(&message, was < turn, applies);
        let Some(text) = is_wrong.then(correct).flatten() else { return (was, message) };
        let refused = || message.all_refused(applies);
        if refused().any(Refused::is_media) {
            log.act(ActionKind::RemoveMedia, was, None);
            log.lose(LossKind::Media, was, "", None);
        } else if refused().any(Refused::is_thought) {
            log.act(ActionKind::RemoveReasoning, was, None);
            log.lose(LossKind::Reasoning, was, "", None);
        } else {
            log.act(ActionKind::CorrectMember, was, None);
        }
        (was, message.with_raw_of(format.own(text)))
    };
    kept.into_iter().map(correct).collect()
}

/// The results that keep their block, each with the results inserted before it, the last one also
/// with those after it; and the results of a message in which none keeps its block.
fn at_home(answers: Vec<Piece>) -> (HashMap<usize, Vec<Piece>>, Vec<Piece>) {
    let (mut home, mut guests) = (HashMap::<usize, Vec<Piece>>::new(), Vec::new());
    let mut last = None;
    for piece in answers {
        let was = piece.was;
        guests.push(piece);
        if let Some(block) = was {
            home.insert(block, std::mem::take(&mut guests));
            last = Some(block);
        }
    }
    if let Some(behind) = last.and_then(|last| home.get_mut(&last)) {
        behind.append(&mut guests);
    }
    (home, guests)
}

struct Writer<'t, 'l> {
    format: Format,
    /// Whether members that the provider refuses on their own are corrected.
    members: bool,
    /// For each kept message, its index in the transcript.
    was: Vec<usize>,
    messages: Vec<&'t Message>,
    pairs: Pairs<'t>,
    /// The index of each result, by message and block.
    places: HashMap<(usize, usize), usize>,
    /// The index of each step, by message.
    steps: HashMap<usize, usize>,
    /// The new ids of uses and their results, by message and block.
    new_ids: HashMap<(usize, usize), Box<str>>,
    /// The results that a result replaces, by message and block: it keeps their cache marks.
    marked: HashMap<(usize, usize), Vec<&'t str>>,
    log: &'l mut Log,
    out: RepairedMessages,
}

impl Writer<'_, '_> {
    /// Records the actions on uses and results.
    fn report(&mut self) {
        let Self { format, was, pairs, log, .. } = self;
        for found in pairs.found.iter().filter(|found| found.fate == Fate::Answers) {
            if let Some(id) = &found.given {
                log.rename(was[found.at], "", id);
            }
        }
        for (number, step) in pairs.steps.iter().enumerate() {
            for used in &step.uses {
                if let Some(new_id) = &used.new_id {
                    log.rename(was[used.at], &used.id, new_id);
                    let answer = used.answer.map(|answer| pairs.found[answer].at);
                    if let Some(at) = answer.filter(|&at| at != used.at) {
                        log.rename(was[at], &used.id, new_id);
                    }
                }
                match used.answer.map(|answer| &pairs.found[answer]) {
                    None if step.is_live => {}
                    None => log.act(ActionKind::AddUnknown, was[used.at], Some(&used.id)),
                    Some(found) if found.home != Some(number) || found.is_late(*format) => {
                        log.act(ActionKind::MoveResult, was[found.at], Some(&used.id));
                    }
                    Some(_) => {}
                }
            }
        }
        for found in &pairs.found {
            match found.fate {
                Fate::Text => {
                    log.act(ActionKind::OrphanToText, was[found.at], Some(found.id));
                    log.lose(LossKind::Link, was[found.at], found.id, None);
                }
                Fate::Drop if found.is_synthetic => {
                    log.act(ActionKind::RemoveSynthetic, was[found.at], Some(found.id));
                }
                Fate::Drop => {
                    log.act(ActionKind::RemoveDuplicate, was[found.at], Some(found.id));
                }
                Fate::Unpaired | Fate::Duplicate | Fate::Answers => {}
            }
        }
    }

    /// Writes a form where uses and results are blocks.
    fn write_blocks(&mut self) {
        let mut unwritten = None;
        for at in 0..self.messages.len() {
            let message = self.messages[at];
            if message.is_aside(self.format.rules()) {
                self.out.push(self.format, message.clone());
                continue;
            }
            let answers = unwritten.take().map_or_else(Vec::new, |n| self.answers(n));
            // A message without a list of blocks is left unchanged.
            let is_home = message.role() == Role::User && message.body.list.is_some();
            if !is_home && !answers.is_empty() {
                self.hold(&answers);
            }
            self.write_message(at, if is_home { answers } else { Vec::new() });
            unwritten = self.steps.get(&at).copied();
        }
        let answers = unwritten.map_or_else(Vec::new, |n| self.answers(n));
        if !answers.is_empty() {
            self.hold(&answers);
        }
    }

    /// Adds the messages that hold these results.
    fn hold(&mut self, results: &[Piece]) {
        let results: Vec<_> = results.iter().map(|piece| piece.text.clone()).collect();
        let messages = self.format.hold_results(&results);
        messages.into_iter().for_each(|message| self.out.push(self.format, message));
    }

    /// The results of a step as blocks of the message after it.
    fn answers(&self, number: usize) -> Vec<Piece> {
        let step = &self.pairs.steps[number];
        let piece = |(place, answer): (usize, Option<usize>)| {
            let used = &step.uses[place];
            let Some(found) = answer.map(|answer| &self.pairs.found[answer]) else {
                return Piece { was: None, text: self.unknown(used) };
            };
            let text = self.listed(found.at, found.block);
            let was = step.zone.contains(&found.at).then_some(found.block);
            Piece { was, text }
        };
        self.pairs.order(number).into_iter().map(piece).collect()
    }

    fn write_message(&mut self, at: usize, answers: Vec<Piece>) {
        let message = self.messages[at];
        let mut has_content = !answers.is_empty();
        // Where results may follow other content, those in the right message keep their place.
        let stay = self.format.rules().blanks != Blanks::Texts;
        let (mut home, mut pieces) =
            if stay { at_home(answers) } else { (HashMap::new(), answers) };
        for (block, part) in message.blocks().iter().enumerate() {
            match &part.kind {
                Kind::Result { .. } => {
                    let found = &self.pairs.found[self.places[&(at, block)]];
                    pieces.extend(home.remove(&block).unwrap_or_default());
                    if found.fate == Fate::Text {
                        let texts = found.as_text(self.format, &self.messages, &self.pairs);
                        pieces.extend(texts.into_iter().map(|text| Piece { was: None, text }));
                        has_content = true;
                    }
                    continue;
                }
                Kind::Text(blank) if self.drops(*blank, message) => {
                    self.log.act(ActionKind::RemoveEmptyText, self.was[at], None);
                    continue;
                }
                Kind::Text(Blank::Empty | Blank::White) => {}
                _ => has_content = true,
            }
            pieces.push(Piece { was: Some(block), text: self.listed(at, block) });
        }
        if !has_content && message.body.unknown.is_some() && message.tool_results().next().is_some()
        {
            (pieces, has_content) = (in_place_of_moved(self.format), true);
        }
        let is_same = |(place, piece): (usize, &Piece)| {
            piece.was == Some(place) && {
                let part = &message.blocks()[place];
                piece.text == self.format.listed(message, part, None)
            }
        };
        if pieces.len() == message.blocks().len() && pieces.iter().enumerate().all(is_same) {
            self.out.put(self.format, message.clone(), self.was[at], self.log);
        } else if has_content {
            if let Some(message) = self.format.rewrite(message, &pieces) {
                self.out.put(self.format, message, self.was[at], self.log);
            }
        } else {
            self.log.act(ActionKind::RemoveEmptyMessage, self.was[at], None);
        }
    }

    /// Whether a text is removed. A text of white space is kept if it is the whole message.
    fn drops(&self, blank: Blank, message: &Message) -> bool {
        match blank {
            Blank::Empty => true,
            Blank::White => self.members && !message.is_blank(),
            Blank::No => false,
        }
    }

    /// A block as an element of a list of blocks, with its new id if it gets one.
    fn listed(&self, at: usize, block: usize) -> String {
        let message = self.messages[at];
        let new_id = self.new_ids.get(&(at, block)).map(|id| &**id);
        let text = self.format.listed(message, &message.blocks()[block], new_id);
        let marks = self.marked.get(&(at, block)).into_iter().flatten();
        marks.fold(text, |text, was| with_mark_of(text, was))
    }

    /// A message with the new ids of its uses or of its result.
    fn renamed(&self, at: usize) -> Message {
        let message = self.messages[at];
        let blocks = 0..message.blocks().len();
        let is_same = |block: usize| {
            let place = (at, block);
            !self.new_ids.contains_key(&place) && !self.marked.contains_key(&place)
        };
        if blocks.clone().all(is_same) {
            return message.clone();
        }
        let piece = |block: usize| Piece { was: Some(block), text: self.listed(at, block) };
        let pieces: Vec<_> = blocks.map(piece).collect();
        self.format.rewrite(message, &pieces).expect("all its blocks are there")
    }

    /// An error result for a use without a result.
    fn unknown(&self, used: &Use) -> String {
        let message = self.messages[used.at];
        let text = message.text(&message.blocks()[used.block].span);
        let id = used.new_id.as_deref().unwrap_or(&used.id);
        let result =
            NewResult { id, name: &used.key.name, content: OUTCOME_UNKNOWN, is_error: true };
        self.format.form().write_result(&result, text)
    }
}

/// The content of a message whose results all moved, and which stays for its other members.
fn in_place_of_moved(format: Format) -> Vec<Piece> {
    let title = "[the results that were here stand with their calls]";
    let texts = format.form().result_as_text(title, "{}", None);
    texts.into_iter().map(|text| Piece { was: None, text }).collect()
}
