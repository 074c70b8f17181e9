//! Validates a transcript message by message; an append takes the same time at any length.
mod fault;
mod finding;
mod findings;
mod ids;
mod item_state;
mod items;
mod member_state;
mod members;
mod step;
mod turn;

pub use self::{
    fault::{Fault, Severity},
    finding::{Finding, ValidationResult},
};
use crate::{
    format::{Blanks, Format, Results, Rules},
    keys::Lookup,
    message::{Kind, Message, Role},
};
use finding::EMPTY;
use findings::Findings;
use ids::Ids;
use item_state::Items;
use member_state::Members;
use step::{OpenUse, Step};
use turn::{FaultyUse, ServerUses, Turn};

/// Validates a transcript against three general rules and the provider's own: every result has a
/// use in the step before it (1), every use has a result (2), and ids are unique (3).
///
/// A state machine without I/O: it reads each message once and keeps ids and findings, not the
/// messages.
///
/// ```
/// use tr_transcript::{Fault, Transcript, Validator};
///
/// let transcript = Transcript::read(r#"[
///     {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":{}}]},
///     {"role":"user","content":"go on"}
/// ]"#)?;
/// let validator = Validator::of(&transcript);
/// assert_eq!(validator.findings()[0].fault, Fault::IncompleteUse);
/// assert_eq!(validator.result().error.as_deref(), Some("Incomplete tool_use: toolu_1"));
/// # Ok::<_, tr_transcript::ReadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Validator {
    format: Format,
    len: usize,
    /// The messages that use each id, in order.
    uses: Ids,
    pub(crate) findings: Findings,
    last: Option<Role>,
    step: Option<Step>,
    pub(crate) items: Items,
    turn: Turn,
    /// Those of the provider's tools, if members are checked.
    server: ServerUses,
    /// The state for checking members; `None` if they are not checked.
    members: Option<Members>,
    /// The form in which the provider is asked, if it is known to be another.
    asked: Option<Format>,
}

