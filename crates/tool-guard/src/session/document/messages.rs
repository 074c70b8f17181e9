//! A session whose messages are one JSON text: an array of messages or a request in a file, or a session of a database.
use super::{Document, Numbered, Planned, doubt, refuse_guess};
use crate::session::{
    edit::Edit,
    report::{About, Form, Found, Health},
    sidecar::{Checkpoint, hash},
    verdict::{NotJudged, Verdict},
};
use std::collections::BTreeSet;
use tr_integrity::{ResetOptions, Session};
use tr_transcript::{
    ActionKind, CheckpointError, FileAction, FileActionKind, FileLoss, Finding, Format, Loss,
    Repair, RepairAction, Transcript, Validator,
};

/// A session whose messages are one JSON text.
#[derive(Debug)]
pub(crate) struct Messages {
    text: String,
    of: Of,
}

/// Where the messages are.
#[derive(Debug)]
enum Of {
    File {
        transcript: Transcript,
        /// For each message, its line from 1, and where it ends, in bytes.
        places: Vec<(u64, usize)>,
    },
    /// The session as it would be, and the change since the stored state, if there is one.
    Database { session: Box<Session>, edit: Option<Edit> },
}

impl Messages {
    /// Those of a file with this text.
    pub(super) fn of_file(text: String, transcript: Transcript) -> Self {
        let (mut line, mut counted) = (1, 0);
        let places = transcript.spans().map(|span| {
            line += ends_in(&text.as_bytes()[counted..span.start]);
            counted = span.start;
            (line, span.end)
        });
        let places = places.collect();
        Self { text, of: Of::File { transcript, places } }
    }

    /// Those of a session in a database.
    pub(crate) fn stored(session: Session) -> Self {
        Self::of_session(Box::new(session), None)
    }

    fn of_session(session: Box<Session>, edit: Option<Edit>) -> Self {
        Self { text: session.transcript().to_json(), of: Of::Database { session, edit } }
    }

    fn transcript(&self) -> &Transcript {
        match &self.of {
            Of::File { transcript, .. } => transcript,
            Of::Database { session, .. } => session.transcript(),
        }
    }

    /// With a change.
    fn changed(&self, edit: Edit) -> Result<Self, CheckpointError> {
        let mut session = match &self.of {
            Of::File { transcript, .. } => Box::new(Session::load("", transcript.clone())),
            Of::Database { session, .. } => session.clone(),
        };
        // A planned change is not written, so its time does not matter.
        edit.make(&mut session, 0)?;
        let Of::File { .. } = self.of else { return Ok(Self::of_session(session, Some(edit))) };
        let transcript = session.transcript().clone();
        Ok(Self::of_file(transcript.to_json(), transcript))
    }

    /// With a change that cannot fail.
    fn with(&self, edit: Edit) -> Self {
        self.changed(edit).expect("only a rollback to a checkpoint can be refused")
    }

    /// The form as which it would be read from its file, if that is another one than `self` has, and
    /// it is invalid in that.
    fn invalid_other_form(&self) -> Option<Form> {
        let Of::File { transcript, .. } = &self.of else { return None };
        let other = Format::detect(&self.text).unwrap_or(Format::AnthropicMessages);
        let is_other = other != transcript.format();
        let again = is_other.then(|| Transcript::read_as(other, &self.text))?.ok()?;
        let again = Self::of_file(self.text.clone(), again);
        (again.health().verdict() != Verdict::Clean).then(|| again.about().form)
    }

    /// The line of a file at which a message begins.
    fn line(&self, message: usize) -> Option<u64> {
        let Of::File { places, .. } = &self.of else { return None };
        Some(places.get(message).or(places.last()).map_or(1, |(line, _)| *line))
    }
}

