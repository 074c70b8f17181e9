//! A session in one JSON text: an array of messages, or a request with messages.
use super::{
    Document, End, Planned, agents, messages,
    outline::{Outline, TooMany},
};
use crate::{
    files::CliError,
    session::{
        report::{About, Form, Health},
        sidecar::{Checkpoint, hash},
        verdict::{Failure, NotJudged, Verdict},
    },
};
use serde::{Deserialize, de::IgnoredAny};
use std::error::Error as _;
use tr_integrity::{ResetOptions, Session};
use tr_transcript::{Format, Message, ReadError, Repair, Transcript, Validator};

/// An array of messages, or a request with messages.
#[derive(Debug)]
pub(crate) struct JsonDocument {
    text: String,
    transcript: Transcript,
    /// For each message, its line from 1, and where it ends, in bytes.
    places: Vec<(u64, usize)>,
}

impl JsonDocument {
    /// Reads the text of a file.
    pub(crate) fn read(bytes: Vec<u8>) -> Result<Self, Failure> {
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            Failure::NoSession(format!("line {} is not UTF-8", 1 + ends_in(valid)))
        })?;
        if let Some(outline) = Outline::of(&text).map_err(|TooMany| too_many(&text))? {
            agents::refuse_document(&outline)?;
        }
        let transcript = Transcript::read(&text).map_err(|error| unread(&text, &error))?;
        if transcript.is_empty() && !names_request(&text) {
            return Err(Failure::NoSession("there are no messages in it".into()));
        }
        let is_message = |message: &Message| !message.says_unknown();
        if !transcript.is_empty() && !transcript.messages().iter().any(is_message) {
            return Err(Failure::NoSession("there are no messages of a known form in it".into()));
        }
        if let Some(api) = transcript.unknown_api() {
            return Err(NotJudged::of_unknown_api(api).into());
        }
        if transcript.is_words() && !has_model(&text) {
            return Err(Failure::NoSession("it has an input, and names no model".into()));
        }
        Ok(Self::new(text, transcript))
    }

    fn new(text: String, transcript: Transcript) -> Self {
        let (mut line, mut counted) = (1, 0);
        let places = transcript.spans().map(|span| {
            line += ends_in(&text.as_bytes()[counted..span.start]);
            counted = span.start;
            (line, span.end)
        });
        Self { places: places.collect(), text, transcript }
    }

    /// The form as which it would be read from its file, if that is another one than `self` has, and
    /// it is invalid in that.
    fn invalid_other_form(&self) -> Option<Form> {
        let format = self.transcript.format();
        let other = Format::detect(&self.text).unwrap_or(Format::AnthropicMessages);
        let again = (other != format).then(|| Transcript::read_as(other, &self.text))?.ok()?;
        let again = Self::new(self.text.clone(), again);
        (again.health().verdict() != Verdict::Clean).then(|| again.about().form)
    }

    /// The first `len` messages, and the text around them.
    fn first(&self, len: usize) -> Self {
        let mut transcript = self.transcript.clone();
        transcript.truncate(len);
        Self::new(transcript.to_json(), transcript)
    }

    fn line(&self, message: usize) -> Option<u64> {
        Some(self.places.get(message).or(self.places.last()).map_or(1, |(line, _)| *line))
    }
}

