//! Detects whether another user can replace files of a folder while a command works in it.
use super::{
    error::CliError,
    folder::Folder,
    metadata::{is_list, names, value},
    nfs4,
};
use rustix::process::geteuid;
use std::{
    fs::{self, Metadata},
    io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
};

pub(crate) const ROOT: u32 = 0;
pub(crate) const STICKY: u32 = 0o1000;
pub(crate) const OF_GROUP: u32 = 0o020;
pub(crate) const OF_OTHERS: u32 = 0o002;

/// The permissions of a folder.
#[derive(Clone, Copy, Debug)]
struct Found {
    owner: u32,
    group: u32,
    mode: u32,
    list: AccessList,
}

/// The access that a list grants in addition to the permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AccessList {
    /// None.
    None,
    /// More users, limited by the group's permissions.
    WithinGroup,
    /// More users, who may write whatever the permissions are.
    Beyond,
}

/// The access that its lists grant in addition to its permissions.
pub(crate) fn access_list(file: &fs::File) -> io::Result<AccessList> {
    let mut found = AccessList::None;
    for name in names(file)?.iter().filter(|name| is_list(name)) {
        match name.as_bytes() {
            b"system.posix_acl_default" => {}
            b"system.posix_acl_access" => found = found.max(AccessList::WithinGroup),
            list if list == nfs4::NAME.as_bytes()
                && !nfs4::lets_others_write(&value(file, name)?) => {}
            _ => found = AccessList::Beyond,
        }
    }
    Ok(found)
}

/// Who can replace files in a folder, apart from the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherWriter {
    /// The folder's owner.
    Owner(u32),
    /// All users with write permission.
    Writers,
    /// In a folder where only owners can replace their files: the file's owner.
    OfFile(u32),
}

/// Refuses a folder in which another user could replace files, including the open file with the
/// metadata `file`.
pub(crate) fn refuse_others(folder: &Folder, file: &Metadata) -> Result<(), CliError> {
    let path = &folder.path;
    let found =
        other_writer_in(folder, file.uid()).map_err(|error| CliError::reading(path, &error))?;
    let path = path.display();
    let copy = "copy the file into a folder of your own and do this with the copy";
    let (what, help) = match found {
        None => return Ok(()),
        Some(OtherWriter::Owner(owner)) => (
            format!("is in a folder of user {owner}, {path}, who can exchange files in it"),
            format!("run this as that user (sudo -u '#{owner}' …), or {copy}"),
        ),
        Some(OtherWriter::Writers) => (
            format!("is in a folder in which other users can exchange files, {path}"),
            format!("take that right from them (chmod go-w {path}), or {copy}"),
        ),
        Some(OtherWriter::OfFile(owner)) => (
            format!("belongs to user {owner}, who can exchange it in {path}"),
            format!("run this as that user (sudo -u '#{owner}' …), or {copy}"),
        ),
    };
    Err(CliError::new(format!("{what}; the file is as it was"), help))
}

/// Who can replace files in the folder, or make new ones.
pub(crate) fn writer_in(folder: &Folder) -> io::Result<Option<OtherWriter>> {
    let mut found = found(folder)?;
    found.mode &= !STICKY;
    Ok(other_writer(found, geteuid().as_raw(), ROOT, is_own_group))
}

/// Who can replace a file of this owner in the folder.
pub(super) fn other_writer_in(folder: &Folder, file_owner: u32) -> io::Result<Option<OtherWriter>> {
    Ok(other_writer(found(folder)?, geteuid().as_raw(), file_owner, is_own_group))
}

fn found(folder: &Folder) -> io::Result<Found> {
    let it = folder.metadata()?;
    // If the lists cannot be read, the folder may have one.
    let list = folder.listed().and_then(|it| access_list(&it));
    let list = list.unwrap_or(AccessList::WithinGroup);
    Ok(Found { owner: it.uid(), group: it.gid(), mode: it.mode(), list })
}

/// Whether this is neither this user nor root.
pub(crate) fn is_foreign(owner: u32) -> bool {
    ![geteuid().as_raw(), ROOT].contains(&owner)
}

/// Whether the group has no other user of this machine.
pub(crate) fn is_own_group(group: u32) -> bool {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    has_no_other(&read("/etc/passwd"), &read("/etc/group"), group, geteuid().as_raw())
}

