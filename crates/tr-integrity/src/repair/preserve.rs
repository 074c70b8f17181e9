//! Keeps all that a tool answered, and that a call may have run.
use super::{
    ActionKind, Log, LossKind,
    items::{self, Elsewhere, Placed},
    pairs::{Fate, Found, Pairs, Step, Use},
};
use crate::{
    format::{Asked, Blanks, Format, OUTCOME_UNKNOWN, Results},
    json::Piece,
    message::{Blank, Kind, Message, Role},
    transcript::Transcript,
};
use std::collections::HashMap;

pub(super) fn repair(transcript: &Transcript, close_tail: bool, log: &mut Log) -> Vec<Message> {
    let (format, all) = (transcript.format(), transcript.messages());
    let results = format.rules().results;
    let kept = match results {
        Results::Items => items::unique(format, all, log),
        _ => without_blanks(format, all, log),
    };
    let was: Vec<_> = kept.iter().map(|(was, _)| *was).collect();
    let messages: Vec<_> = kept.iter().map(|(_, message)| message).collect();

    let elsewhere = Elsewhere::of(transcript);
    let is_live = |step: &Step| match results {
        _ if elsewhere.results => true,
        Results::Items => !close_tail && step.zone.end == was.len(),
        Results::Messages => !close_tail && was[step.zone.end - 1] + 1 == all.len(),
        Results::Blocks => !close_tail && was[step.at] + 1 == all.len(),
    };
    let mut pairs = Pairs::of(format, &messages, is_live);
    if elsewhere.uses {
        pairs.keep_strays();
    }
    let places = pairs.found.iter().enumerate().map(|(n, found)| ((found.at, found.block), n));
    let places = places.collect();
    let steps = pairs.steps.iter().enumerate().map(|(n, step)| (step.at, n)).collect();
    let new_ids = pairs.new_ids();
    let out = Vec::new();
    let mut writer = Writer { format, was, messages, pairs, places, steps, new_ids, log, out };
    writer.report();
    match results {
        Results::Blocks => writer.write_blocks(),
        Results::Messages => writer.write_messages(),
        Results::Items => return writer.write_items(close_tail),
    }
    writer.out
}

/// Without the messages that a provider refuses because nothing is in them.
fn without_blanks(format: Format, all: &[Message], log: &mut Log) -> Vec<(usize, Message)> {
    let is_nothing = |message: &Message| match format.rules().blanks {
        Blanks::Nothing => false,
        Blanks::Messages => message.blocks().is_empty(),
        Blanks::Texts => {
            message.is_blank() && (!message.blocks().is_empty() || message.role() == Role::User)
        }
    };
    let mut kept = Vec::with_capacity(all.len());
    for (was, message) in all.iter().enumerate() {
        if is_nothing(message) {
            log.act(ActionKind::RemoveEmptyMessage, was, None);
        } else {
            kept.push((was, message.clone()));
        }
    }
    kept
}

struct Writer<'t, 'l> {
    format: Format,
    /// Where each message that is kept was in the transcript.
    was: Vec<usize>,
    messages: Vec<&'t Message>,
    pairs: Pairs<'t>,
    /// Results by message and block.
    places: HashMap<(usize, usize), usize>,
    /// Steps by message.
    steps: HashMap<usize, usize>,
    /// What uses and their results are called now, by message and block.
    new_ids: HashMap<(usize, usize), Box<str>>,
    log: &'l mut Log,
    out: Vec<Message>,
}

