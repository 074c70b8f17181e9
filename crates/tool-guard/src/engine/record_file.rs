//! Opens the file of records, which must outlive the guard and be its user's alone.
use super::{
    private,
    records::{Place, RecordsCommand},
};
use crate::files::{Folder, beside, make_folder};
use rustix::fs::{FileType, OFlags};
use std::{io, path::Path, time::Duration};
use tokio::time::Instant;
use tool_reliability::idempotency::sqlite::{Database, Error, ErrorKind, Sqlite};
use tr_core::printable;

/// How long a claim waits for another process's lock: a mutating call that cannot be recorded is refused
/// within 3 s.
const LOCK_WAIT: Duration = Duration::from_millis(800);

/// The alternative to a file of records that other users can write.
const ELSEWHERE: &str = "name a file in a folder of your own (--records)";

/// What SQLite and the guards use beside the file.
const BESIDE: [(&str, FileType); 4] = [
    ("-wal", FileType::RegularFile),
    ("-shm", FileType::RegularFile),
    ("-journal", FileType::RegularFile),
    (".guards", FileType::Directory),
];

/// Opens the SQLite file; creates it with mode 0600 if it does not exist. Waits up to `patience` for the lock
/// of another process.
///
/// # Errors
/// If records cannot be kept there.
pub(super) async fn open(
    file: &Path,
    is_default: bool,
    patience: Duration,
) -> anyhow::Result<Sqlite> {
    make_folder(file)?;
    let is_new = make(file, is_default)?;
    let until = Instant::now() + patience;
    let store = loop {
        match sqlite(file, false).await {
            Err(error) if *error.kind() == ErrorKind::Locked && Instant::now() < until => {}
            opened => break opened?,
        }
    };
    if is_new {
        let place = Place::File(file.to_owned());
        let command = RecordsCommand::of((!is_default).then_some(&place));
        let said = format!(
            "keeps the mutating calls that have an id, with their answers, in {} (mode 0600): settled ones for 24 h, those of unknown outcome for 30 days. --records memory keeps none; {command} list shows them",
            file.display()
        );
        eprintln!("tool-guard: {}", printable(&said));
    }
    Ok(store)
}

/// Opens the SQLite file to read it: nothing is written, so a full disk or another process's lock does not
/// matter.
///
/// # Errors
/// If it cannot be read.
pub(super) async fn open_to_read(file: &Path) -> Result<Sqlite, Error> {
    sqlite(file, true).await
}

async fn sqlite(file: &Path, is_read_only: bool) -> Result<Sqlite, Error> {
    let builder = Database::builder(file).lock_wait(LOCK_WAIT);
    let builder = if is_read_only { builder.read_only() } else { builder };
    Sqlite::builder().owners(beside(file, ".guards")).on(builder.open().await?).await
}

/// Creates the file with mode 0600; `false` if it exists. A link is not followed, and a file that another
/// user can write is refused.
fn make(file: &Path, is_default: bool) -> anyhow::Result<bool> {
    let (folder, name) = Folder::of(file)?;
    if is_default {
        private::close(&folder)?;
    }
    let (open, is_new) = match folder.open_file(&name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    {
        Ok(open) => (open, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            (folder.open_file(&name, OFlags::RDONLY)?, false)
        }
        Err(error) => return Err(error.into()),
    };
    let private = private::refuse_others(&folder, file, &open, ELSEWHERE)
        .and_then(|()| private::refuse_left_beside(&folder, &name, &BESIDE));
    if let Err(error) = private {
        if is_new {
            folder.remove(&name);
        }
        return Err(error);
    }
    Ok(is_new)
}
