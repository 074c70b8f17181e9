//! A session in a database, whichever program's.
use super::{document::Document, verdict::Failure};
use crate::files::CliError;
use std::{path::Path, rc::Rc};

/// A database of sessions.
pub(crate) trait SessionDatabase {
    /// The path with all links resolved.
    fn file(&self) -> &Path;

    /// The ids of its sessions, in the order of their bytes.
    fn ids(&self) -> Result<Vec<String>, CliError>;

    fn content(&self, id: &str) -> Result<Box<dyn Document>, Failure>;

    /// The database opened to change this session. Refuses one that another program may be writing.
    fn to_change(&self, id: &str) -> Result<Rc<dyn SessionDatabase>, Failure>;

    /// Replaces what was read as `before`, unless the session has changed meanwhile.
    fn replace(
        &self,
        id: &str,
        before: &dyn Document,
        after: &dyn Document,
    ) -> Result<(), NotReplaced>;

    /// Makes a checkpoint of its own and returns the id.
    fn checkpoint(&self, id: &str) -> Result<String, CliError>;
}

/// Why a session was not replaced.
pub(crate) struct NotReplaced {
    pub(crate) cli_error: CliError,
    /// Whether it may have been, all the same.
    pub(crate) is_uncertain: bool,
}

impl From<CliError> for NotReplaced {
    fn from(cli_error: CliError) -> Self {
        Self { cli_error, is_uncertain: false }
    }
}
