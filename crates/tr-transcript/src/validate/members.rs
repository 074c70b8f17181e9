//! Checks what does not depend on how calls and results are paired: unknown parts, empty parts, and
//! what the provider refuses ([`Validator::with_members`]); whole transcripts; and how a complete
//! request begins and ends.
use super::{Fault, Validator, finding::WHITE, member_state::Members};
use crate::{
    format::{Applies, Blanks, Refused, Rules, Sent},
    message::{Blank, Kind, MANY, Message, Role, Unknown},
    transcript::Transcript,
};

/// How many marks for the cache a request may have.
const MOST_CACHE_MARKS: usize = 4;

impl Validator {
    /// Also checks what the provider refuses regardless of pairing: tool names, ids, inputs,
    /// contents, texts of white space, and that the provider's own tools have results. A running
    /// session only needs its results to be paired; use this to find out why a provider refuses a
    /// session.
    ///
    /// ```
    /// use tr_transcript::{Fault, Transcript, Validator};
    ///
    /// let transcript = Transcript::read(r#"[
    ///     {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"","input":{}}]}
    /// ]"#)?;
    /// assert!(Validator::of(&transcript).is_valid());
    /// let validator = Validator::with_members_of(&transcript);
    /// assert_eq!(validator.findings()[0].fault, Fault::RefusedName);
    /// # Ok::<_, tr_transcript::ReadError>(())
    /// ```
    #[must_use]
    pub fn with_members(self) -> Self {
        self.checking(Some(Applies::default()))
    }

    /// The same, if anything applies.
    pub(crate) fn checking(self, members: Option<Applies>) -> Self {
        Self { members: members.map(Members::new), ..self }
    }

    /// Checks all messages of `transcript`.
    #[must_use]
    pub fn of(transcript: &Transcript) -> Self {
        let mut validator = Self::new(transcript.format());
        validator.push_all(transcript);
        validator
    }

    fn push_all(&mut self, transcript: &Transcript) {
        self.items.continues = transcript.continues;
        transcript.messages().iter().for_each(|message| self.push(message));
    }

    /// Checks all messages of `transcript` with their members and, for a complete request, how it
    /// begins and ends.
    #[must_use]
    pub fn with_members_of(transcript: &Transcript) -> Self {
        let mut validator = Self {
            members: Some(Members::new(transcript.applies)),
            asked: transcript.asked_in(),
            ..Self::new(transcript.format())
        };
        validator.push_all(transcript);
        if let Some(sent) = transcript.sent {
            validator.check_request(sent, transcript.messages());
        }
        validator
    }

    /// A new validator with the same settings and no messages.
    #[must_use]
    pub fn restarted(&self) -> Self {
        let members = self.members.as_ref().map(|members| Members::new(members.applies));
        let asked = self.asked;
        let mut validator = Self { members, asked, ..Self::new(self.format) };
        validator.items.continues = self.items.continues;
        validator
    }

    /// The position in the request as the provider gets it, where consecutive tool results are one
    /// message. Valid for the current message and for the step that it closes.
    pub(super) fn sent_position(
        &self,
        message: usize,
        block: Option<usize>,
    ) -> (usize, Option<usize>) {
        let Some(&Members { sent, results, .. }) = self.members.as_ref() else {
            return (message, block);
        };
        if message == self.len {
            return (sent.saturating_sub(1), block.or(Some(results)));
        }
        let are_before = usize::from(self.last == Some(Role::Tool));
        (sent.saturating_sub(2 + are_before), block)
    }

    /// Reports unknown parts.
    pub(super) fn check_blocks(&mut self, message: &Message) {
        if message.body.unknown == Some(Unknown::Content) {
            self.report(Fault::UnknownMessage, self.len, None, None);
        }
        let faults = message.blocks().iter().enumerate().filter_map(|(at, block)| {
            let is_unknown = block.unknown == Some(Unknown::Content);
            match block.kind {
                Kind::Unread => Some((at, Fault::UnreadBlock)),
                _ => is_unknown.then_some((at, Fault::UnknownBlock)),
            }
        });
        // The limit is safe: such a message is not judged in any case.
        for (at, fault) in faults.take(MANY) {
            self.report(fault, self.len, Some(at), None);
        }
    }

