//! Writes the forms in which a result is a message or an item of its own.
use super::{
    super::items::{Placed, is, settle_reasoning},
    Applies, Fate, Found, Kind, Message, Role, Use, Writer,
};

impl Writer<'_, '_> {
    /// Writes a form where results are messages.
    pub(super) fn write_messages(&mut self) {
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
                _ => self.out.push(self.format, message.clone()),
            }
        }
    }

    fn write_step(&mut self, number: usize) {
        let step = &self.pairs.steps[number];
        let (at, zone) = (step.at, step.zone.clone());
        // An insertion after a live tail would separate later results from their step.
        let waits = step.is_live && step.uses.iter().any(|used| used.answer.is_none());
        if waits {
            self.write_strays(zone.clone(), Some(number));
        }
        self.out.push(self.format, self.renamed(at));
        for (place, answer) in self.pairs.order(number) {
            let message = match answer {
                Some(answer) => self.renamed(self.pairs.found[answer].at),
                None => self.format.own(self.unknown(&self.pairs.steps[number].uses[place])),
            };
            self.out.push(self.format, message);
        }
        if !waits {
            self.write_strays(zone, Some(number));
        }
    }

    /// Writes the results of these messages that become text; those in a step's zone follow the
    /// step.
    fn write_strays(&mut self, messages: std::ops::Range<usize>, home: Option<usize>) {
        for at in messages {
            let found = &self.pairs.found[self.places[&(at, 0)]];
            if found.fate == Fate::Text && found.home == home {
                let texts = found.as_text(self.format, &self.messages, &self.pairs);
                for text in texts {
                    self.out.push(self.format, self.format.own(text));
                }
            }
        }
    }

    /// Writes a form where results are items: a result after its use stays in its place.
    pub(super) fn write_items(self, close_tail: bool, applies: Applies) -> Vec<Message> {
        let mut out: Vec<Placed> = Vec::with_capacity(self.messages.len());
        // Texts are inserted before the model's last items, and before reasoning that waits: so a
        // tail stays live, and reasoning stays next to the output that follows it.
        let (mut gate, mut in_run, mut thinks, mut number) = (0, false, false, 0);
        // The insertions and their positions, in order.
        let mut gated: Vec<(usize, Placed)> = Vec::new();
        for at in 0..self.messages.len() {
            let (was, message) = (Some(self.was[at]), self.renamed(at));
            match message.role() {
                Role::Tool => {
                    in_run = false;
                    let found = &self.pairs.found[self.places[&(at, 0)]];
                    match found.fate {
                        Fate::Answers if !found.is_moved => out.push((was, message)),
                        Fate::Text => {
                            let texts = found.as_text(self.format, &self.messages, &self.pairs);
                            let texts = texts.into_iter().map(|text| self.format.own(text));
                            gated.extend(texts.map(|text| (gate, (was, text))));
                        }
                        _ => {}
                    }
                }
                Role::Assistant => {
                    if !in_run && !thinks {
                        gate = out.len();
                    }
                    (in_run, thinks) = (true, is(&message, &Kind::Reasoning));
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
        let out = opened(out, gated);
        let out = settle_reasoning(self.format, out, close_tail, applies, self.log);
        out.into_iter().map(|(_, message)| message).collect()
    }

    /// The results of a step that are not after it yet.
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

/// Items with insertions.
fn opened(items: Vec<Placed>, gated: Vec<(usize, Placed)>) -> Vec<Placed> {
    let mut all = Vec::with_capacity(items.len() + gated.len());
    let mut gated = gated.into_iter().peekable();
    for (at, item) in items.into_iter().enumerate() {
        while let Some((_, text)) = gated.next_if(|(gate, _)| *gate <= at) {
            all.push(text);
        }
        all.push(item);
    }
    all.extend(gated.map(|(_, text)| text));
    all
}
