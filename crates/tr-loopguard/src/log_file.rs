//! A file of JSON lines that a thread of its own writes, so that no call waits.
use crate::attribution::{Attribution, AttributionLog};
use serde_json::{Map, Value};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    path::{Component, Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};
use tr_core::{
    debug_parts,
    internal::{at_home, floor_char_boundary, home, lock},
    printable_json, setters,
};

/// The usual path of the log.
pub const LOG_PATH: &str = "~/.openclaw/tool-guard.log";

/// A log of this size is renamed to `….1`, and a new one started.
const MAX_BYTES: u64 = 10 * 1024 * 1024;
/// The most lines that wait to be written; further lines are lost.
const MAX_WAITING: usize = 1024;
/// How long the drop of a log waits for lines that are not written yet.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longer texts and longer names of args are cut.
const TEXT: usize = 256;
const NAME: usize = 64;

/// Redacts secrets in a text.
#[derive(Clone)]
pub(crate) struct Redactor(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl Redactor {
    pub(crate) fn new(clean: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(clean))
    }
}

debug_parts! { Redactor, |_it| }

/// A file of JSON lines. It is opened at the first entry, or by [`open`](Self::open), and rotated
/// at 10 MiB (one old file is kept).
///
/// It must be a regular file and not a link. A new file is accessible by its user only (0600), and
/// so is a new folder (0700); folders are created only under the home folder. Several processes may
/// write to one file.
///
/// A thread of its own writes. Entries that cannot be written are lost, and so is an entry that
/// arrives while 1,024 others wait; the first loss is reported on standard error. The drop waits up
/// to 1 s for entries that are not written yet.
#[derive(Debug)]
pub struct FileLog {
    target: Arc<Target>,
    redactor: Option<Redactor>,
    /// The channel to the thread, once it runs.
    writer: Mutex<Option<SyncSender<Message>>>,
}

enum Message {
    Write(String),
    /// Replies once all earlier entries are written or lost.
    Flush(SyncSender<()>),
}

impl FileLog {
    /// Writes to `path`; `~/` is the home folder.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = at_home(&path.into());
        let target = Arc::new(Target { path, has_lost: AtomicBool::new(false) });
        Self { target, redactor: None, writer: Mutex::default() }
    }

    setters! {
        /// Sets the function that redacts every text of an entry and every name of an arg. Without it
        /// they are written unchanged, except for terminal control characters.
        fn cleaning(clean: impl Fn(&str) -> String + Send + Sync + 'static) {
            redactor = Some(Redactor::new(clean))
        }
    }

    pub(crate) fn redacted_by(mut self, redactor: Option<Redactor>) -> Self {
        self.redactor = redactor;
        self
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.target.path
    }

    /// Opens the file now, to report errors before the first entry.
    ///
    /// # Errors
    /// If the file cannot be opened, or is a link or not a regular file.
    pub fn open(&self) -> io::Result<()> {
        let file = open(&self.target.path)?;
        self.writer(Some(file)).map(drop)
    }

    /// Adds an entry, without waiting until it is written.
    pub fn append(&self, entry: Map<String, Value>) {
        let mut line = printable_json(&self.clean(entry).to_string()).into_owned();
        line.push('\n');
        let sent = self.writer(None).and_then(|writer| {
            writer.try_send(Message::Write(line)).map_err(|_| io::ErrorKind::WouldBlock.into())
        });
        if let Err(error) = sent {
            self.target.lost(&error);
        }
    }

    /// Waits until all added entries are written or lost, for `at_most` at the longest.
    pub fn flush(&self, at_most: Duration) {
        let writer = lock(&self.writer).clone();
        let Some(writer) = writer else { return };
        let (answer, done) = sync_channel(1);
        if writer.try_send(Message::Flush(answer)).is_ok() {
            let _ = done.recv_timeout(at_most);
        }
    }

    /// The channel to the writer thread, which writes to `file`, or opens one at the first entry.
    fn writer(&self, file: Option<File>) -> io::Result<SyncSender<Message>> {
        let mut writer = lock(&self.writer);
        if let Some(writer) = &*writer {
            return Ok(writer.clone());
        }
        let (sender, messages) = sync_channel(MAX_WAITING);
        let target = self.target.clone();
        let run = move || Writer { target, file }.run(&messages);
        thread::Builder::new().name("attribution-log".into()).spawn(run)?;
        *writer = Some(sender.clone());
        Ok(sender)
    }

    fn clean(&self, entry: Map<String, Value>) -> Value {
        let clean = |text: &str, most| {
            let text = self.redactor.as_ref().map_or_else(|| text.to_owned(), |by| by.0(text));
            cut(text, most)
        };
        let members = entry.into_iter().map(|(name, value)| {
            let value = match value {
                Value::String(text) => clean(&text, TEXT).into(),
                Value::Object(members) => {
                    members.into_iter().map(|(name, value)| (clean(&name, NAME), value)).collect()
                }
                other => other,
            };
            (name, value)
        });
        members.collect()
    }
}

