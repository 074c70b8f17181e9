//! The streams of hosts: lines in, answers out, each connection with a bound; and a Unix socket for hosts that are
//! several processes. A lock beside it says who serves it: the system releases the lock of a guard that was killed, so
//! the next one can take the socket over.
use super::table::Connection;
use crate::{
    engine::private,
    files::{Folder, make_folder},
    wire::lines::{Item, LineReader, Lines},
};
use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, OFlags, flock};
use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// How many lines of a connection wait for their answers; more are not read.
const UNANSWERED: usize = 1_000;
/// How many lines wait to be looked at, of all connections.
pub(crate) const WAITING: usize = 64;
/// How long a host may read nothing of what is written to it.
const STALLED: Duration = Duration::from_secs(30);

/// How long a program that listens on a socket may take to be noticed.
const ANSWERS: Duration = Duration::from_secs(2);

/// What happens on a connection.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    /// A host has connected, and reads answers from this channel.
    Opened(Connection, Answers),
    /// A line, or what is known of one that is too long.
    Line(Connection, Item, Place),
    /// The host has closed its side, or does not read.
    Closed(Connection),
}

/// A place among the lines that are not answered, until it is dropped.
pub(crate) type Place = OwnedSemaphorePermit;

/// The answers of a connection. Each line has a place, so they are bounded.
pub(crate) type Answers = mpsc::UnboundedSender<(String, Option<Place>)>;

/// Where connections report.
pub(crate) type EventSender = mpsc::Sender<StreamEvent>;

/// Carries the lines and answers of a connection, and reports to `events`. The result ends once the host has all
/// answers, or reads none.
pub(crate) fn serve(
    events: EventSender,
    connection: Connection,
    input: impl AsyncRead + Unpin + Send + 'static,
    mut output: impl AsyncWrite + Unpin + Send + 'static,
    max_line: usize,
) -> JoinHandle<()> {
    let (answers, mut waiting) = mpsc::unbounded_channel::<(String, Option<Place>)>();
    let reader = tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(UNANSWERED));
        let mut lines = LineReader::new(input, Lines::new(max_line));
        if events.send(StreamEvent::Opened(connection, answers)).await.is_err() {
            return;
        }
        while lines.is_open() {
            let Some(item) = lines.next().await else { break };
            if matches!(&item, Item::Line(line) if line.trim_ascii().is_empty()) {
                continue;
            }
            let place = places.clone().acquire_owned().await.expect("never closed");
            if events.send(StreamEvent::Line(connection, item, place)).await.is_err() {
                return;
            }
        }
        let _ = events.send(StreamEvent::Closed(connection)).await;
    });
    tokio::spawn(async move {
        while let Some((line, place)) = waiting.recv().await {
            let written = timeout(STALLED, async {
                output.write_all(line.as_bytes()).await?;
                output.flush().await
            });
            if !matches!(written.await, Ok(Ok(()))) {
                break;
            }
            drop(place);
        }
        // A host that reads nothing is answered no more; its open calls may still end.
        drop(waiting);
        let _ = output.shutdown().await;
        drop(reader);
    })
}

/// A socket that this process serves.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    /// Held as long as the socket is served.
    _lock: File,
}

/// Binds the socket at `path`; `None` if another guard serves it.
///
/// # Errors
/// If it cannot be bound.
pub(crate) async fn claim(path: &Path) -> anyhow::Result<Option<Socket>> {
    let at = || format!("--socket {}", path.display());
    let said =
        || format!("{}: cannot listen: give a path in a folder that this user may write", at());
    make_folder(path).with_context(said)?;
    let (folder, mut beside) = Folder::of(path).with_context(said)?;
    private::refuse_others_in(&folder, "give a path in a folder of your own").with_context(at)?;
    beside.push(".lock");
    let lock = folder.open_file(&beside, OFlags::RDWR | OFlags::CREATE);
    let lock =
        lock.with_context(|| format!("{}: its lock {} cannot be used", at(), beside.display()))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => return Ok(None),
        Err(error) => return Err(io::Error::from(error)).with_context(said),
    }
    match fs::symlink_metadata(path) {
        Ok(old) if old.file_type().is_socket() => remove_left(path).await.with_context(at)?,
        Ok(_) => bail!("{}: there is a file that is no socket", at()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(said),
    }
    let listener = UnixListener::bind(path).with_context(said)?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).with_context(said)?;
    Ok(Some(Socket { listener, _lock: lock }))
}

/// Removes the socket that a killed guard has left, unless another program listens there.
async fn remove_left(path: &Path) -> anyhow::Result<()> {
    match timeout(ANSWERS, UnixStream::connect(path)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Ok(fs::remove_file(path)?)
        }
        _ => bail!("another program listens there: give another path"),
    }
}

impl Socket {
    /// Accepts connections until it is dropped.
    pub(crate) async fn serve(self, events: EventSender, max_line: usize) {
        let mut connection = 0;
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Most likely no file handle is left; the host can connect again.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            connection += 1;
            let (input, output) = stream.into_split();
            drop(serve(events.clone(), connection, input, output, max_line));
        }
    }
}
