//! The commands on a file of records as a whole: check it, copy it, go on after a loss.
use super::change::{Consent, keep, unconfirmed};
use crate::{
    engine::{
        records::{Place, RecordsCommand},
        stores::{Store, open_to_read},
    },
    files::{Folder, beside},
    terminal::{end_with, print, refuse},
};
use anyhow::{Context as _, bail};
use clap::Subcommand;
use rustix::fs::OFlags;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};
use tool_reliability::idempotency::{
    sqlite::{Database, ErrorKind},
    store::{Query, RecordStore as _},
};
use tr_core::{SystemClock, WallClock as _, printable_lines};

/// The exit code if something of the file cannot be read.
const DAMAGED: u8 = 1;

/// What to do with a file.
#[derive(Debug, Subcommand)]
pub(super) enum FileAction {
    /// Say what can be read of a file of records, and what of it is damaged or missing
    Check,
    /// Go on with a file of records of which something is lost: a repeat of a call whose record is lost runs. Asks a
    /// person at a terminal
    AcceptLoss {
        #[command(flatten)]
        consent: Consent,
    },
    /// Copy a file of records while guards run
    Backup {
        /// The copy, which must not exist
        copy: PathBuf,
    },
}

/// Does it with the file at `place`.
pub(super) async fn act_on(
    place: Place,
    action: FileAction,
    command: &RecordsCommand,
) -> anyhow::Result<ExitCode> {
    let Place::File(file) = &place else {
        bail!("this is for records in a file: a server has commands of its own for that")
    };
    match action {
        FileAction::Check => check(file, command).await,
        FileAction::AcceptLoss { consent } => accept_loss(file, consent).await,
        FileAction::Backup { copy } => backup(file, &copy),
    }
}

/// Says what can be read.
async fn check(file: &Path, command: &RecordsCommand) -> anyhow::Result<ExitCode> {
    let whole = Database::builder(file).check();
    let mut faults = Vec::new();
    if let Err(error) = &whole {
        faults.push(match error.kind() {
            ErrorKind::Lost => format!("{error}; to go on without them: {command} accept-loss"),
            _ => error.to_string(),
        });
    }
    match open_to_read(Place::File(file.to_owned())).await {
        Ok(Some(Store::File(store))) => {
            faults.extend(store.database().verify(None).await.err().map(|error| error.to_string()));
            match store.list(&Query::ALL, usize::MAX, true).await {
                Ok(found) => print(format!(
                    "{}: {} records can be read, {} cannot\n",
                    file.display(),
                    found.records.len(),
                    found.unreadable.len()
                ))?,
                Err(error) => faults.push(error.to_string()),
            }
            store.close().await;
        }
        Ok(_) => {}
        Err(error) => faults.push(format!("{error:#}")),
    }
    match faults.is_empty() {
        true => end_with("nothing is damaged or missing, as far as this can be seen\n"),
        false => refuse(DAMAGED, &printable_lines(&faults.join("\n"))),
    }
}

/// Opens the file without what is lost of it.
async fn accept_loss(file: &Path, consent: Consent) -> anyhow::Result<ExitCode> {
    match Database::builder(file).check() {
        Ok(()) => end_with(
            "nothing was done: nothing is damaged or missing, as far as this can be seen\n",
        ),
        Err(error) if *error.kind() == ErrorKind::Lost => {
            let said = printable_lines(&error.to_string()).into_owned();
            let happens = "the guards will go on with what can be read: a repeat of a call whose record is lost will run again, even if the call has run";
            let word = ("the word accept-loss", "accept-loss");
            let Some(by) = consent.confirm(word, &said, happens)? else { return unconfirmed() };
            let kept_as = keep_copies(file)?;
            let opened = Database::builder(file).accept_loss().open().await;
            opened.context("the records cannot be opened")?.close().await;
            keep("loss accepted", &file.display().to_string(), "", &by)?;
            end_with(format!("the guards go on; what was there is kept in {}\n", kept_as.display()))
        }
        Err(error) => bail!(error),
    }
}

/// Copies the file and its log, since what cannot be read of them is about to be deleted; returns where the copies
/// are.
fn keep_copies(file: &Path) -> anyhow::Result<PathBuf> {
    let copy = beside(file, &format!(".lost-{}", SystemClock.unix_ms() / 1_000));
    for ending in ["", "-wal"] {
        let from = beside(file, ending);
        match fs::read(&from) {
            Ok(bytes) => {
                let to = beside(&copy, ending);
                let kept = new(&to).and_then(|file| io::Write::write_all(&mut &file, &bytes));
                kept.with_context(|| format!("cannot keep {}", to.display()))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", from.display()));
            }
        }
    }
    Ok(copy)
}

/// Copies the records while guards run.
fn backup(file: &Path, copy: &Path) -> anyhow::Result<ExitCode> {
    new(copy).with_context(|| format!("cannot make {}", copy.display()))?;
    if let Err(error) = Database::builder(file).copy_to(copy) {
        let _ = fs::remove_file(copy);
        bail!(error);
    }
    end_with(format!("the records are in {}\n", copy.display()))
}

/// A new file, which only the user can read.
fn new(path: &Path) -> io::Result<fs::File> {
    let (folder, name) = Folder::of(path)?;
    folder.open_file(&name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
}
