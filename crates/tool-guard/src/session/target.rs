//! What a path names: the file, or all files in a folder, and the sessions in them.
use super::{
    database::Database,
    document::{agents::refuse_database, kind::DATABASE},
    openclaw::{self, OpenClaw},
    sidecar,
    stored::SessionDatabase,
    verdict::Failure,
};
use crate::{
    files::{CliError, UNFINISHED, open_regular},
    terminal::quoted,
};
use std::{
    cmp::Reverse,
    env,
    ffi::OsStr,
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    rc::Rc,
};
use tr_core::printable;

/// The argument for standard input.
const STANDARD_INPUT: &str = "-";

/// A shorter argument is no session's id.
const SHORTEST: usize = 8;

/// How many ids an error names.
const NAMED: usize = 5;

/// A session for a command.
#[derive(Clone)]
pub(crate) struct Target {
    /// The path as the user gave it.
    pub(crate) file: PathBuf,
    pub(crate) stored: Option<InDatabase>,
}

/// A session in a database.
#[derive(Clone)]
pub(crate) struct InDatabase {
    pub(crate) database: Rc<dyn SessionDatabase>,
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
        let database: Rc<dyn SessionDatabase> = match OpenClaw::open(file)? {
            Some(database) => Rc::new(database),
            None => match Database::open(file) {
                Ok(database) => Rc::new(database),
                Err(failure) => {
                    refuse_database(&openclaw::columns(file).unwrap_or_default())?;
                    return Err(failure);
                }
            },
        };
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

    pub(crate) fn is_standard_input(&self) -> bool {
        self.file == Path::new(STANDARD_INPUT)
    }

    /// As an argument on the command line; a session from standard input must be in a file for it.
    pub(crate) fn argument(&self) -> String {
        let file = if self.is_standard_input() { Path::new("FILE") } else { &self.file };
        argument(file, self.stored.as_ref().map(|stored| &*stored.id))
    }
}

