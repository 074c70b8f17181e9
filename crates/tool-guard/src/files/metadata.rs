//! Copies a file's owner, permissions, access lists and attributes to a new file.
use rustix::{
    fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{MetadataExt as _, PermissionsExt as _, fchown},
    },
};

/// The maximum length of an attribute, and of the list of all names.
const LONGEST: usize = 64 << 10;

/// The permission bits that are copied: never setuid or setgid.
const ALLOWED: u32 = 0o777;
const BY_OWNER: u32 = 0o700;

/// Names and values.
type Attributes = [(OsString, Vec<u8>)];

/// Copies the owner, the permissions, the access lists and the attributes of `old` to `new`. If the
/// access lists cannot be copied, only the owner can use the new file.
pub(crate) fn copy_metadata(old: &fs::File, new: &fs::File) -> io::Result<()> {
    set_metadata(&old.metadata()?, &attributes(old)?, new)
}

fn set_metadata(found: &fs::Metadata, attributes: &Attributes, new: &fs::File) -> io::Result<()> {
    let now = new.metadata()?;
    if (found.uid(), found.gid()) != (now.uid(), now.gid()) {
        let owner = fchown(new, Some(found.uid()), Some(found.gid()));
        owner.map_err(|error| named("owner", &error))?;
    }
    // Before the permissions, which may forbid writing attributes.
    for (name, value) in of(attributes, b"user.") {
        let taken = fsetxattr(new, name, value, XattrFlags::empty());
        taken.map_err(|error| named(&format!("attribute {}", name.display()), &error.into()))?;
    }
    let allowed = if take_lists(attributes, new) { ALLOWED } else { BY_OWNER };
    new.set_permissions(fs::Permissions::from_mode(found.mode() & allowed))
}

/// Sets exactly these access lists on `new`, which may have inherited others from its folder;
/// `false` on failure.
fn take_lists(attributes: &Attributes, new: &fs::File) -> bool {
    let Ok(given) = names(new) else { return false };
    let is_kept = |name: &OsString| attributes.iter().any(|(kept, _)| kept == name);
    let mut others = given.iter().filter(|name| is_list(name) && !is_kept(name));
    let set = |(name, value)| fsetxattr(new, name, value, XattrFlags::empty()).is_ok();
    others.all(|name| fremovexattr(new, name).is_ok()) && of(attributes, LISTS).all(set)
}

/// The prefix of POSIX and NFS access lists.
const LISTS: &[u8] = b"system.";

pub(super) fn is_list(name: &OsStr) -> bool {
    name.as_bytes().starts_with(LISTS)
}

fn of<'a>(
    attributes: &'a Attributes,
    beginning: &'a [u8],
) -> impl Iterator<Item = (&'a OsStr, &'a [u8])> {
    let these = attributes.iter().filter(|(name, _)| name.as_bytes().starts_with(beginning));
    these.map(|(name, value)| (&**name, &**value))
}

/// User attributes and access lists; only the system can set others.
fn attributes(file: &fs::File) -> io::Result<Vec<(OsString, Vec<u8>)>> {
    let ours = |name: &OsString| is_list(name) || name.as_bytes().starts_with(b"user.");
    let valued = |name: OsString| {
        let value = value(file, &name)
            .map_err(|error| named(&format!("attribute {}", name.display()), &error))?;
        Ok((name, value))
    };
    names(file)?.into_iter().filter(ours).map(valued).collect()
}

pub(super) fn value(file: &fs::File, name: &OsStr) -> io::Result<Vec<u8>> {
    let mut value = vec![0; LONGEST];
    let length = fgetxattr(file, name, &mut value[..])?;
    value.truncate(length);
    Ok(value)
}

pub(super) fn names(file: &fs::File) -> io::Result<Vec<OsString>> {
    let mut names = vec![0; LONGEST];
    let length = match flistxattr(file, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
        Err(error) => return Err(error.into()),
    };
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| OsString::from_vec(name.to_vec())).collect())
}