impl Document for Messages {
    fn about(&self) -> About {
        let format = self.transcript().format();
        About {
            form: match self.of {
                Of::File { .. } => Form::Json(format),
                Of::Database { .. } => Form::Stored(format),
            },
            messages: self.transcript().len(),
            bytes: self.text.len() as u64,
            skipped_bytes: 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn numbered(&self) -> Numbered<'_> {
        let messages = self.transcript().messages().iter();
        Box::new((0..).zip(messages.map(|message| message.raw().as_bytes())))
    }

    fn line_of(&self, record: u64) -> Option<u64> {
        usize::try_from(record).ok().and_then(|at| self.line(at))
    }

    fn health(&self) -> Health {
        let validator = Validator::with_members_of(self.transcript());
        let found =
            |finding: &Finding| Found::of_message(finding, self.line(finding.message_index));
        let findings: Vec<_> = validator.findings().iter().map(found).collect();
        let cycles = match &self.of {
            Of::File { .. } => &[],
            Of::Database { session, .. } => session.cycles(),
        };
        Health {
            pending: validator.pending().map(str::to_owned).collect(),
            running: cycles.iter().map(|cycle| cycle.tool_use.id.to_string()).collect(),
            found: findings.len() as u64,
            errors: findings.iter().filter(|found| found.is_error()).count() as u64,
            findings,
        }
    }

    fn plan(&self, repair: Repair) -> Result<Planned, NotJudged> {
        let plan = repair.plan(self.transcript());
        let mut reported = BTreeSet::new();
        let act = |(action, at): (&RepairAction, usize)| {
            reported.insert(at as u64);
            if action.action == ActionKind::JoinMessages {
                // The message before it is merged into it.
                let before = (0..at as u64).rfind(|before| !reported.contains(before));
                reported.extend(before);
            }
            FileAction { line: self.line(at), action: FileActionKind::Message(action.clone()) }
        };
        let acts: Vec<_> = plan.actions().iter().zip(plan.places()).map(act).collect();
        reported.extend(plan.losses().iter().map(|lost| lost.message_index as u64));
        let lose =
            |loss: &Loss| FileLoss { line: self.line(loss.message_index), loss: loss.clone() };
        let losses = plan.losses().iter().map(lose).collect();
        let after = self.with(Edit::Repair(repair));
        let (before, now) = (self.transcript(), after.transcript());
        let doubt = match acts.is_empty() {
            true => None,
            false => doubt(before.first_changed_unknown(now), before.first_doubtful_answer(now)),
        };
        refuse_guess(doubt, self.about().form, || after.invalid_other_form())?;
        Ok(Planned { acts, losses, reported, dropped: 0, after: Some(Box::new(after)) })
    }

    fn before_fault(&self) -> Box<dyn Document> {
        let mut validator = Validator::with_members_of(self.transcript()).restarted();
        let mut clean = 0;
        for message in self.transcript().messages() {
            validator.push(message);
            if !validator.is_valid() {
                break;
            }
            if validator.pending().next().is_none() {
                clean = validator.len();
            }
        }
        Box::new(self.with(Edit::Truncate(clean)))
    }

    /// In a file, the end of the last message.
    fn end(&self) -> Option<(&[u8], Option<Box<str>>)> {
        let Of::File { places, .. } = &self.of else { return None };
        let (_, end) = places.last()?;
        Some((&self.text.as_bytes()[..*end], None))
    }

    fn at(&self, checkpoint: &Checkpoint) -> Option<Box<dyn Document>> {
        let Of::File { places, .. } = &self.of else {
            let edit = Edit::Rollback(checkpoint.id.as_str().into());
            return Some(Box::new(self.changed(edit).ok()?));
        };
        let (_, end) = places.get(checkpoint.message_index.checked_sub(1)?)?;
        let holds = checkpoint.length == Some(*end as u64)
            && hash(&self.text.as_bytes()[..*end]) == checkpoint.content_hash;
        holds.then(|| Box::new(self.with(Edit::Truncate(checkpoint.message_index))) as _)
    }

    /// Only the system's prompt, and the text around it.
    fn prompt(&self, archive: bool) -> Box<dyn Document> {
        Box::new(self.with(Edit::Reset(ResetOptions { archive })))
    }

    fn edit(&self) -> Option<&Edit> {
        let Of::Database { edit, .. } = &self.of else { return None };
        edit.as_ref()
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        let Of::Database { session, .. } = &self.of else { return Vec::new() };
        session.checkpoints().iter().map(Checkpoint::of_session).collect()
    }
}

/// How many lines end in these bytes.
pub(super) fn ends_in(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
