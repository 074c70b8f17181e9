//! A Unix socket for hosts that are several processes. A lock beside it says who serves it: the system releases the
//! lock of a guard that was killed, so the next one can take the socket over.
use super::streams::{self, EventSender};
use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{
        DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::Path,
    time::Duration,
};
use tokio::{net::UnixListener, time::sleep};

/// A socket that this process serves.
#[derive(Debug)]
pub(super) struct Socket {
    listener: UnixListener,
    /// Held as long as the socket is served.
    _lock: File,
}

/// Binds the socket at `path`; `None` if another guard serves it.
///
/// # Errors
/// If it cannot be bound.
pub(super) fn claim(path: &Path) -> anyhow::Result<Option<Socket>> {
    let said = || {
        format!(
            "--socket {}: cannot listen: give a path in a folder that this user may write",
            path.display()
        )
    };
    if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(said)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(beside);
    let lock = lock.with_context(said)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => return Ok(None),
        Err(error) => return Err(io::Error::from(error)).with_context(said),
    }
    match fs::symlink_metadata(path) {
        // A guard that was killed has left it.
        Ok(old) if old.file_type().is_socket() => fs::remove_file(path).with_context(said)?,
        Ok(_) => bail!("--socket {}: there is a file that is no socket", path.display()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(said),
    }
    let listener = UnixListener::bind(path).with_context(said)?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).with_context(said)?;
    Ok(Some(Socket { listener, _lock: lock }))
}

impl Socket {
    /// Accepts connections until it is dropped.
    pub(super) async fn serve(self, events: EventSender, max_line: usize) {
        let mut connection = 0;
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Most likely no file handle is left; the host can connect again.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            connection += 1;
            let (input, output) = stream.into_split();
            drop(streams::serve(events.clone(), connection, input, output, max_line));
        }
    }
}
