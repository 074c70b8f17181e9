//! A guard's own socket, by which `tool-guard status` finds it and reads what it did.
use crate::files::make_folder;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    future::Future,
    io,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    process,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// The longest path that a socket's address can have on every system.
const LONGEST: usize = 100;
/// How long the other side may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest document, in bytes.
const MOST: u64 = 16 << 20;

/// The socket, until it is dropped.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl OwnSocket {
    /// Answers each connection with a document.
    ///
    /// # Errors
    /// If no socket can be made in this folder.
    pub(crate) fn serve<F>(
        folder: &Path,
        document: impl Fn() -> F + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = Value> + Send,
    {
        // Guards in several containers may share the folder and have one number.
        let path = folder.join(format!("{}-{:08x}.sock", process::id(), fastrand::u32(..)));
        make_folder(&path)?;
        let listener = UnixListener::bind(&short(&path)?.0)?;
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else {
                    // There are too many open files, for example.
                    sleep(PATIENCE).await;
                    continue;
                };
                let text = document().await.to_string();
                let _ = timeout(PATIENCE, stream.write_all(text.as_bytes())).await;
            }
        });
        Ok(Self { path, task })
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.path);
    }
}

/// The documents of all guards with a socket in this folder. Sockets that nothing answers are removed.
pub(crate) async fn documents(folder: &Path) -> io::Result<Vec<Value>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "sock") {
            continue;
        }
        match timeout(PATIENCE, read(&path)).await {
            Ok(Ok(document)) => found.extend(serde_json::from_slice::<Value>(&document)),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = fs::remove_file(&path);
            }
            // It has ended meanwhile.
            Ok(Err(_)) => {}
            Err(_) => {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let pid = name.split_once('-').map_or(&*name, |(pid, _)| pid);
                found.push(json!({ "pid": pid, "answers": false }));
            }
        }
    }
    Ok(found)
}

async fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (path, _folder) = short(path)?;
    let mut document = Vec::new();
    UnixStream::connect(path).await?.take(MOST).read_to_end(&mut document).await?;
    Ok(document)
}

/// A socket's path, by way of its folder, which must stay open, if it is too long.
fn short(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if path.as_os_str().len() > LONGEST => {
            let folder = File::open(folder)?;
            let number = folder.as_raw_fd().to_string();
            Ok((Path::new("/proc/self/fd").join(number).join(name), Some(folder)))
        }
        _ => Ok((path.into(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_guard_is_found_also_in_a_folder_with_a_long_name_until_it_ends() {
        let state = tempfile::tempdir().unwrap();
        for folder in ["guards".to_owned(), "g".repeat(120)] {
            let folder = state.path().join(folder);
            assert_eq!(documents(&folder).await.unwrap(), [] as [Value; 0]);
            let socket = OwnSocket::serve(&folder, || async { json!({ "pid": 1 }) }).unwrap();
            assert_eq!(documents(&folder).await.unwrap(), [json!({ "pid": 1 })]);
            drop(socket);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        }
    }

    #[tokio::test]
    async fn the_socket_of_a_guard_that_was_killed_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        drop(std::os::unix::net::UnixListener::bind(folder.path().join("7.sock")).unwrap());
        assert_eq!(documents(folder.path()).await.unwrap(), [] as [Value; 0]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