fn other_writer(
    folder: Found,
    me: u32,
    file_owner: u32,
    is_own_group: impl FnOnce(u32) -> bool,
) -> Option<OtherWriter> {
    let Found { owner, group, mode, list } = folder;
    if ![me, ROOT].contains(&owner) {
        return Some(OtherWriter::Owner(owner));
    }
    let by_others = mode & OF_OTHERS != 0 || list == AccessList::Beyond;
    // With a POSIX access list, the group's permissions limit all users that it names.
    let has_list = list != AccessList::None;
    let by_group = mode & OF_GROUP != 0 && (by_others || has_list || !is_own_group(group));
    match (by_others || by_group, mode & STICKY != 0) {
        (false, _) => None,
        (true, false) => Some(OtherWriter::Writers),
        (true, true) if file_owner == me => None,
        (true, true) => Some(OtherWriter::OfFile(file_owner)),
    }
}

/// Whether the group has no user other than `me`, according to the texts of `/etc/passwd` and
/// `/etc/group`: many systems give each user a private group with write permission.
fn has_no_other(passwd: &str, groups: &str, group: u32, me: u32) -> bool {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let number = |field: Option<&String>| field.and_then(|field| field.parse::<u32>().ok());
    let users: Vec<_> = passwd.lines().map(fields).collect();
    let is_other =
        |user: &Vec<String>| number(user.get(2)).is_none_or(|id| ![me, ROOT].contains(&id));
    if users.iter().any(|user| number(user.get(3)) == Some(group) && is_other(user)) {
        return false;
    }
    let mut named = groups.lines().map(fields).filter(|line| number(line.get(2)) == Some(group));
    let Some(line) = named.next() else { return false };
    let members = line.get(3).map_or("", String::as_str).split(',').filter(|name| !name.is_empty());
    let mine = |name: &str| users.iter().any(|user| user[0] == name && !is_other(user));
    named.next().is_none() && members.into_iter().all(mine)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u32 = 1000;
    const OTHER: u32 = 1001;

    fn of(owner: u32, mode: u32) -> Found {
        Found { owner, group: 50, mode, list: AccessList::None }
    }

    #[test]
    fn a_folder_that_another_user_can_write_is_refused() {
        let judged = |folder, file| other_writer(folder, ME, file, |_| false);
        for owner in [ME, ROOT] {
            assert_eq!(judged(of(owner, 0o755), ME), None);
            // Nobody can exchange it there, whoever's it is.
            assert_eq!(judged(of(owner, 0o755), OTHER), None);
            for open in [0o775, 0o757, 0o777, 0o730, 0o702] {
                assert_eq!(judged(of(owner, open), ME), Some(OtherWriter::Writers), "{open:o}");
                assert_eq!(judged(of(owner, 0o1000 | open), ME), None, "{open:o}");
                let refused = Some(OtherWriter::OfFile(OTHER));
                assert_eq!(judged(of(owner, 0o1000 | open), OTHER), refused, "{open:o}");
            }
        }
        // However it is closed to others, its owner may open it.
        for mode in [0o700, 0o755, 0o1777] {
            assert_eq!(judged(of(OTHER, mode), ME), Some(OtherWriter::Owner(OTHER)));
            assert_eq!(
                other_writer(of(ME, mode), ROOT, ME, |_| true),
                Some(OtherWriter::Owner(ME)),
                "root, too"
            );
        }
    }

    #[test]
    fn a_group_of_ones_own_is_no_other_user() {
        let folder = of(ME, 0o775);
        assert_eq!(other_writer(folder, ME, ME, |group| group == 50), None);
        assert_eq!(
            other_writer(Found { mode: 0o777, ..folder }, ME, ME, |_| true),
            Some(OtherWriter::Writers)
        );
        let listed = Found { list: AccessList::WithinGroup, ..folder };
        assert_eq!(other_writer(listed, ME, ME, |_| true), Some(OtherWriter::Writers));
        assert_eq!(other_writer(Found { mode: 0o755, ..listed }, ME, ME, |_| true), None);
        let beyond = Found { mode: 0o700, list: AccessList::Beyond, ..folder };
        assert_eq!(other_writer(beyond, ME, ME, |_| true), Some(OtherWriter::Writers));

        let passwd = "root:x:0:0::/root:/bin/sh\nme:x:1000:50::/:/\nit:x:1001:51::/:/\n";
        let own = |passwd: &str, groups: &str| has_no_other(passwd, groups, 50, ME);
        assert!(own(passwd, "root:x:0:\nme:x:50:\n"));
        assert!(own(passwd, "me:x:50:me,root\n"));
        for groups in
            ["me:x:50:me,it\n", "me:x:50:gone\n", "all:x:51:\n", "", "a:x:50:\nb:x:50:it\n"]
        {
            assert!(!own(passwd, groups), "{groups}");
        }
        assert!(!own(&format!("{passwd}new:x:1002:50::/:/\n"), "me:x:50:\n"), "as its first group");
        assert!(!own("", ""));
    }
}
