//! Checks a transcript message by message; an append costs the same at any length.
mod finding;
mod ids;
mod items;
mod result;
mod turn;

pub use self::{
    finding::{Fault, Finding, Severity},
    result::ValidationResult,
};
use crate::{
    format::{Blanks, Format, Results, Rules},
    message::{Blank, Key, Kind, Message, Role},
    transcript::Transcript,
};
use finding::EMPTY;
use ids::Ids;
use items::Items;
use std::mem;
use turn::Turn;

/// Checks a transcript against rules 1–3 of 002 and the provider's own.
///
/// A pure state machine: it is given each message once and remembers ids and findings, never the
/// messages.
///
/// ```
/// use tr_integrity::{Fault, Transcript, Validator};
///
/// let transcript = Transcript::read(r#"[
///     {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":{}}]},
///     {"role":"user","content":"go on"}
/// ]"#)?;
/// let validator = Validator::of(&transcript);
/// assert_eq!(validator.findings()[0].fault, Fault::IncompleteUse);
/// assert_eq!(validator.result().error.as_deref(), Some("Incomplete tool_use: toolu_1"));
/// # Ok::<_, tr_integrity::ReadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Validator {
    format: Format,
    len: usize,
    /// Where each id is used: the messages, in order.
    uses: Ids,
    findings: Vec<Finding>,
    errors: usize,
    last: Option<Role>,
    step: Option<Step>,
    items: Items,
    turn: Turn,
}

/// The last step, while results may still come.
#[derive(Clone, Debug)]
struct Step {
    /// Where it begins.
    message: usize,
    uses: Vec<OpenUse>,
    /// The model may add to it.
    grows: bool,
}

#[derive(Clone, Debug)]
struct OpenUse {
    message: usize,
    block: usize,
    key: Key,
    noun: &'static str,
    results: usize,
}

