//! The error of a server that did not start.

use std::{collections::VecDeque, fmt, io, path::Path};

/// A server did not start; the text says what to do, or has the last lines of its log.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

/// Lines of the server's log that an error shows.
const SHOWN: usize = 20;

/// The last lines of a server's log.
#[derive(Debug, Default)]
pub(crate) struct LogTail(VecDeque<String>);

impl LogTail {
    pub(crate) fn push(&mut self, line: String) {
        if self.0.len() == SHOWN {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn says(&self, words: &str) -> bool {
        self.0.iter().any(|line| line.contains(words))
    }
}

impl StartError {
    pub(crate) fn no_program(program: &str, package: &str) -> Self {
        Self(format!(
            "{program} is not on the PATH: run `cargo xtask test`, or install it (on Debian: `apt-get install {package}`)"
        ))
    }

    pub(crate) fn folder(folder: &Path, error: &io::Error) -> Self {
        Self(format!("cannot create the folder {}: {error}", folder.display()))
    }

    pub(crate) fn of(program: &str, error: &io::Error) -> Self {
        Self(format!("cannot start {program}: {error}"))
    }

    pub(crate) fn log(what: &str, log: LogTail) -> Self {
        let lines = log.0.into_iter().map(|line| format!("\n  {line}"));
        Self(format!("{what}; its last lines:{}", lines.collect::<String>()))
    }

    /// Whether the last lines contain this.
    pub(crate) fn says(&self, words: &str) -> bool {
        self.0.contains(words)
    }
}

/// Like `Display`, since tests unwrap it.
impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