impl Document for JsonDocument {
    fn about(&self) -> About {
        About {
            form: Form::Json(self.transcript.format()),
            messages: self.transcript.len(),
            bytes: self.text.len() as u64,
            skipped_bytes: 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn numbered(&self) -> Vec<(u64, &[u8])> {
        messages::numbered(&self.transcript)
    }

    fn line_of(&self, record: u64) -> Option<u64> {
        usize::try_from(record).ok().and_then(|at| self.line(at))
    }

    fn health(&self) -> Health {
        let validator = Validator::with_members_of(&self.transcript);
        messages::health(&validator, |at| self.line(at))
    }

    fn plan(&self, repair: Repair) -> Result<Planned, NotJudged> {
        let (plan, before) = (repair.plan(&self.transcript), &self.transcript);
        let planned = messages::planned(&plan, |at| self.line(at));
        let mut after = before.clone();
        let _ = plan.apply(&mut after).expect("it was planned for this transcript");
        let planned = planned.compared(before, &after);
        let after = Self::new(after.to_json(), after);
        let other_form = after.invalid_other_form();
        Ok(Planned { other_form, after: Some(Box::new(after)), ..planned })
    }

    fn before_fault(&self) -> Box<dyn Document> {
        Box::new(self.first(messages::clean(&self.transcript)))
    }

    /// The end of the last message.
    fn end(&self) -> Option<End> {
        let (_, end) = self.places.last()?;
        Some(End::of(&self.text.as_bytes()[..*end], None))
    }

    fn at(&self, checkpoint: &Checkpoint) -> Option<Box<dyn Document>> {
        let (_, end) = self.places.get(checkpoint.message_index.checked_sub(1)?)?;
        let holds = checkpoint.length == Some(*end as u64)
            && hash(&self.text.as_bytes()[..*end]) == checkpoint.content_hash;
        holds.then(|| Box::new(self.first(checkpoint.message_index)) as _)
    }

    /// Only the system's prompt, and the text around it.
    fn prompt(&self, _archive: bool) -> Box<dyn Document> {
        let mut session = Session::load("", self.transcript.clone());
        session.reset(ResetOptions::default(), 0);
        let transcript = session.transcript().clone();
        Box::new(Self::new(transcript.to_json(), transcript))
    }
}

/// A list of more messages than any provider accepts is not judged; without roles it is no session.
fn too_many(text: &str) -> Failure {
    let reason = "it has more than 100,000 messages, and no provider takes so many";
    if !names_a_role(text) {
        return Failure::NoSession(
            "it is a list of more than 100,000 elements, and none has a role".into(),
        );
    }
    let help =
        "it was not changed; to have it judged, check a copy with only the messages that are sent";
    NotJudged::new(reason, help).into()
}

/// Distinguishes a damaged session from other content.
fn unread(text: &str, error: &ReadError) -> Failure {
    let mut what = error.to_string();
    if let Some(source) = error.source() {
        what = format!("{what}: {source}");
    }
    if !names_a_role(text) {
        return Failure::NoSession(what);
    }
    if error.message_index().is_some() {
        let help = "the program that wrote it is not known here; to have it judged, give a request whose \
                    messages are all in the provider's form";
        return NotJudged::new(what, help).into();
    }
    let help = if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        "nothing in it is broken: another program keeps its sessions so, and this one does not \
         read them; leave it as it is"
    } else {
        "if it was cut off, take an earlier copy of it; else fix the JSON by hand"
    };
    Failure::CliError(CliError::new(what, help))
}

/// Whether a text has a known role.
fn names_a_role(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find("\"role\"") {
        rest = &rest[at + "\"role\"".len()..];
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start).unwrap_or_default();
        let roles = ["user", "assistant", "system", "developer", "tool", "model"];
        if roles.iter().any(|role| value.strip_prefix('"').is_some_and(|v| v.starts_with(role))) {
            return true;
        }
    }
    false
}

/// Whether a text without messages is a request nevertheless: it names a model, or has a system
/// prompt.
fn names_request(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Request {
        #[serde(alias = "systemInstruction", alias = "system_instruction", alias = "instructions")]
        system: Option<IgnoredAny>,
    }
    has_model(text) || serde_json::from_str::<Request>(text).is_ok_and(|it| it.system.is_some())
}

/// Whether a request names its model: many other files have an `input`.
fn has_model(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Request {
        model: Option<IgnoredAny>,
    }
    serde_json::from_str::<Request>(text).is_ok_and(|request| request.model.is_some())
}

fn ends_in(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
