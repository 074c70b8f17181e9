//! Checks that no other user can write or replace the records, or the operator's files.
use crate::files::{
    Folder,
    other_users::{OF_GROUP, OF_OTHERS, OtherWriter, STICKY, is_foreign, is_own_group, writer_in},
};
use anyhow::bail;
use rustix::{fs::FileType, process::geteuid};
use std::{
    ffi::OsStr,
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

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

/// Refuses a folder in which another user can make or replace files. The user can also do what `elsewhere` says.
///
/// # Errors
/// Names the other user, and what to do about it.
pub(crate) fn refuse_others_in(folder: &Folder, elsewhere: &str) -> anyhow::Result<()> {
    let (path, me) = (folder.path.display(), geteuid().as_raw());
    match writer_in(folder)? {
        None => Ok(()),
        Some(OtherWriter::Owner(owner)) => bail!(
            "the folder {path} belongs to user {owner}, who can replace the file: make it yours (chown {me} {path}), or {elsewhere}"
        ),
        Some(_) if folder.metadata()?.mode() & STICKY != 0 => {
            bail!("other users can make files in the folder {path}: {elsewhere}")
        }
        Some(_) => bail!(
            "other users can replace files in the folder {path}: remove that right (chmod go-w {path}), or {elsewhere}"
        ),
    }
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
    refuse_others_in(folder, elsewhere)?;
    let (found, shown) = (open.metadata()?, file.display());
    if is_foreign(found.uid()) {
        bail!("the file belongs to user {}, who can change it: {elsewhere}", found.uid());
    }
    if is_open(found.mode(), found.gid()) {
        bail!("other users can write the file: chmod 600 {shown}, or {elsewhere}");
    }
    Ok(())
}

/// Refuses what another user has left beside a file, where SQLite, or the guards, would use it.
///
/// # Errors
/// Names it, and what to do about it.
pub(super) fn refuse_left_beside(
    folder: &Folder,
    name: &OsStr,
    endings: &[(&str, FileType)],
) -> anyhow::Result<()> {
    for (ending, kind) in endings {
        let mut beside = name.to_owned();
        beside.push(ending);
        let Some(found) = folder.stat(&beside)? else { continue };
        let shown = folder.path.join(&beside);
        let is_own = FileType::from_raw_mode(found.st_mode) == *kind
            && !is_foreign(found.st_uid)
            && !is_open(found.st_mode, found.st_gid);
        if !is_own {
            let shown = shown.display();
            bail!(
                "{shown} is not this user's alone: see who made it (ls -ld {shown}), and remove it"
            );
        }
    }
    Ok(())
}

/// Whether others can write it.
fn is_open(mode: u32, group: u32) -> bool {
    mode & OF_OTHERS != 0 || mode & OF_GROUP != 0 && !is_own_group(group)
}