fn argument(file: &Path, id: Option<&str>) -> String {
    match id {
        None => quoted(file),
        Some(id) => format!("--session {} {}", quoted(Path::new(id)), quoted(file)),
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
    let mut head = [0; DATABASE.len()];
    file != Path::new(STANDARD_INPUT)
        && open_regular(file).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
        && head == *DATABASE
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

/// A file under a path, and whether to read it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file that the user named; or a session in a database, by its id.
    Named(PathBuf, Option<String>),
    /// A file in a folder that the user named; it need not be a session.
    Found(PathBuf),
    /// A file that is skipped, and why.
    Skipped(PathBuf, &'static str),
    /// A path that cannot be read.
    Unreadable(PathBuf, CliError),
}

/// The files of `path`, in the order of their names; for a folder, with all its subfolders. If there is no such file, the
/// agents' sessions whose ids begin so. `check` reads several of these, and standard input.
pub(crate) fn entries(path: &Path, is_check: bool) -> Vec<Entry> {
    let refuse = |what, help| vec![Entry::Unreadable(path.into(), CliError::new(what, help))];
    if path == Path::new(STANDARD_INPUT) && !is_check {
        let help = "write it to a file, and give that";
        return refuse("is standard input, which only check reads".to_owned(), help.to_owned());
    }
    if path.is_dir() {
        let mut entries = Vec::new();
        walk(path, &mut entries);
        return entries;
    }
    let missing = path.symlink_metadata().err().filter(|it| it.kind() == io::ErrorKind::NotFound);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_id = |text: &&str| text.len() >= SHORTEST && text.chars().all(is_part);
    let (Some(missing), Some(id)) = (missing, path.to_str().filter(is_id)) else {
        return vec![Entry::Named(path.into(), None)];
    };
    let found = of_id(id);
    if found.is_empty() {
        let CliError { what, help } = CliError::reading(path, &missing);
        return refuse(format!("{what}; and no session on this machine has this id"), help);
    }
    if found.len() > 1 && !is_check {
        let named: Vec<_> = found.iter().map(|(file, id)| argument(file, id.as_deref())).collect();
        let what = format!("is the beginning of the ids of {} sessions", found.len());
        return refuse(what, format!("name one: {}", self::named(&named)));
    }
    found.into_iter().map(|(file, id)| Entry::Named(file, id)).collect()
}

/// The agents' sessions whose ids begin with `id`: their files, and the ids of those in databases.
fn of_id(id: &str) -> Vec<(PathBuf, Option<String>)> {
    let mut found = Vec::new();
    for entry in of_agents() {
        let Entry::Found(path) = entry else { continue };
        match path.file_name().and_then(OsStr::to_str).and_then(id_in) {
            Some(own) if own.starts_with(id) => found.push((path, None)),
            None if is_database(&path) => {
                let database = OpenClaw::open(&path).ok().flatten();
                let ids = database.and_then(|database| database.ids().ok()).unwrap_or_default();
                let ids = ids.into_iter().filter(|own| own.starts_with(id));
                found.extend(ids.map(|own| (path.clone(), Some(own))));
            }
            _ => {}
        }
    }
    found
}

/// The id in the name of a session's file: `ID.jsonl`, Codex's `rollout-TIME-ID.jsonl`, pi's `TIME_ID.jsonl`.
fn id_in(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".jsonl")?;
    match name.strip_prefix("rollout-") {
        Some(rest) => rest.get("2026-10-01T10-00-00-".len()..),
        None => Some(name.split_once('_').map_or(name, |(_, id)| id)),
    }
}

/// Where agents keep their sessions: a variable with a folder or a folder of the home, and the folder in it.
const AGENTS: [(&str, &str, &str); 4] = [
    ("CLAUDE_CONFIG_DIR", ".claude", "projects"),
    ("CODEX_HOME", ".codex", "sessions"),
    ("OPENCLAW_STATE_DIR", ".openclaw", "agents"),
    ("PI_CODING_AGENT_DIR", ".pi/agent", "sessions"),
];

/// The files of the agents on this machine, the newest first.
pub(crate) fn of_agents() -> Vec<Entry> {
    let mut entries = Vec::new();
    for (variable, folder, inside) in AGENTS {
        let own = env::var_os(variable).filter(|own| !own.is_empty()).map(PathBuf::from);
        let own = own.or_else(|| Some(env::home_dir()?.join(folder)));
        if let Some(folder) = own.map(|own| own.join(inside)).filter(|folder| folder.is_dir()) {
            walk(&folder, &mut entries);
        }
    }
    entries.sort_by_cached_key(|entry| {
        let Entry::Found(path) = entry else { return None };
        Some(Reverse(path.metadata().ok()?.modified().ok()?))
    });
    entries
}

fn walk(folder: &Path, entries: &mut Vec<Entry>) {
    let unreadable =
        |path: &Path, error| Entry::Unreadable(path.into(), CliError::reading(path, &error));
    let listed = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut listed = match listed {
        Ok(listed) => listed,
        Err(error) => return entries.push(unreadable(folder, error)),
    };
    listed.sort_by_key(fs::DirEntry::file_name);
    for entry in listed {
        let path = entry.path();
        match entry.file_type() {
            Err(error) => entries.push(unreadable(&path, error)),
            // Its target may be in the folder too, or the link may form a cycle.
            Ok(kind) if kind.is_symlink() => entries.push(Entry::Skipped(path, "a symbolic link")),
            Ok(kind) if kind.is_dir() => walk(&path, entries),
            Ok(kind) if !kind.is_file() => entries.push(Entry::Skipped(path, "not a regular file")),
            Ok(_) => {
                let what =
                    own_file(&entry.file_name().to_string_lossy()).or_else(|| sqlite_file(&path));
                entries.push(match what {
                    Some(what) => Entry::Skipped(path, what),
                    None => Entry::Found(path),
                });
            }
        }
    }
}

/// What the file is, if tool-guard wrote it.
fn own_file(name: &str) -> Option<&'static str> {
    let stamped = |mark: &str| {
        name.rsplit_once(mark)
            .is_some_and(|(_, time)| time.starts_with(|c: char| c.is_ascii_digit()))
    };
    let kinds = [
        (name.starts_with(UNFINISHED), "left unfinished by tool-guard"),
        (name.ends_with(sidecar::ENDING), "checkpoints"),
        (stamped(".bak-"), "a backup"),
        (stamped(".archive-"), "an archive"),
    ];
    kinds.into_iter().find_map(|(is, what)| is.then_some(what))
}

/// The reason to skip a file that belongs to the SQLite database next to it.
fn sqlite_file(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let database = ["-wal", "-shm"].iter().find_map(|ending| name.strip_suffix(ending))?;
    path.with_file_name(database).is_file().then_some("part of the database beside it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_walked_in_order_and_without_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("b")).unwrap();
        for name in [
            "b/2.jsonl",
            "a.jsonl",
            "a.jsonl.bak-20260101T000000Z",
            "c.checkpoints",
            "d.db",
            "d.db-wal",
            "e-wal",
        ] {
            fs::write(at(name), "{}").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), at("b/circle")).unwrap();
        assert_eq!(
            entries(folder.path(), true),
            [
                Entry::Found(at("a.jsonl")),
                Entry::Skipped(at("a.jsonl.bak-20260101T000000Z"), "a backup"),
                Entry::Found(at("b/2.jsonl")),
                Entry::Skipped(at("b/circle"), "a symbolic link"),
                Entry::Skipped(at("c.checkpoints"), "checkpoints"),
                Entry::Found(at("d.db")),
                Entry::Skipped(at("d.db-wal"), "part of the database beside it"),
                Entry::Found(at("e-wal")),
            ]
        );
        assert_eq!(entries(&at("none"), true), [Entry::Named(at("none"), None)]);
    }
}