impl Validator {
    /// Starts before the first message.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            format,
            len: 0,
            uses: Ids::default(),
            findings: Findings::default(),
            last: None,
            step: None,
            items: Items::default(),
            turn: Turn::default(),
            server: ServerUses::default(),
            members: None,
            asked: None,
        }
    }

    /// Checks the next message.
    pub fn push(&mut self, message: &Message) {
        let rules = self.format.rules();
        if message.is_aside(rules) {
            self.len += 1;
            return;
        }
        if let Some(members) = &mut self.members {
            members.count(self.len, message, self.last);
        }
        self.check_blocks(message);
        self.check_blanks(message, rules.blanks);
        self.check_members(message, rules);
        if self.members.is_some() {
            let unanswered = self.server.take(self.len, message);
            self.report_uses(unanswered);
        }
        match rules.results {
            Results::Blocks => self.check_answers(message, rules),
            Results::Messages => self.check_tool_message(message),
            Results::Items => self.check_item(message),
        }
        if message.role() == Role::Assistant {
            self.open_step(message, rules);
        }
        if rules.signs_steps {
            let unsigned = self.turn.take(self.len, message);
            self.report_uses(unsigned);
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

    /// All findings, in the order in which they occurred.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        self.findings.left()
    }

    /// Whether the provider accepts the session: warnings and a live tail do not count.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.findings.errors == 0
    }

    /// The uses of the live tail that wait for their results: those of the last assistant message,
    /// as long as results may still follow it.
    pub fn pending(&self) -> impl Iterator<Item = &str> {
        self.step.iter().flat_map(Step::waiting).map(|open| &*open.key.id)
    }

    /// The validation's summary.
    #[must_use]
    pub fn result(&self) -> ValidationResult {
        ValidationResult::of(self.findings())
    }

    /// Whether the end waits for more: uses for their results, or reasoning for the output after
    /// it. The provider would refuse it as it is.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.live_step().is_some() || !self.items.reasoning.is_empty()
    }

    /// The first message that may still get a finding; the next message if there is none.
    pub(crate) fn first_waiting(&self) -> usize {
        let step = self.live_step().unwrap_or(self.len);
        let empty = self.members.as_ref().and_then(|members| members.empty);
        let wide = self.members.as_ref().and_then(|members| members.wide.first());
        let open = empty.into_iter().chain(self.server.first).chain(wide.map(|&(at, _)| at));
        let reasoning = self.items.reasoning.first().map(|&(at, _)| at);
        let waiting = reasoning.into_iter().chain(open).min();
        step.min(waiting.unwrap_or(self.len))
    }

    /// The index where the step of the live tail's uses begins.
    #[must_use]
    pub fn live_step(&self) -> Option<usize> {
        self.step.as_ref().filter(|step| step.waits()).map(|step| step.message)
    }

    /// The last message that uses `id`.
    #[must_use]
    pub fn last_use_of(&self, id: &str) -> Option<usize> {
        self.uses.last(id)
    }

    /// Removes all but the first `len` of `messages`. Takes a few nanoseconds for each removed use,
    /// and the time to check one step.
    pub fn truncate(&mut self, messages: &[Message], len: usize) {
        self.uses.truncate(len);
        self.findings.truncate(len);

        // The state of the last step is rebuilt by a new validator.
        let from = self.format.last_step(&messages[..len]);
        let mut replay = Self { len: from, ..self.restarted() };
        if let Some(members) = &mut replay.members {
            let mut last = None;
            for (at, message) in messages[..from].iter().enumerate() {
                if !message.is_aside(self.format.rules()) {
                    members.count(at, message, last.replace(message.role()));
                }
            }
            // They are reported already.
            drop(members.take_wide());
        }
        messages[from..len].iter().for_each(|message| replay.push(message));
        self.step = replay.step;
        self.turn = replay.turn;
        self.members = replay.members;
        if self.members.is_some() {
            self.server = ServerUses::of(&messages[..len]);
        }
        if self.format.rules().results == Results::Items {
            self.truncate_items(&messages[..len]);
        }
        let speaks = |message: &&Message| !message.is_aside(self.format.rules());
        self.last = messages[..len].iter().rfind(speaks).map(Message::role);
        self.len = len;
    }

    /// Reports a fault; what else is known of it may be added to the finding.
    fn report(
        &mut self,
        fault: Fault,
        message: usize,
        block: Option<usize>,
        id: Option<&str>,
    ) -> &mut Finding {
        let finding = Finding {
            fault,
            severity: fault.severity(self.format, self.asked),
            message_index: message,
            block_index: block,
            tool_use_id: id.map(Into::into),
            format: self.format,
            about: Box::default(),
            refused: None,
            noticed: self.len,
            asked: self.asked,
            sent_position: self.sent_position(message, block),
        };
        self.findings.push(finding)
    }

    fn report_uses(&mut self, uses: Vec<FaultyUse>) {
        for (at, block, fault, id, name) in uses {
            self.report(fault, at, Some(block), Some(&id)).about = name;
        }
    }

    /// Results are blocks at the head of the message after the step.
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
                let matched = step.as_mut().map_or(Lookup::None, |step| step.matching(&key));
                match matched {
                    Lookup::None => Some(Fault::OrphanedResult),
                    Lookup::Answered(_) => Some(Fault::SeveralResults),
                    Lookup::Waits(_) if other_content => Some(Fault::ResultAfterContent),
                    Lookup::Waits(_) => None,
                }
            };
            if let Some(fault) = fault {
                self.report(fault, self.len, Some(at), Some(id));
            }
        }
        let answered = message.role() == Role::User;
        let fault = if answered { Fault::IncompleteUse } else { Fault::UseWithoutUser };
        self.close(step, fault);
    }

    /// Results are messages directly after the step.
    fn check_tool_message(&mut self, message: &Message) {
        if message.role() != Role::Tool {
            let step = self.step.take();
            return self.close(step, Fault::IncompleteUse);
        }
        let follows_step = self.step.is_some();
        for key in message.blocks().iter().filter_map(|block| block.kind.key(false)) {
            let matched = self.step.as_mut().map_or(Lookup::None, |step| step.matching(&key));
            let fault = match matched {
                Lookup::Waits(_) => continue,
                Lookup::Answered(_) => Fault::SeveralResults,
                Lookup::None if follows_step => Fault::OrphanedResult,
                Lookup::None => Fault::ResultWithoutAssistant,
            };
            self.report(fault, self.len, None, Some(&key.id));
        }
    }

    fn close(&mut self, step: Option<Step>, fault: Fault) {
        let Some(step) = step.filter(Step::waits) else { return };
        for OpenUse { message, block, key, noun, .. } in step.waiting() {
            self.report(fault, *message, Some(*block), Some(&key.id)).about = (*noun).into();
        }
    }

    fn open_step(&mut self, message: &Message, rules: Rules) {
        let at = self.len;
        let mut uses = Vec::with_capacity(message.tool_uses().count());
        for (block, part) in message.blocks().iter().enumerate() {
            let Kind::Use { id, id_at, noun, .. } = &part.kind else { continue };
            let is_again = self.uses.note(id, at, ());
            // A tool's name that stands for an id may repeat.
            let names_it = id_at.is_none() && rules.names_pair;
            if id.is_empty() && !rules.names_pair {
                let about = if id_at.is_some() { EMPTY } else { "" };
                self.report(Fault::MissingId, at, Some(block), None).about = about.into();
            } else if is_again && !names_it {
                self.report(Fault::DuplicateId, at, Some(block), Some(id));
            }
            let Some(key) = part.kind.key(rules.names_pair) else { continue };
            uses.push(OpenUse::new(at, block, key, noun));
        }
        if rules.results == Results::Items {
            return self.extend_step(uses);
        }
        let Some(OpenUse { block, key, .. }) = uses.first() else { return };
        if rules.follows_user.is_some() && self.last != Some(Role::User) {
            self.report(Fault::UseOutOfTurn, at, Some(*block), Some(&key.id));
        }
        let mut step = Step::new(at, false);
        step.extend(uses);
        self.step = Some(step);
    }
}
