//! Checks that no other user can write or replace the records, or the operator's files.
use crate::files::{Folder, OtherWriter, is_own_group, other_writer_in};
use anyhow::bail;
use rustix::process::geteuid;
use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

const ROOT: u32 = 0;
const OF_GROUP: u32 = 0o020;
const OF_OTHERS: u32 = 0o002;

/// Closes the default folder to other users, if it belongs to this user: another program, or a person, may
/// have created it with more rights.
///
/// # Errors
/// If it cannot be read or changed.
pub(super) fn close(folder: &Folder) -> io::Result<()> {
    let found = folder.metadata()?;
    if found.uid() == geteuid().as_raw() && found.mode() & 0o077 != 0 {
        folder.listed()?.set_permissions(Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Refuses a file that another user can write or replace. The user can also do what `elsewhere` says.
///
/// # Errors
/// Names the other user, and what to do about it.
pub(super) fn refuse_others(
    folder: &Folder,
    file: &Path,
    open: &fs::File,
    elsewhere: &str,
) -> anyhow::Result<()> {
    let (found, me) = (open.metadata()?, geteuid().as_raw());
    let (path, shown) = (folder.path().display(), file.display());
    match other_writer_in(folder, found.uid())? {
        None => {}
        Some(OtherWriter::Owner(owner)) => bail!(
            "the folder {path} belongs to user {owner}, who can replace the file: make it yours (chown {me} {path}), or {elsewhere}"
        ),
        Some(OtherWriter::Writers) => bail!(
            "other users can replace files in the folder {path}: remove that right (chmod go-w {path}), or {elsewhere}"
        ),
        Some(OtherWriter::OfFile(owner)) => {
            bail!("the file belongs to user {owner}, who can replace it in {path}: {elsewhere}")
        }
    }
    if ![me, ROOT].contains(&found.uid()) {
        bail!("the file belongs to user {}, who can change it: {elsewhere}", found.uid());
    }
    let by_group = found.mode() & OF_GROUP != 0 && !is_own_group(found.gid());
    if found.mode() & OF_OTHERS != 0 || by_group {
        bail!("other users can write the file: chmod 600 {shown}, or {elsewhere}");
    }
    Ok(())
}
