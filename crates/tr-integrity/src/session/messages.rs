//! Every change of a session's messages, applied to transcript, validator, hashes and journal.
use super::Session;
use tr_transcript::{Message, Repair};

impl Session {
    pub(super) fn append(&mut self, message: Message) {
        self.validator.push(&message);
        self.chain.push(&message);
        self.transcript.push(message);
        self.journal.appended(&self.transcript.messages()[self.transcript.len() - 1]);
    }

    /// Adds a message with its own white space.
    pub(super) fn append_as_is(&mut self, message: Message) {
        self.validator.push(&message);
        self.chain.push(&message);
        self.transcript.push_as_is(message);
    }

    pub(super) fn cut(&mut self, len: usize) {
        self.journal.cut(self.transcript.len(), len);
        self.validator.truncate(self.transcript.messages(), len);
        self.chain.truncate(len);
        self.transcript.truncate(len);
    }

    pub(super) fn replace(&mut self, from: usize, messages: Vec<Message>) {
        self.follow_uses(from, &messages);
        self.put(from, messages);
    }

    /// Replaces all messages from `from` on.
    fn put(&mut self, from: usize, messages: Vec<Message>) {
        self.cut(from);
        messages.into_iter().for_each(|message| self.append(message));
    }

    /// Inserts `messages` at `at`.
    pub(super) fn insert(&mut self, at: usize, messages: Vec<Message>) {
        self.shift_uses(at, messages.len());
        let behind = self.transcript.messages()[at..].to_vec();
        self.put(at, messages.into_iter().chain(behind).collect());
    }

    /// Replaces the message at `at` by `message`, which has the same uses.
    pub(super) fn exchange(&mut self, at: usize, message: Message) {
        let behind = self.transcript.messages()[at + 1..].to_vec();
        self.put(at, [message].into_iter().chain(behind).collect());
    }

    /// Repairs the messages from `from` on, which begins a step.
    pub(super) fn repair_step(&mut self, from: usize) {
        let from = self.transcript.whole_from(from);
        let tail = self.transcript.rest(from);
        let plan = Repair::preserve().plan(&tail);
        if !plan.is_empty() {
            let messages = plan.messages().to_vec();
            self.replace(from, messages);
        }
    }
}
