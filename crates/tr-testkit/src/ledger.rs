//! A file with one line per run of a tool, which outlives the process.
//!
//! # When to use
//!
//! In crash tests: a child process runs tools, is killed, is started again; the parent then reads
//! how often each tool ran. A line is one `write` to a file opened for appending, so several
//! processes may share a ledger. Lines that were written before a `kill -9` are there after it
//! but not after a power failure: they are not synced.
//!
//! # Example
//!
//! ```
//! use tower::{Service, ServiceExt};
//! use tr_testkit::{ledger::Ledger, tool::{Scripted, Step}};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! # let path = std::env::temp_dir().join(format!("ledger-doc-{}", std::process::id()));
//! let ledger = Ledger::at(path);
//! let tool = Scripted::script([Step::Ok("sent")]).then_repeat_last();
//! let mut tool = ledger.keeps(tool, |request: &&str| request.to_string());
//!
//! tool.ready().await.unwrap().call("mail to Ann").await.unwrap();
//! tool.ready().await.unwrap().call("mail to Bob").await.unwrap();
//! tool.ready().await.unwrap().call("mail to Ann").await.unwrap();
//!
//! assert_eq!(ledger.count("mail to Ann")?, 2);
//! assert_eq!(ledger.lines()?, ["mail to Ann", "mail to Bob", "mail to Ann"]);
//! # std::fs::remove_file(ledger.path())
//! # }
//! ```

use std::{
    fmt,
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    task::{Context, Poll},
};
use tower_service::Service;

/// The ledger in one file.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// The ledger in this file, which the first line creates.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one line.
    ///
    /// # Errors
    ///
    /// Those of the file, and [`ErrorKind::InvalidInput`] for a key with a line break.
    pub fn append(&self, key: &str) -> io::Result<()> {
        if key.contains('\n') {
            return Err(io::Error::new(ErrorKind::InvalidInput, "a key is one line"));
        }
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        // One write, so that lines of several processes do not mix.
        file.write_all(format!("{key}\n").as_bytes())
    }

    /// All lines, in the order they were written; none while there is no file.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn lines(&self) -> io::Result<Vec<String>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(text.split_terminator('\n').map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// How often `key` was written.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn count(&self, key: &str) -> io::Result<usize> {
        Ok(self.lines()?.iter().filter(|line| *line == key).count())
    }

    /// Writes the key of each request when `tool` is called with it.
    pub fn keeps<S, K>(&self, tool: S, key: K) -> Kept<S, K> {
        Kept { tool, key, ledger: self.clone() }
    }
}

/// A tool whose runs a [`Ledger`] records.
#[derive(Clone)]
pub struct Kept<S, K> {
    tool: S,
    key: K,
    ledger: Ledger,
}

impl<S, K, Req> Service<Req> for Kept<S, K>
where
    S: Service<Req>,
    K: Fn(&Req) -> String,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.tool.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> S::Future {
        // A run that cannot be recorded must not happen, or the count would be wrong.
        self.ledger.append(&(self.key)(&request)).expect("the ledger can be written");
        self.tool.call(request)
    }
}

impl<S: fmt::Debug, K> fmt::Debug for Kept<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, ledger, .. } = self;
        f.debug_struct("Kept").field("tool", tool).field("ledger", ledger).finish_non_exhaustive()
    }
}