    pub(super) fn check_blanks(&mut self, message: &Message, refused: Blanks) {
        if message.body.unknown == Some(Unknown::Content) {
            return;
        }
        let blocks = message.blocks();
        let is_refused = match refused {
            Blanks::Nothing => return,
            Blanks::Messages => true,
            Blanks::Texts => message.role() == Role::User,
        };
        if blocks.is_empty() && is_refused {
            self.report(Fault::EmptyMessage, self.len, None, None);
        }
        if refused == Blanks::Messages {
            return;
        }
        for (at, block) in blocks.iter().enumerate() {
            if matches!(block.kind, Kind::Text(Blank::Empty)) {
                self.report(Fault::EmptyText, self.len, Some(at), None);
            }
        }
        let is_white = blocks.iter().any(|block| matches!(block.kind, Kind::Text(Blank::White)));
        if is_white && message.is_blank() {
            self.report(Fault::BlankMessage, self.len, None, None);
        }
    }

    /// Reports what the provider refuses in `message`; called by `push`, does nothing without
    /// `with_members`.
    pub(super) fn check_members(&mut self, message: &Message, rules: Rules) {
        let Some(members) = &mut self.members else { return };
        let (applies, wide) = (members.applies, members.take_wide());
        let applies = |refused: &&Refused| applies.to(refused);
        let (at, is_assistant) = (self.len, message.role() == Role::Assistant);
        let says_nothing =
            message.blocks().is_empty() && message.body.unknown != Some(Unknown::Content);
        let asks_content = rules.blanks == Blanks::Texts && says_nothing;
        let is_empty = asks_content && is_assistant;
        if let Some(empty) = std::mem::replace(&mut members.empty, is_empty.then_some(at)) {
            self.report(Fault::EmptyAnswer, empty, None, None);
        }
        for (at, block) in wide {
            self.report_refused(Refused::wide(), at, Some(block), None);
        }
        // Avoids a second finding for the same content, and judges no unknown part.
        let is_found = asks_content && message.role() == Role::User
            || message.body.unknown == Some(Unknown::Content);
        if let Some(refused) = message.refused().filter(|_| !is_found).filter(applies) {
            self.report_refused(refused.clone(), at, None, None);
        }
        for (block, part) in message.blocks().iter().enumerate() {
            let id = match &part.kind {
                Kind::Use { id, .. } => Some(&**id),
                _ => None,
            };
            if let Some(refused) = part.refused.as_deref().filter(applies) {
                self.report_refused(refused.clone(), at, Some(block), id);
            }
            if id.is_some() && matches!(message.role(), Role::User | Role::System) {
                self.report(Fault::MisplacedBlock, at, Some(block), id);
            }
        }
        if rules.blanks == Blanks::Texts {
            self.check_texts(message);
        }
    }

    /// Texts of white space are also refused next to others, and so is a text after a use.
    fn check_texts(&mut self, message: &Message) {
        let at = self.len;
        let mut used = None;
        for (block, part) in message.blocks().iter().enumerate() {
            match &part.kind {
                Kind::Text(Blank::White) if !message.is_blank() => {
                    self.report(Fault::BlankText, at, Some(block), None);
                }
                Kind::Use { id, .. } => used = Some((block, id)),
                _ => {}
            }
            if let (Some((use_block, id)), Kind::Text(Blank::No | Blank::White)) =
                (used, &part.kind)
            {
                self.report(Fault::ContentAfterUse, at, Some(use_block), Some(id));
                used = None;
            }
        }
    }

    /// Checks how a complete request begins and ends.
    fn check_request(&mut self, sent: Sent, messages: &[Message]) {
        let rules = self.format.rules();
        // Only Anthropic refuses these, and only its rules have `Blanks::Texts`.
        if rules.blanks != Blanks::Texts {
            return;
        }
        if messages.first().is_some_and(|first| first.role() == Role::System) {
            self.report(Fault::RefusedRole, 0, None, None);
        }
        let marks = messages.iter().map(Message::cache_marks).sum::<usize>() + sent.cache_marks;
        if marks > MOST_CACHE_MARKS {
            self.report_refused(Refused::marks(marks), 0, None, None);
        }
        let last = messages.iter().enumerate().rfind(|(_, message)| !message.is_aside(rules));
        let Some((at, last)) = last.filter(|(_, last)| last.role() == Role::Assistant) else {
            return;
        };
        if sent.refuses_prefill && self.live_step().is_none() {
            self.report(Fault::RefusedEnd, at, None, None);
            return;
        }
        let Some((block, part)) = last.blocks().iter().enumerate().next_back() else { return };
        if last.is_thought(block) {
            self.report(Fault::RefusedEnd, at, Some(block), None);
        } else if matches!(part.kind, Kind::Text(Blank::No)) && last.ends_in_space(block) {
            self.report(Fault::RefusedEnd, at, Some(block), None).about = WHITE.into();
        }
    }

    fn report_refused(
        &mut self,
        refused: Refused,
        message: usize,
        block: Option<usize>,
        id: Option<&str>,
    ) {
        let finding = self.report(refused.fault, message, block, id);
        finding.refused = Some(Box::new(refused));
    }
}
