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
//! use tr_testkit::ledger::Ledger;
//!
//! # fn main() -> std::io::Result<()> {
//! # let path = std::env::temp_dir().join(format!("ledger-doc-{}", std::process::id()));
//! let ledger = Ledger::at(path);
//! ledger.append("mail to Ann")?; // at each run of the tool
//! ledger.append("mail to Bob")?;
//! ledger.append("mail to Ann")?;
//!
//! assert_eq!(ledger.count("mail to Ann")?, 2);
//! assert_eq!(ledger.lines()?, ["mail to Ann", "mail to Bob", "mail to Ann"]);
//! # std::fs::remove_file(ledger.path())
//! # }
//! ```

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

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
}
