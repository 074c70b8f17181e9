//! Opens a file read-only, without changing it or the files beside it.
//!
//! ```text
//! a log beside it   read as any other process reads, with a handle that cannot write
//! no log            no process has it open: SQLite creates a log to read, and removes it at the end
//! no log possible   no process can write here: only the file itself is read
//! ```
use crate::{
    connect::{APPLICATION, Place, beside},
    error::{Error, ErrorKind, Result},
    reset::exclusively,
};
use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// The first bytes of every SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The length of SQLite's header, and the offset of the application id in it.
const HEADER: usize = 100;
const MARK: usize = 68;

impl Place {
    /// Opens an existing file to read it.
    pub(crate) fn open_read_only(&self) -> Result<Connection> {
        self.try_open_read_only().map_err(|error| error.at(&self.path))
    }

    /// See [`Builder::check`](crate::Builder::check).
    pub(crate) fn check(&self) -> Result<()> {
        let check = || {
            self.find_both()?;
            refuse_others(&self.path)?;
            if !self.log().exists() {
                return self.find_log(&self.try_open_read_only()?);
            }
            let connection = self.connect()?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            match exclusively(&connection, self.lock_wait, || self.find_log(&connection)) {
                // Where nothing can be written, no other process writes, either.
                Err(error) if *error.kind() == ErrorKind::Denied => {
                    self.find_log(&self.try_open_read_only()?)
                }
                checked => checked,
            }
        };
        check().map_err(|error: Error| self.said(error))
    }

    /// See [`Builder::copy_to`](crate::Builder::copy_to).
    pub(crate) fn copy_to(&self, copy: &Path) -> Result<()> {
        let copied = || {
            let connection = self.try_open_read_only()?;
            connection.pragma_update(None, "query_only", false)?;
            let copy = copy.to_str().ok_or_else(|| {
                Error::saying(ErrorKind::NotFound, "the name of the copy is not UTF-8")
            })?;
            connection.execute("VACUUM INTO ?1", [copy])?;
            Ok(File::open(copy)?.sync_all()?)
        };
        copied().map_err(|error: Error| error.at(&self.path))
    }

    fn try_open_read_only(&self) -> Result<Connection> {
        refuse_others(&self.path)?;
        // The log is beside the file itself, not beside a link to it.
        let path = self.path.canonicalize()?;
        let has_log = beside(&path, "-wal").exists();
        let flags = if has_log {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE
        };
        match self.read_with(&path, flags) {
            Err(error) if !has_log && cannot_write_here(&error) => Ok(self.open_alone()?),
            end => Ok(end?),
        }
    }

    /// A connection that reads the file itself, without its log.
    pub(crate) fn open_alone(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        self.read_with(immutable(&self.path).as_ref(), flags)
    }

    /// A connection that has read once.
    fn read_with(&self, path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(self.lock_wait)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
        Ok(connection)
    }
}

/// Checks the header, before SQLite opens the file.
fn refuse_others(path: &Path) -> Result<()> {
    if !path.metadata()?.is_file() {
        return Err(Error::saying(ErrorKind::NotFound, "it is not a regular file"));
    }
    let mut header = [0; HEADER];
    match File::open(path)?.read_exact(&mut header) {
        Ok(()) if header.starts_with(MAGIC) => {}
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error.into()),
        _ => return Err(Error::new(ErrorKind::NotADatabase)),
    }
    let mark = header[MARK..].first_chunk().map_or(0, |mark| i32::from_be_bytes(*mark));
    if mark != APPLICATION {
        return Err(Error::saying(ErrorKind::Foreign, format!("application_id {mark}")));
    }
    Ok(())
}

/// Whether no file can be created beside the database: by its permissions, or since the disk is
/// full.
fn cannot_write_here(error: &rusqlite::Error) -> bool {
    use ErrorCode::{CannotOpen, DiskFull, ReadOnly, SystemIoFailure};
    let code = error.sqlite_error_code();
    matches!(code, Some(CannotOpen | ReadOnly | DiskFull | SystemIoFailure))
}

/// The URI of the file as one that does not change.
fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                uri.push(char::from(*byte));
            }
            byte => write!(uri, "%{byte:02X}").expect("a text takes any text"),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_characters_is_one_uri() {
        assert_eq!(immutable(Path::new("/a/b-1.db")), "file:/a/b-1.db?immutable=1");
        assert_eq!(immutable(Path::new("/a ?&%")), "file:/a%20%3F%26%25?immutable=1");
    }

    #[test]
    fn a_file_in_a_folder_where_nothing_can_be_made_is_read_alone() {
        let folder = std::env::temp_dir().join(format!("tr-sqlite-alone-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("n.db");
        let made = Connection::open(&file).unwrap();
        made.pragma_update(None, "application_id", APPLICATION).unwrap();
        made.pragma_update(None, "journal_mode", "wal").unwrap();
        made.execute_batch("CREATE TABLE n (n)").unwrap();
        drop(made);
        let before = std::fs::read(&file).unwrap();
        // A folder in place of the file beside it simulates a read-only folder.
        std::fs::create_dir(folder.join("n.db-shm")).unwrap();

        let place = Place {
            path: file.clone(),
            durability: crate::Durability::Power,
            lock_wait: std::time::Duration::ZERO,
            accepts_loss: false,
        };
        let connection = place.open_read_only().unwrap();
        let count: i64 = connection.query_row("SELECT count(*) FROM n", [], |r| r.get(0)).unwrap();
        assert_eq!(count, 0);
        drop(connection);
        assert_eq!(std::fs::read(&file).unwrap(), before);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
