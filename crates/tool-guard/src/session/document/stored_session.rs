//! A session of a database, in memory, with the change that a command makes.
use super::{Document, End, Planned, messages};
use crate::{
    files::CliError,
    session::{
        database::Edit,
        report::{About, Form, Health},
        sidecar::Checkpoint,
        verdict::NotJudged,
    },
};
use tr_integrity::{ResetOptions, Session};
use tr_transcript::{CheckpointError, Repair, Validator};

/// A session of a database, in memory.
#[derive(Debug)]
pub(crate) struct StoredSession {
    session: Box<Session>,
    text: String,
    /// The change since the stored state, if there is one.
    edit: Option<Edit>,
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

    /// An edit that cannot fail.
    fn always(&self, edit: Edit) -> Self {
        self.edited(edit).expect("only a rollback to a checkpoint can be refused")
    }
}

impl Document for StoredSession {
    fn about(&self) -> About {
        let transcript = self.session.transcript();
        About {
            form: Form::Stored(transcript.format()),
            messages: transcript.len(),
            bytes: self.text.len() as u64,
            skipped_bytes: 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn numbered(&self) -> Vec<(u64, &[u8])> {
        messages::numbered(self.session.transcript())
    }

    fn line_of(&self, _record: u64) -> Option<u64> {
        None
    }

    fn health(&self) -> Health {
        let cycles = self.session.cycles().iter();
        let running = cycles.map(|cycle| cycle.tool_use.id.to_string()).collect();
        let transcript = self.session.transcript();
        let validator = Validator::with_members_of(transcript);
        Health { running, ..messages::health(&validator, |_| None) }
    }

    fn plan(&self, repair: Repair) -> Result<Planned, NotJudged> {
        let (plan, before) = (self.session.plan(repair), self.session.transcript());
        let planned = messages::planned(&plan, |_| None);
        let after = self.always(Edit::Repair(repair));
        let planned = planned.compared(before, after.session.transcript());
        Ok(Planned { after: Some(Box::new(after)), ..planned })
    }

    fn before_fault(&self) -> Box<dyn Document> {
        Box::new(self.always(Edit::Truncate(messages::clean(self.session.transcript()))))
    }

    fn end(&self) -> Option<End> {
        None
    }

    fn at(&self, checkpoint: &Checkpoint) -> Option<Box<dyn Document>> {
        let at = self.edited(Edit::Rollback(checkpoint.id.as_str().into())).ok()?;
        Some(Box::new(at))
    }

    fn prompt(&self, archive: bool) -> Box<dyn Document> {
        Box::new(self.always(Edit::Reset(ResetOptions { archive })))
    }

    fn edit(&self) -> Option<&Edit> {
        self.edit.as_ref()
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        self.session.checkpoints().iter().map(Checkpoint::of_session).collect()
    }
}

impl From<CheckpointError> for CliError {
    fn from(error: CheckpointError) -> Self {
        Self::new(error.to_string(), "list them: tool-guard session checkpoints")
    }
}