impl AttributionLog for FileLog {
    fn write(&self, entry: &Attribution<'_>) {
        self.append(entry.to_map());
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        self.flush(PATIENCE);
    }
}

/// The file, and whether the loss of an entry was reported.
#[derive(Debug)]
struct Target {
    path: PathBuf,
    has_lost: AtomicBool,
}

impl Target {
    /// Reports the first loss, with its reason.
    fn lost(&self, error: &io::Error) {
        if !self.has_lost.swap(true, Ordering::Relaxed) {
            let path = self.path.to_string_lossy();
            let path = tr_core::printable(&path);
            // `eprintln!` panics if the reader has closed the pipe.
            let _ = writeln!(io::stderr(), "tr-loopguard: cannot write {path}: {error}");
        }
    }
}

/// The state of the writer thread.
struct Writer {
    target: Arc<Target>,
    file: Option<File>,
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        for message in messages {
            match message {
                Message::Write(line) => {
                    if let Err(error) = self.write(&line) {
                        self.target.lost(&error);
                    }
                }
                Message::Flush(asker) => {
                    let _ = asker.try_send(());
                }
            }
        }
    }

    /// Appends each line with one write, since several processes may write.
    fn write(&mut self, line: &str) -> io::Result<()> {
        let path = &self.target.path;
        let mut file = self.file.take().map_or_else(|| open(path), Ok)?;
        if file.metadata()?.len() >= MAX_BYTES {
            put_aside(&file, path)?;
            file = open(path)?;
        }
        file.write_all(line.as_bytes())?;
        self.file = Some(file);
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    let opened = {
        use rustix::{fs::OFlags, io::Errno};
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = options.mode(0o600).custom_flags(flags.bits().cast_signed()).open(path);
        opened.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => io::Error::new(io::ErrorKind::InvalidInput, "is a link"),
            Some(Errno::NXIO) => not_regular(),
            _ => error,
        })
    };
    // Windows locks no file that is open for appending alone.
    #[cfg(not(unix))]
    let opened = options.read(true).open(path);
    let file = opened?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file")
}

/// Creates `folder` if it is missing and within the home folder.
fn make_folder(folder: &Path) -> io::Result<()> {
    let is_home_s = home().is_some_and(|home| folder.starts_with(home))
        && !folder.components().any(|part| part == Component::ParentDir);
    if !is_home_s || folder.exists() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Renames the full `file` to `….1`, unless another process has done so meanwhile.
fn put_aside(file: &File, path: &Path) -> io::Result<()> {
    // Held until the file is closed. A process that waits for the lock then finds another file
    // under the name.
    file.lock()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let place = |it: &fs::Metadata| (it.dev(), it.ino());
        let here = fs::symlink_metadata(path);
        if here.ok().as_ref().map(place) != Some(place(&file.metadata()?)) {
            return Ok(());
        }
    }
    let mut old = path.to_owned().into_os_string();
    old.push(".1");
    fs::rename(path, old)
}

fn cut(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    format!("{}…", &text[..floor_char_boundary(&text, most - '…'.len_utf8())])
}
