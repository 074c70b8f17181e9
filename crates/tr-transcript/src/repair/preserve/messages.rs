//! Writes forms where results are messages.
use super::{Fate, Role, Writer};

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
}