impl Writer<'_, '_> {
    /// Notes what is about to be done with uses and results.
    fn report(&mut self) {
        let Self { format, was, messages, pairs, log, .. } = self;
        for (number, step) in pairs.steps.iter().enumerate() {
            for used in &step.uses {
                if let Some(new_id) = &used.new_id {
                    log.rename(was[used.at], &used.id, new_id);
                }
                match used.answer.map(|answer| &pairs.found[answer]) {
                    None if step.is_live => {}
                    None => log.act(ActionKind::AddUnknown, was[used.at], Some(&used.id)),
                    Some(found)
                        if found.home != Some(number) || found.is_late(*format, messages) =>
                    {
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
                Fate::Stray | Fate::Answers => {}
            }
        }
    }

    /// The form in which uses and results are blocks.
    fn write_blocks(&mut self) {
        let mut unwritten = None;
        for at in 0..self.messages.len() {
            let message = self.messages[at];
            let answers = unwritten.take().map_or_else(Vec::new, |n| self.answers(n));
            let is_home = message.role() == Role::User;
            if !is_home && !answers.is_empty() {
                let texts: Vec<_> = answers.iter().map(|piece| piece.text.clone()).collect();
                self.out.extend(self.format.hold_results(&texts));
            }
            self.write_message(at, if is_home { answers } else { Vec::new() });
            unwritten = self.steps.get(&at).copied();
        }
        let answers = unwritten.map_or_else(Vec::new, |n| self.answers(n));
        if !answers.is_empty() {
            let texts: Vec<_> = answers.into_iter().map(|piece| piece.text).collect();
            self.out.extend(self.format.hold_results(&texts));
        }
    }

    /// The results of a step as blocks of the message behind it.
    fn answers(&self, number: usize) -> Vec<Piece> {
        let step = &self.pairs.steps[number];
        let piece = |(place, answer): (usize, Option<usize>)| {
            let used = &step.uses[place];
            let Some(found) = answer.map(|answer| &self.pairs.found[answer]) else {
                return Piece { was: None, text: self.unknown(used) };
            };
            let text = self.listed(found.at, found.block);
            let was = (found.at == step.at + 1).then_some(found.block);
            Piece { was, text }
        };
        self.pairs.order(number).into_iter().map(piece).collect()
    }

    fn write_message(&mut self, at: usize, answers: Vec<Piece>) {
        let message = self.messages[at];
        // Where results may stand beside other content, those that are home stay there.
        let stay = self.format.rules().blanks != Blanks::Texts
            && answers.iter().all(|piece| piece.was.is_some());
        let mut has_content = !answers.is_empty();
        let (mut home, mut pieces) =
            if stay { (answers, Vec::new()) } else { (Vec::new(), answers) };
        for (block, part) in message.blocks().iter().enumerate() {
            match &part.kind {
                Kind::Result { .. } => {
                    let found = &self.pairs.found[self.places[&(at, block)]];
                    let is_home = |piece: &Piece| piece.was == Some(block);
                    pieces.extend(home.iter().position(is_home).map(|at| home.remove(at)));
                    if found.fate == Fate::Text {
                        let texts = self.format.result_as_text(found.id, found.content);
                        pieces.extend(texts.into_iter().map(|text| Piece { was: None, text }));
                        has_content = true;
                    }
                    continue;
                }
                Kind::Text(Blank::Empty) => {
                    self.log.act(ActionKind::RemoveEmptyText, self.was[at], None);
                    continue;
                }
                Kind::Text(Blank::White) => {}
                Kind::Text(Blank::No)
                | Kind::Reasoning
                | Kind::Reference
                | Kind::Unread
                | Kind::Other
                | Kind::Use { .. } => has_content = true,
            }
            pieces.push(Piece { was: Some(block), text: self.listed(at, block) });
        }
        let is_same = |(place, piece): (usize, &Piece)| {
            piece.was == Some(place) && {
                let part = &message.blocks()[place];
                piece.text == self.format.listed(message, part, None)
            }
        };
        if pieces.len() == message.blocks().len() && pieces.iter().enumerate().all(is_same) {
            self.put(at, message.clone());
        } else if has_content {
            let message = self.format.rewrite(message, &pieces);
            message.into_iter().for_each(|message| self.put(at, message));
        } else {
            self.log.act(ActionKind::RemoveEmptyMessage, self.was[at], None);
        }
    }

    /// Adds a message; where a step must follow the user, it does.
    fn put(&mut self, at: usize, message: Message) {
        let format = self.format;
        let Some(begin) = format.rules().follows_user else { return self.out.push(message) };
        if message.tool_uses().next().is_none() {
            return self.out.push(message);
        }
        match self.out.last().map(Message::role) {
            Some(Role::User) => self.out.push(message),
            Some(Role::Assistant) => {
                let before = self.out.pop().expect("there is a last one");
                let text = |message: &Message, block: usize| {
                    format.listed(message, &message.blocks()[block], None)
                };
                let first = (0..before.blocks().len())
                    .map(|block| Piece { was: None, text: text(&before, block) });
                let then = (0..message.blocks().len())
                    .map(|block| Piece { was: Some(block), text: text(&message, block) });
                let pieces: Vec<_> = first.chain(then).collect();
                self.log.act(ActionKind::JoinMessages, self.was[at], None);
                let joined = format.rewrite(&message, &pieces).expect("blocks were joined");
                self.put(at, joined);
            }
            _ => {
                self.log.act(ActionKind::AddUserMessage, self.was[at], None);
                self.out.push(format.own(begin.to_owned()));
                self.out.push(message);
            }
        }
    }

    /// A block as it stands in a list of blocks, with its new id if it has one.
    fn listed(&self, at: usize, block: usize) -> String {
        let message = self.messages[at];
        let new_id = self.new_ids.get(&(at, block)).map(|id| &**id);
        self.format.listed(message, &message.blocks()[block], new_id)
    }

    /// A message with the new ids of its uses, or of its result.
    fn renamed(&self, at: usize) -> Message {
        let message = self.messages[at];
        let blocks = 0..message.blocks().len();
        if !blocks.clone().any(|block| self.new_ids.contains_key(&(at, block))) {
            return message.clone();
        }
        let piece = |block: usize| Piece { was: Some(block), text: self.listed(at, block) };
        let pieces: Vec<_> = blocks.map(piece).collect();
        self.format.rewrite(message, &pieces).expect("all its blocks are there")
    }

    /// The result of a use that has none.
    fn unknown(&self, used: &Use) -> String {
        let message = self.messages[used.at];
        let text = message.text(&message.blocks()[used.block].span);
        let id = used.new_id.as_deref().unwrap_or(&used.id);
        let asked = Asked { id, name: message.use_name(used.block), text };
        self.format.form().write_result(&asked, OUTCOME_UNKNOWN, true)
    }

    /// The form in which results are messages.
    fn write_messages(&mut self) {
        let mut number = 0;
        for at in 0..self.messages.len() {
            let message = self.messages[at];
            if message.role() == Role::Tool {
                self.write_strays(at..at + 1, None);
                continue;
            }
            match self.pairs.steps.get(number) {
                Some(step) if step.at == at => {
                    self.write_step(number);
                    number += 1;
                }
                _ => self.out.push(message.clone()),
            }
        }
    }

    fn write_step(&mut self, number: usize) {
        let step = &self.pairs.steps[number];
        let (at, zone) = (step.at, step.zone.clone());
        // Nothing may stand behind a live tail: what comes would not find its step.
        let waits = step.is_live && step.uses.iter().any(|used| used.answer.is_none());
        if waits {
            self.write_strays(zone.clone(), Some(number));
        }
        self.out.push(self.renamed(at));
        for (place, answer) in self.pairs.order(number) {
            let message = match answer {
                Some(answer) => self.renamed(self.pairs.found[answer].at),
                None => self.format.own(self.unknown(&self.pairs.steps[number].uses[place])),
            };
            self.out.push(message);
        }
        if !waits {
            self.write_strays(zone, Some(number));
        }
    }

    /// Results of these messages that become text; those at home in a step come behind it.
    fn write_strays(&mut self, messages: std::ops::Range<usize>, home: Option<usize>) {
        for at in messages {
            let found = &self.pairs.found[self.places[&(at, 0)]];
            if found.fate == Fate::Text && found.home == home {
                let texts = self.format.result_as_text(found.id, found.content);
                self.out.extend(texts.into_iter().map(|text| self.format.own(text)));
            }
        }
    }
}

impl Writer<'_, '_> {
    /// The form in which results are items: behind their use they stay where they are.
    fn write_items(self, close_tail: bool) -> Vec<Message> {
        let mut out: Vec<Placed> = Vec::with_capacity(self.messages.len());
        // Texts come before the model's last items, and before reasoning that waits: a tail stays
        // live, and reasoning beside what follows from it.
        let (mut gate, mut in_run, mut thinks, mut number) = (0, false, false, 0);
        for at in 0..self.messages.len() {
            let (was, message) = (Some(self.was[at]), self.renamed(at));
            match message.role() {
                Role::Tool => {
                    in_run = false;
                    let found = &self.pairs.found[self.places[&(at, 0)]];
                    match found.fate {
                        Fate::Answers if !found.is_moved => out.push((was, message)),
                        Fate::Text => {
                            let texts = self.format.result_as_text(found.id, found.content);
                            let texts = texts.into_iter().map(|text| self.format.own(text));
                            let texts: Vec<_> = texts.map(|text| (was, text)).collect();
                            gate += texts.len();
                            out.splice(gate - texts.len()..gate - texts.len(), texts);
                        }
                        _ => {}
                    }
                }
                Role::Assistant => {
                    if !in_run && !thinks {
                        gate = out.len();
                    }
                    (in_run, thinks) = (true, items::is(&message, &Kind::Reasoning));
                    out.push((was, message));
                }
                _ => {
                    (in_run, thinks) = (false, false);
                    out.push((was, message));
                    gate = out.len();
                }
            }
            if self.pairs.steps.get(number).is_some_and(|step| step.zone.end == at + 1) {
                out.extend(self.guests(number));
                number += 1;
            }
        }
        let out = items::settle_reasoning(self.format, out, close_tail, self.log);
        out.into_iter().map(|(_, message)| message).collect()
    }

    /// The results of a step that do not stand behind it yet.
    fn guests(&self, number: usize) -> Vec<Placed> {
        let step = &self.pairs.steps[number];
        let guest = |used: &Use| match used.answer {
            None if step.is_live => None,
            None => Some((None, self.format.own(self.unknown(used)))),
            Some(answer) => {
                let Found { at, is_moved, .. } = self.pairs.found[answer];
                is_moved.then(|| (Some(self.was[at]), self.renamed(at)))
            }
        };
        step.uses.iter().filter_map(guest).collect()
    }
}

impl Found<'_> {
    /// Whether it stands behind other content of its message, where the provider doesn't look.
    fn is_late(&self, format: Format, messages: &[&Message]) -> bool {
        let before = &messages[self.at].blocks()[..self.block];
        let is_other = |kind: &Kind| !matches!(kind, Kind::Result { .. });
        format.rules().blanks == Blanks::Texts && before.iter().any(|block| is_other(&block.kind))
    }
}
