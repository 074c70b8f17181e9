//! A change of a session that is a log in a database.
use tr_integrity::{ResetOptions, Session};
use tr_transcript::{CheckpointError, Repair};

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