impl Validator {
    /// Before the first message.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            format,
            len: 0,
            uses: Ids::default(),
            findings: Vec::new(),
            errors: 0,
            last: None,
            step: None,
            items: Items::default(),
            turn: Turn::default(),
        }
    }

    /// After all messages of `transcript`.
    #[must_use]
    pub fn of(transcript: &Transcript) -> Self {
        let mut validator = Self::new(transcript.format());
        validator.items.continues = transcript.continues();
        transcript.messages().iter().for_each(|message| validator.push(message));
        validator
    }

    /// Checks the next message.
    pub fn push(&mut self, message: &Message) {
        let rules = self.format.rules();
        self.check_blocks(message);
        self.check_blanks(message, rules.blanks);
        match rules.results {
            Results::Blocks => self.check_answers(message, rules),
            Results::Messages => self.check_tool_message(message),
            Results::Items => self.check_item(message),
        }
        if message.role() == Role::Assistant {
            self.open_step(message, rules);
        }
        if rules.signs_steps {
            self.check_signature(message);
        }
        self.last = Some(message.role());
        self.len += 1;
    }

    /// How many messages were checked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no message was checked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All that is wrong, in the order in which it showed.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether the provider takes the session: warnings don't count, nor does a live tail.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors == 0
    }

    /// The uses of the live tail that wait for their results: the last assistant message's, as
    /// long as results may still follow it.
    pub fn pending(&self) -> impl Iterator<Item = &str> {
        let uses = self.step.iter().flat_map(|step| &step.uses);
        uses.filter(|open| open.results == 0).map(|open| &*open.key.id)
    }

    /// The validation as 002 has it.
    #[must_use]
    pub fn result(&self) -> ValidationResult {
        ValidationResult::of(&self.findings)
    }

    /// What was found since the last time; it is remembered no more.
    pub(crate) fn take_findings(&mut self) -> Vec<Finding> {
        mem::take(&mut self.findings)
    }

    /// Whether something at the end waits for what comes: uses for their results, or reasoning for
    /// what follows from it. The provider would refuse it as it is.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.pending().next().is_some() || self.items.waits()
    }

    /// The first message of which something may still be found; the next one if there is none.
    pub(crate) fn first_waiting(&self) -> usize {
        let step = self.live_step().unwrap_or(self.len);
        step.min(self.items.first_waiting().unwrap_or(self.len))
    }

    /// Where the step of the live tail's uses begins.
    pub(crate) fn live_step(&self) -> Option<usize> {
        self.pending().next()?;
        self.step.as_ref().map(|step| step.message)
    }

    /// The last message that uses `id`.
    pub(crate) fn last_use_of(&self, id: &str) -> Option<usize> {
        self.uses.last(id)
    }

    /// Forgets all but the first `len` of `messages`. Costs a few nanoseconds for each use that is
    /// forgotten, and one step.
    pub(crate) fn truncate(&mut self, messages: &[Message], len: usize) {
        self.uses.truncate(len);
        let kept = self.findings.partition_point(|finding| finding.noticed < len);
        let gone = self.findings.drain(kept..);
        self.errors -= gone.filter(Finding::is_error).count();

        // What the last step waits for is found by giving it to a fresh validator.
        let from = self.format.last_step(&messages[..len]);
        let mut replay = Self { len: from, ..Self::new(self.format) };
        messages[from..len].iter().for_each(|message| replay.push(message));
        self.step = replay.step;
        self.turn = replay.turn;
        if self.format.rules().results == Results::Items {
            self.truncate_items(len, replay.items);
        }
        self.last = messages[..len].last().map(Message::role);
        self.len = len;
    }

    fn find(&mut self, fault: Fault, message: usize, block: Option<usize>, id: Option<&str>) {
        self.find_about(fault, message, block, id, Box::default());
    }

    fn find_about(
        &mut self,
        fault: Fault,
        message: usize,
        block: Option<usize>,
        id: Option<&str>,
        about: Box<str>,
    ) {
        let severity = fault.severity(self.format);
        self.errors += usize::from(severity == Severity::Error);
        self.findings.push(Finding {
            fault,
            severity,
            message_index: message,
            block_index: block,
            tool_use_id: id.map(Into::into),
            format: self.format,
            about,
            noticed: self.len,
        });
    }

    fn check_blocks(&mut self, message: &Message) {
        for (at, block) in message.blocks().iter().enumerate() {
            if matches!(block.kind, Kind::Unread) {
                self.find(Fault::UnreadBlock, self.len, Some(at), None);
            }
        }
    }

    fn check_blanks(&mut self, message: &Message, refused: Blanks) {
        let blocks = message.blocks();
        let is_refused = match refused {
            Blanks::Nothing => return,
            Blanks::Messages => true,
            Blanks::Texts => message.role() == Role::User,
        };
        if blocks.is_empty() && is_refused {
            self.find(Fault::EmptyMessage, self.len, None, None);
        }
        if refused == Blanks::Messages {
            return;
        }
        for (at, block) in blocks.iter().enumerate() {
            if block.kind == Kind::Text(Blank::Empty) {
                self.find(Fault::EmptyText, self.len, Some(at), None);
            }
        }
        let is_white = blocks.iter().any(|block| block.kind == Kind::Text(Blank::White));
        if is_white && message.is_blank() {
            self.find(Fault::BlankMessage, self.len, None, None);
        }
    }

    /// Results are blocks, and belong at the head of the message after the step.
    fn check_answers(&mut self, message: &Message, rules: Rules) {
        let mut step = self.step.take();
        let after_assistant = self.last == Some(Role::Assistant);
        let mut other_content = false;
        for (at, block) in message.blocks().iter().enumerate() {
            let (Kind::Result { id, .. }, Some(key)) =
                (&block.kind, block.kind.key(rules.names_pair))
            else {
                other_content = rules.blanks == Blanks::Texts;
                continue;
            };
            let fault = if message.role() != Role::User || !after_assistant {
                Some(Fault::ResultWithoutAssistant)
            } else {
                let matched = step.as_mut().map_or(Matched::None, |step| step.matching(&key));
                match matched {
                    Matched::None => Some(Fault::OrphanedResult),
                    Matched::Again => Some(Fault::SeveralResults),
                    Matched::First if other_content => Some(Fault::ResultAfterContent),
                    Matched::First => None,
                }
            };
            if let Some(fault) = fault {
                self.find(fault, self.len, Some(at), Some(id));
            }
        }
        let answered = message.role() == Role::User;
        let fault = if answered { Fault::IncompleteUse } else { Fault::UseWithoutUser };
        self.close(step, fault);
    }

    /// Results are messages, and belong directly behind the step.
    fn check_tool_message(&mut self, message: &Message) {
        if message.role() != Role::Tool {
            let step = self.step.take();
            return self.close(step, Fault::IncompleteUse);
        }
        let follows_step = self.step.is_some();
        for key in message.blocks().iter().filter_map(|block| block.kind.key(false)) {
            let matched = self.step.as_mut().map_or(Matched::None, |step| step.matching(&key));
            let fault = match matched {
                Matched::First => continue,
                Matched::Again => Fault::SeveralResults,
                Matched::None if follows_step => Fault::OrphanedResult,
                Matched::None => Fault::ResultWithoutAssistant,
            };
            self.find(fault, self.len, None, Some(&key.id));
        }
    }

    fn close(&mut self, step: Option<Step>, fault: Fault) {
        let uses = step.into_iter().flat_map(|step| step.uses);
        for open in uses.filter(|open| open.results == 0) {
            let OpenUse { message, block, key, noun, .. } = open;
            self.find_about(fault, message, Some(block), Some(&key.id), noun.into());
        }
    }

    fn open_step(&mut self, message: &Message, rules: Rules) {
        let at = self.len;
        let mut uses = Vec::new();
        for (block, part) in message.blocks().iter().enumerate() {
            let Kind::Use { id, id_at, noun, .. } = &part.kind else { continue };
            let is_again = self.uses.note(id, at, ());
            // A name in the place of an id may come again.
            let names_it = id_at.is_none() && rules.names_pair;
            if id.is_empty() && !rules.names_pair {
                let about = if id_at.is_some() { EMPTY } else { "" };
                self.find_about(Fault::MissingId, at, Some(block), None, about.into());
            } else if is_again && !names_it {
                self.find(Fault::DuplicateId, at, Some(block), Some(id));
            }
            let Some(key) = part.kind.key(rules.names_pair) else { continue };
            uses.push(OpenUse { message: at, block, key, noun, results: 0 });
        }
        if rules.results == Results::Items {
            return self.extend_step(uses);
        }
        let Some(OpenUse { block, key, .. }) = uses.first() else { return };
        if rules.follows_user.is_some() && self.last != Some(Role::User) {
            let (block, id) = (*block, key.id.clone());
            self.find(Fault::UseOutOfTurn, at, Some(block), Some(&id));
        }
        self.step = Some(Step { message: at, uses, grows: false });
    }
}

enum Matched {
    None,
    First,
    Again,
}

impl Step {
    /// Gives a result to the first use of its id that has none: pairs are made by occurrence.
    fn matching(&mut self, key: &Key) -> Matched {
        let mut same = self.uses.iter_mut().filter(|open| open.key.pairs(key)).peekable();
        if same.peek().is_none() {
            return Matched::None;
        }
        match same.find(|open| open.results == 0) {
            Some(open) => {
                open.results += 1;
                Matched::First
            }
            None => Matched::Again,
        }
    }
}
