//! The operator: the person who settles and forgets records, or a program of theirs that has their token.
use super::{private, records::in_state};
use crate::{
    files::{Folder, make_folder},
    secrets::secret_in,
};
use anyhow::Context as _;
use rustix::{fs::OFlags, process::getuid};
use serde_json::Value;
use std::{
    ffi::OsString,
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};
use tr_core::canonical::Digest;

/// What operators did, a line of JSON each: a record that was forgotten, or has run again, may not say it itself.
const CHANGES: &str = "settlements.jsonl";

/// The alternative to a state folder that other users can write.
const ELSEWHERE: &str = "set XDG_STATE_HOME to a folder of your own";

/// The operator's token, and its file in the state folder, which is made at first need.
///
/// # Errors
/// If it cannot be read or made, or another user could have read or written it.
pub(crate) fn token() -> anyhow::Result<(PathBuf, Digest)> {
    let file = in_state("admin-token", "")?;
    let secret = made(&file).with_context(|| format!("{} cannot be used", file.display()))?;
    Ok((file, secret))
}

fn made(file: &Path) -> anyhow::Result<Digest> {
    let (folder, name) = state_folder(file)?;
    let open = match folder.open_file(&name, OFlags::RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut random = [0; 32];
            getrandom::fill(&mut random)?;
            let new = folder.temporary()?;
            writeln!(&new.file, "{}", Digest::from_bytes(random))?;
            new.file.sync_all()?;
            match new.give_name(&name) {
                // Another process has made it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                named => named?,
            }
            folder.open_file(&name, OFlags::RDONLY)?
        }
        open => open?,
    };
    private::refuse_others(&folder, file, &open, ELSEWHERE)?;
    anyhow::ensure!(
        open.metadata()?.mode() & 0o077 == 0,
        "other users can read it: run chmod 600 on it"
    );
    Ok(Digest::from_bytes(secret_in(file)?))
}

/// The state folder, closed to other users, and the file's name in it.
fn state_folder(file: &Path) -> anyhow::Result<(Folder, OsString)> {
    make_folder(file)?;
    let (folder, name) = Folder::of(file)?;
    private::close(&folder)?;
    Ok((folder, name))
}

/// The user that runs this program.
pub(crate) fn user() -> String {
    let uid = getuid().as_raw();
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    });
    name.map_or_else(|| format!("user {uid}"), |name| format!("{name} (user {uid})"))
}

/// Notes that a record was settled or forgotten.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn note(note: &Value) -> anyhow::Result<()> {
    let file = in_state(CHANGES, "")?;
    let write = || -> anyhow::Result<()> {
        let (folder, name) = state_folder(&file)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let mut open = folder.open_file(&name, flags)?;
        private::refuse_others(&folder, &file, &open, ELSEWHERE)?;
        open.write_all(format!("{note}\n").as_bytes())?;
        Ok(open.sync_all()?)
    };
    write().with_context(|| format!("{} cannot be written", file.display()))
}

/// The latest note of a record whose ID begins so.
pub(crate) fn noted(id: &str) -> Option<Value> {
    let notes = fs::read_to_string(in_state(CHANGES, "").ok()?).ok()?;
    let notes = notes.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    notes.into_iter().find(|note| note["record"].as_str().is_some_and(|key| key.starts_with(id)))
}
