//! The sessions of a path: the one of a file, or those in a database.
use super::{CliError, Failure, database::Database, folder::open_regular, show::quoted};
use std::{
    fmt,
    io::Read as _,
    path::{Path, PathBuf},
    rc::Rc,
};
use tr_core::printable;

/// The header of every SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How many ids an error names.
const NAMED: usize = 5;

/// A session for a command.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The path as the user gave it.
    pub(crate) file: PathBuf,
    pub(crate) stored: Option<InDatabase>,
}

/// A session in a database.
#[derive(Clone, Debug)]
pub(crate) struct InDatabase {
    pub(crate) database: Rc<Database>,
    pub(crate) id: String,
}

/// Which sessions of a database are selected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which<'o> {
    All,
    /// The only one.
    One,
    Named(&'o str),
}

impl Target {
    /// A file of any content.
    pub(crate) fn file(file: PathBuf) -> Self {
        Self { file, stored: None }
    }

    /// The selected sessions of a file, which is opened for reading only.
    pub(crate) fn of(file: &Path, which: Which<'_>) -> Result<Vec<Self>, Failure> {
        if !is_database(file) {
            return match which {
                Which::Named(_) => Err(CliError::new(
                    "is no database, and --session names a session in one",
                    "leave --session out: the file is one session, or none",
                )
                .into()),
                _ => Ok(vec![Self::file(file.into())]),
            };
        }
        let database = Rc::new(Database::open(file)?);
        let ids = chosen(database.ids()?, which)?;
        let stored = |id| InDatabase { database: Rc::clone(&database), id };
        let target = |id| Self { file: file.into(), stored: Some(stored(id)) };
        Ok(ids.into_iter().map(target).collect())
    }

    /// The suggestion of a session with errors that no repair mends, for display.
    pub(crate) fn go_back(&self) -> String {
        let target = self.argument();
        format!("Go back to before it:  tool-guard session rollback --before-fault {target}")
    }

    /// As an argument on the command line.
    pub(crate) fn argument(&self) -> String {
        let file = quoted(&self.file);
        match &self.stored {
            None => file,
            Some(stored) => format!("--session {} {file}", quoted(Path::new(&stored.id))),
        }
    }
}

/// As shown to the user.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.file.to_string_lossy()))?;
        let session = self.stored.as_ref().map(|stored| printable(&stored.id));
        session.map_or(Ok(()), |id| write!(f, "#{id}"))
    }
}

fn is_database(file: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    open_regular(file).is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && head == *MAGIC
}

fn chosen(ids: Vec<String>, which: Which<'_>) -> Result<Vec<String>, Failure> {
    if ids.is_empty() {
        return Err(Failure::NoSession("it is a database without sessions".into()));
    }
    match which {
        Which::One if ids.len() > 1 => {
            let what = format!("has {} sessions", ids.len());
            Err(CliError::new(what, format!("name one by --session: {}", named(&ids))).into())
        }
        Which::Named(id) if ids.iter().any(|known| known == id) => Ok(vec![id.to_owned()]),
        Which::Named(id) => {
            let help = format!("there are: {}", named(&ids));
            Err(CliError::new(format!("has no session {id}"), help).into())
        }
        _ => Ok(ids),
    }
}

fn named(ids: &[String]) -> String {
    let more = match ids.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more (check --json names them)"),
    };
    format!("{}{more}", ids[..ids.len().min(NAMED)].join(", "))
}
