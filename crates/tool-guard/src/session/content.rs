//! A session that is one JSON text: what is wrong with it, and what a change makes of it.
use super::{
    Failure, Trouble,
    report::{About, Act, Found, Health, Lost},
    sidecar::Checkpoint,
};
use std::{error::Error as _, path::Path};
use tr_integrity::{
    ActionKind, ReadError, Repair, RepairMode, ResetOptions, Session, Transcript, Validator,
};

/// What a JSON text has to begin with to hold messages.
const OPENINGS: [char; 2] = ['[', '{'];

/// An array of messages, or a request that has them.
#[derive(Debug)]
pub(crate) struct Content {
    text: String,
    transcript: Transcript,
    /// The line at which each message begins, from 1, and where it ends, in bytes.
    places: Vec<(usize, usize)>,
}

/// What a repair does.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) acts: Vec<Act>,
    pub(crate) losses: Vec<Lost>,
    /// What it leads to.
    pub(crate) after: Content,
}

impl Content {
    /// Reads the text of a file.
    pub(crate) fn read(bytes: Vec<u8>) -> Result<Self, Failure> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(Failure::NoSession("it is empty".into()));
        }
        if bytes.contains(&0) {
            return Err(Failure::NoSession("it is binary".into()));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            Failure::NoSession(format!("line {} is not UTF-8", line_of(valid)))
        })?;
        if !text.trim_start().starts_with(OPENINGS) {
            return Err(Failure::NoSession("it is no JSON".into()));
        }
        let transcript = Transcript::read(&text).map_err(|error| unread(&text, &error))?;
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

    pub(crate) fn about(&self) -> About {
        About {
            format: self.transcript.format(),
            messages: self.transcript.len(),
            bytes: self.text.len() as u64,
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The messages' texts, and at which line each begins.
    pub(crate) fn records(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.places.iter().map(|(line, _)| *line);
        lines.zip(self.transcript.messages().iter().map(tr_integrity::Message::raw))
    }

    pub(crate) fn health(&self) -> Health {
        let validator = Validator::of(&self.transcript);
        let format = self.transcript.format();
        let found = |finding: &tr_integrity::Finding| {
            Found::new(finding, format, self.line(finding.message_index))
        };
        Health {
            pending: validator.pending().map(str::to_owned).collect(),
            findings: validator.findings().iter().map(found).collect(),
        }
    }

    /// Plans a repair.
    pub(crate) fn plan(&self, mode: RepairMode, close_tail: bool) -> Planned {
        let repair = Repair::new(mode);
        let repair = if close_tail { repair.close_tail() } else { repair };
        let plan = repair.plan(&self.transcript);

        // In mode `remove`, messages are counted after the removals before.
        let mut was: Vec<_> = (0..self.transcript.len()).collect();
        let act = |action: &tr_integrity::RepairAction| {
            let at = was.get(action.message_index).copied().unwrap_or_default();
            if mode == RepairMode::Remove && action.action == ActionKind::RemoveEmptyMessage {
                was.remove(action.message_index);
            }
            Act { line: self.line(at), action: action.clone() }
        };
        let acts = plan.actions().iter().map(act).collect();
        let lose = |loss: &tr_integrity::Loss| Lost {
            line: self.line(loss.message_index),
            loss: loss.clone(),
        };
        let losses = plan.losses().iter().map(lose).collect();
        let mut after = self.transcript.clone();
        let _ = plan.apply(&mut after).expect("it was planned for this transcript");
        Planned { acts, losses, after: Self::new(after.to_json(), after) }
    }

    /// The most messages from the first on that the provider takes, all calls answered.
    pub(crate) fn clean_prefix(&self) -> usize {
        let mut validator = Validator::new(self.transcript.format());
        let mut clean = 0;
        for message in self.transcript.messages() {
            validator.push(message);
            if !validator.is_valid() {
                break;
            }
            if validator.pending().next().is_none() {
                clean = validator.len();
            }
        }
        clean
    }

    /// Where the last message ends, and the hash of all up to there; `None` if there is none.
    pub(crate) fn end(&self) -> Option<(u64, String)> {
        let (_, end) = *self.places.last()?;
        Some((end as u64, hash(&self.text.as_bytes()[..end])))
    }

    /// Whether what stands before a checkpoint is what stood there when it was made.
    pub(crate) fn holds(&self, checkpoint: &Checkpoint) -> bool {
        let last = checkpoint.message_index.checked_sub(1).and_then(|at| self.places.get(at));
        last.is_some_and(|(_, end)| {
            *end as u64 == checkpoint.length
                && hash(&self.text.as_bytes()[..*end]) == checkpoint.content_hash
        })
    }

    /// What the session is called: nothing in it says it, so by its file.
    pub(crate) fn id(&self, file: &Path) -> String {
        file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The first `len` messages, and the text around them.
    pub(crate) fn first(&self, len: usize) -> Self {
        let mut transcript = self.transcript.clone();
        transcript.truncate(len);
        Self::new(transcript.to_json(), transcript)
    }

    /// The system's prompt alone, and the text around it.
    pub(crate) fn prompt(&self) -> Self {
        let mut session = Session::load("", self.transcript.clone());
        session.reset(ResetOptions::default(), 0);
        let transcript = session.transcript().clone();
        Self::new(transcript.to_json(), transcript)
    }

    fn line(&self, message: usize) -> usize {
        self.places.get(message).or(self.places.last()).map_or(1, |(line, _)| *line)
    }
}

/// Tells a session that is broken from something else.
fn unread(text: &str, error: &ReadError) -> Failure {
    let mut what = error.to_string();
    if let Some(source) = error.source() {
        what = format!("{what}: {source}");
    }
    if !text.contains("\"role\"") {
        return Failure::NoSession(what);
    }
    let help = "if it was cut off, take an earlier copy of it; else mend the JSON by hand";
    Failure::Trouble(Trouble::new(what, help))
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// On which line `bytes` end, from 1.
fn line_of(bytes: &[u8]) -> usize {
    1 + ends_in(bytes)
}

fn ends_in(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}