fn named(what: &str, error: &io::Error) -> io::Error {
    let what = format!("the new file cannot get the old one's {what}: {error}");
    io::Error::new(error.kind(), what)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::files::{
        open_regular,
        other_users::{AccessList, access_list},
    };
    use std::path::Path;
    use tempfile::{TempDir, tempdir};

    const ACCESS: &str = "system.posix_acl_access";
    const DEFAULT: &str = "system.posix_acl_default";

    /// An access list, as the kernel has it: user 65534 may do as `permissions` say, the owner's
    /// group may read and write.
    fn list(permissions: u16) -> Vec<u8> {
        let entry = |tag: u16, permissions: u16, id: u32| {
            [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let entries = [
            entry(0x01, 6, u32::MAX),
            entry(0x02, permissions, 65_534),
            entry(0x04, 6, u32::MAX),
            entry(0x10, 6, u32::MAX),
            entry(0x20, 4, u32::MAX),
        ];
        [&2_u32.to_le_bytes()[..], &entries.concat()].concat()
    }

    fn set(path: &Path, name: &str, value: &[u8]) {
        rustix::fs::setxattr(path, name, value, XattrFlags::empty()).unwrap_or_else(|error| {
            panic!(
                "{error}: set TMPDIR to a folder of a file system with access lists and attributes"
            )
        });
    }

    fn old() -> (TempDir, fs::File, std::path::PathBuf) {
        let folder = tempdir().unwrap();
        let path = folder.path().join("old");
        fs::write(&path, "").unwrap();
        let new = folder.path().join("new");
        (folder, open_regular(&path).unwrap(), new)
    }

    fn copied(old: &fs::File, new: &Path) -> fs::File {
        let new = fs::File::create_new(new).unwrap();
        new.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
        copy_metadata(old, &new).unwrap();
        new
    }

    fn mode(file: &fs::File) -> u32 {
        file.metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn access_lists_and_attributes_are_taken_over() {
        let (folder, old, new) = old();
        let path = folder.path().join("old");
        set(&path, ACCESS, &list(0));
        set(&path, "user.note", b"mine");
        // Nothing can be written through its permissions any more, attributes least of all.
        old.set_permissions(fs::Permissions::from_mode(0o460)).unwrap();
        let new = copied(&old, &new);
        let sorted = |file| {
            let mut attributes = attributes(file).unwrap();
            attributes.sort();
            attributes
        };
        assert_eq!(sorted(&new), sorted(&old));
        assert_eq!(sorted(&new).len(), 2);
        assert_eq!(mode(&new), 0o460);
    }

    #[test]
    fn what_a_folder_gives_new_files_is_not_given_to_this_one() {
        let (folder, old, new) = old();
        set(folder.path(), DEFAULT, &list(6));
        let of_folder = access_list(&fs::File::open(folder.path()).unwrap());
        assert_eq!(of_folder.unwrap(), AccessList::None);
        old.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
        let other = fs::File::create_new(folder.path().join("other")).unwrap();
        assert_eq!(access_list(&other).unwrap(), AccessList::WithinGroup);
        let new = copied(&old, &new);
        assert_eq!(attributes(&new).unwrap(), []);
        assert_eq!(mode(&new), 0o640);
    }

    /// Its group would have the rights of all whom the list names, also of whom it denies them.
    #[test]
    fn without_its_access_list_a_file_is_its_owners_alone() {
        let (_folder, old, new) = old();
        old.set_permissions(fs::Permissions::from_mode(0o664)).unwrap();
        let new = copied(&old, &new);
        assert_eq!(mode(&new), 0o664);
        // One that this file system does not have.
        let list = ("system.other_acl".into(), b"no one".to_vec());
        set_metadata(&old.metadata().unwrap(), &[list], &new).unwrap();
        assert_eq!(mode(&new), 0o600);
    }

    #[test]
    fn nothing_runs_as_its_owner_or_group() {
        let (_folder, old, new) = old();
        old.set_permissions(fs::Permissions::from_mode(0o6755)).unwrap();
        assert_eq!(mode(&copied(&old, &new)), 0o755);
    }
}
