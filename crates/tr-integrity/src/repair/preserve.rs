//! Keeps all that a tool answered, and that a call may have run.
use super::{
    ActionKind, Log, LossKind,
    pairs::{Fate, Found, Pairs, Step},
};
use crate::{
    format::{Format, OUTCOME_UNKNOWN},
    json::Piece,
    message::{Blank, Kind, Message, Role},
    transcript::Transcript,
};
use std::collections::HashMap;

pub(super) fn repair(transcript: &Transcript, close_tail: bool, log: &mut Log) -> Vec<Message> {
    let format = transcript.format();
    let all = transcript.messages();
    let is_nothing = |message: &Message| {
        let blocks = message.blocks();
        format == Format::AnthropicMessages
            && message.is_blank()
            && (!blocks.is_empty() || message.role() == Role::User)
    };
    let (removed, kept): (Vec<_>, Vec<_>) =
        all.iter().enumerate().partition(|(_, message)| is_nothing(message));
    for (was, _) in removed {
        log.act(ActionKind::RemoveEmptyMessage, was, None);
    }
    let (was, messages): (Vec<_>, Vec<_>) = kept.into_iter().unzip();

    let is_live = |step: &Step| {
        let end = match format {
            Format::AnthropicMessages => step.at + 1,
            Format::OpenAiChat | Format::OpenClaw => step.zone.end,
        };
        !close_tail && was.get(end - 1).is_some_and(|was| was + 1 == all.len())
    };
    let pairs = Pairs::of(format, &messages, is_live);
    let places = pairs.found.iter().enumerate().map(|(n, found)| ((found.at, found.block), n));
    let places = places.collect();
    let steps = pairs.steps.iter().enumerate().map(|(n, step)| (step.at, n)).collect();
    let mut writer = Writer { format, was, messages, pairs, places, steps, log, out: Vec::new() };
    writer.report();
    match format {
        Format::AnthropicMessages => writer.write_blocks(),
        Format::OpenAiChat | Format::OpenClaw => writer.write_messages(),
    }
    writer.out
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
                    log.rename(was[step.at], &used.id, new_id);
                }
                match used.answer.map(|answer| &pairs.found[answer]) {
                    None if step.is_live => {}
                    None => log.act(ActionKind::AddUnknown, was[step.at], Some(&used.id)),
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
            let id = used.new_id.as_deref();
            let Some(found) = answer.map(|answer| &self.pairs.found[answer]) else {
                let id = id.unwrap_or(&used.id);
                let text = self.format.write_result(id, OUTCOME_UNKNOWN, true);
                return Piece { was: None, text };
            };
            let message = self.messages[found.at];
            let text = message.blocks()[found.block].text_in(message, id);
            let was = (found.at == step.at + 1).then_some(found.block);
            Piece { was, text }
        };
        self.pairs.order(number).into_iter().map(piece).collect()
    }

    fn write_message(&mut self, at: usize, answers: Vec<Piece>) {
        let message = self.messages[at];
        let mut pieces = answers;
        let step = self.steps.get(&at).map(|&number| &self.pairs.steps[number]);
        let mut has_content = !pieces.is_empty();
        for (block, part) in message.blocks().iter().enumerate() {
            let mut new_id = None;
            match &part.kind {
                Kind::Result { id, content, .. } => {
                    let fate = self.pairs.found[self.places[&(at, block)]].fate;
                    if fate == Fate::Text {
                        let content = content.as_ref().map(|span| message.text(span));
                        let texts = self.format.result_as_text(id, content);
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
                Kind::Text(Blank::No) | Kind::Other => has_content = true,
                Kind::Use { .. } => {
                    has_content = true;
                    let used = step.and_then(|step| step.uses.iter().find(|u| u.block == block));
                    new_id = used.and_then(|used| used.new_id.as_deref());
                }
            }
            let text = self.format.listed(message, part, new_id);
            pieces.push(Piece { was: Some(block), text });
        }
        let is_same = |(place, piece): (usize, &Piece)| {
            piece.was == Some(place) && {
                let part = &message.blocks()[place];
                piece.text == self.format.listed(message, part, None)
            }
        };
        if pieces.len() == message.blocks().len() && pieces.iter().enumerate().all(is_same) {
            self.out.push(message.clone());
        } else if has_content {
            self.out.push(self.format.rewrite(message, &pieces));
        } else {
            self.log.act(ActionKind::RemoveEmptyMessage, self.was[at], None);
        }
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
        let (message, zone) = (self.messages[step.at], step.zone.clone());
        // Nothing may stand behind a live tail: what comes would not find its step.
        let waits = step.is_live && step.uses.iter().any(|used| used.answer.is_none());
        if waits {
            self.write_strays(zone.clone(), Some(number));
        }
        self.out.push(message.clone());
        for (place, answer) in self.pairs.order(number) {
            let message = match answer {
                Some(answer) => self.messages[self.pairs.found[answer].at].clone(),
                None => {
                    let id = &self.pairs.steps[number].uses[place].id;
                    self.format.own(self.format.write_result(id, OUTCOME_UNKNOWN, true))
                }
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

impl Found<'_> {
    /// Whether it stands behind other content of its message, where the provider doesn't look.
    fn is_late(&self, format: Format, messages: &[&Message]) -> bool {
        let before = &messages[self.at].blocks()[..self.block];
        let is_other = |kind: &Kind| !matches!(kind, Kind::Result { .. });
        format == Format::AnthropicMessages && before.iter().any(|block| is_other(&block.kind))
    }
}
