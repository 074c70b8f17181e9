//! Reads files of secrets, which no other user may be able to read or to replace.
use super::{
    folder::{Folder, open_regular},
    other_users::{OtherWriter, ROOT, is_foreign, other_writer_in},
};
use anyhow::{Context as _, bail};
use std::{fs, io::Read as _, os::unix::fs::MetadataExt as _, path::Path};

const OTHERS: u32 = 0o007;
const GROUP_WRITES: u32 = 0o020;
const ALL_OTHERS: u32 = 0o077;

/// The longest text of a secret.
const LONGEST: u64 = 1 << 20;

/// The text of a file that no other user can read or replace. The links and the group that only root can change are
/// root's to decide about: so secrets are mounted in containers.
///
/// # Errors
/// Why the file cannot be used, and what to do; without the path.
pub(crate) fn read_secret(path: &Path) -> anyhow::Result<String> {
    let named = fs::symlink_metadata(path).context("it cannot be read")?;
    if named.is_symlink() {
        let others = other_writer_in(&Folder::of(path)?.0, named.uid())?;
        // In a folder in which only owners can replace their files.
        let is_safe = matches!(others, None | Some(OtherWriter::OfFile(ROOT)));
        if !is_safe || is_foreign(named.uid()) {
            bail!("it is a link that another user can replace: name the file itself");
        }
    }
    let open = open_regular(path).context("it cannot be read")?;
    let found = open.metadata()?;
    let (owner, mode) = (found.uid(), found.mode());
    if is_foreign(owner) {
        bail!("it belongs to user {owner}, who can read and change it: use a file of your own");
    }
    let denied = if owner == ROOT { OTHERS | GROUP_WRITES } else { ALL_OTHERS };
    if mode & denied != 0 {
        bail!("other users can read it: run chmod 600 on it");
    }
    let mut text = String::new();
    open.take(LONGEST).read_to_string(&mut text).context("it cannot be read")?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::geteuid;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    #[test]
    fn what_others_can_read_or_replace_is_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("token"), folder.path().join("link"));
        fs::write(&file, "secret").unwrap();
        symlink(&file, &link).unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o400, 0o600] {
            set(&file, mode);
            assert_eq!(read_secret(&file).unwrap(), "secret");
            assert_eq!(read_secret(&link).unwrap(), "secret");
        }
        for mode in [0o604, 0o602, 0o620, 0o666] {
            set(&file, mode);
            assert!(read_secret(&file).unwrap_err().to_string().contains("chmod 600"), "{mode:o}");
            assert!(read_secret(&link).is_err());
        }
        set(&file, 0o640);
        // Root decides who is in the group of its file.
        assert_eq!(read_secret(&file).is_ok(), geteuid().is_root());
        set(&file, 0o600);
        set(folder.path(), 0o777);
        assert!(read_secret(&link).unwrap_err().to_string().contains("a link"));
        set(folder.path(), 0o700);
        fs::remove_file(&file).unwrap();
        assert!(read_secret(&link).unwrap_err().to_string().contains("cannot be read"));
        assert!(read_secret(folder.path()).is_err());
        if geteuid().is_root() {
            fs::write(&file, "secret").unwrap();
            chown(&file, Some(1_000), None).unwrap();
            set(&file, 0o600);
            assert!(read_secret(&file).unwrap_err().to_string().contains("belongs to user 1000"));
        }
    }
}
