//! A session of a database, in memory, with the change that a command makes.
use super::messages::{self, Planned};
use crate::{
    files::CliError,
    session::{
        report::{About, Form, Health},
        sidecar::Checkpoint,
    },
};
use tr_integrity::{ResetOptions, Session};
use tr_transcript::{CheckpointError, Message, Repair, RepairMode, Transcript, Validator};

/// A session of a database, in memory.
#[derive(Debug)]
pub(crate) struct StoredSession {
    session: Box<Session>,
    text: String,
    /// The change since the stored state, if there is one.
    edit: Option<Edit>,
}

/// A change of a stored session. It adds an entry to the session's log and removes none.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Repair(Repair),
    Rollback(Box<str>),
    Truncate(usize),
    Reset(ResetOptions),
}

impl Edit {
    pub(crate) fn make(&self, session: &mut Session, now: u64) -> Result<(), CheckpointError> {
        match self {
            Self::Repair(repair) => {
                let plan = session.plan(*repair);
                drop(session.apply(plan, now).expect("it was planned for this session"));
            }
            Self::Rollback(id) => drop(session.rollback(id, now)?),
            Self::Truncate(len) => drop(session.truncate(*len, now)),
            Self::Reset(options) => drop(session.reset(*options, now)),
        }
        Ok(())
    }
}

impl StoredSession {
    pub(crate) fn new(session: Session) -> Self {
        Self { text: session.transcript().to_json(), session: Box::new(session), edit: None }
    }

    fn edited(&self, edit: Edit) -> Result<Self, CheckpointError> {
        let mut session = (*self.session).clone();
        // A planned change is not written, so its time does not matter.
        edit.make(&mut session, 0)?;
        Ok(Self { edit: Some(edit), ..Self::new(session) })
    }

    /// The change since the stored state.
    pub(crate) fn edit(&self) -> Option<&Edit> {
        self.edit.as_ref()
    }

    pub(crate) fn about(&self) -> About {
        let transcript = self.session.transcript();
        About {
            form: Form::Stored(transcript.format()),
            messages: transcript.len(),
            bytes: self.text.len() as u64,
            skipped_bytes: 0,
        }
    }

    pub(crate) fn transcript(&self) -> &Transcript {
        self.session.transcript()
    }

    /// Its messages as one JSON text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = &str> {
        self.session.transcript().messages().iter().map(Message::raw)
    }

    pub(crate) fn health(&self) -> Health {
        let cycles = self.session.cycles().iter();
        let running = cycles.map(|cycle| cycle.tool_use.id.to_string()).collect();
        let transcript = self.session.transcript();
        let validator = Validator::with_members_of(transcript);
        Health { running, ..messages::health(&validator, |_| None) }
    }

    pub(crate) fn plan(&self, repair: Repair, mode: RepairMode) -> Planned<Self> {
        let (plan, len) = (self.session.plan(repair), self.session.transcript().len());
        messages::planned(&plan, mode, len, self.always(Edit::Repair(repair)), |_| None)
    }

    pub(crate) fn before_fault(&self) -> Self {
        self.always(Edit::Truncate(messages::clean(self.session.transcript())))
    }

    pub(crate) fn prompt(&self, archive: bool) -> Self {
        self.always(Edit::Reset(ResetOptions { archive }))
    }

    /// The content at a checkpoint.
    pub(crate) fn at(&self, checkpoint: &Checkpoint) -> Option<Self> {
        self.edited(Edit::Rollback(checkpoint.id.as_str().into())).ok()
    }

    /// An edit that cannot fail.
    fn always(&self, edit: Edit) -> Self {
        self.edited(edit).expect("only a rollback to a checkpoint can be refused")
    }

    /// Its checkpoints, oldest first.
    pub(crate) fn checkpoints(&self) -> Vec<Checkpoint> {
        self.session.checkpoints().iter().map(Checkpoint::of_session).collect()
    }
}

impl From<CheckpointError> for CliError {
    fn from(error: CheckpointError) -> Self {
        Self::new(error.to_string(), "list them: tool-guard session checkpoints")
    }
}
