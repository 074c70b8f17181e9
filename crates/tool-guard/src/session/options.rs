//! The command line of `tool-guard session`.
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// The exit codes, shown under the help of `session`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes (of several files the worst: 2, 1, 3, 0):
  0  clean: nothing is wrong, or not any more
  1  findings: something is wrong, or would be changed by --write
  2  unreadable: a file cannot be read or changed, or the command line is wrong
  3  not judged: a session of which not enough is understood; it is left as it is

Commands that change a session show what they would do, and do it with --write. They put the new
file in the place of the old one in one step, and leave the old one beside it as FILE.bak-TIME. A
database gets one more entry, and the old messages are in DATABASE.SESSION.bak-TIME.

An agent answers 400 on every call? Stop it, then:
  tool-guard session check FILE
  tool-guard session repair FILE           # shows what it would do
  tool-guard session repair FILE --write   # does it";

/// The exit codes, shown under the help of each subcommand.
const CODES: &str = "Exit codes: 0 clean, 1 findings (or something to write), 2 unreadable or refused, 3 not judged";

/// What `check` reads.
const OF_CHECK: &str = "Sessions' files, databases of sessions, or folders with such files; the beginning of an agent's \
                        session's id; - for standard input [default: the sessions of the agents on this machine, the \
                        newest first]";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what is wrong with sessions, and what the provider answers to it
    #[command(after_help = CODES, mut_arg("paths", |paths| paths.required(false).help(OF_CHECK)))]
    Check {
        #[command(flatten)]
        paths: Paths,

        /// A call of the last step without a result is a finding: nothing runs any more that could
        /// bring it
        #[arg(long)]
        strict: bool,

        /// Print clean sessions of a folder too
        #[arg(long, short)]
        verbose: bool,
    },
    /// Repair sessions: without --write, show how
    #[command(after_help = CODES)]
    Repair {
        #[command(flatten)]
        paths: Paths,

        #[command(flatten)]
        how: How,

        /// Do it; the old file stays beside the new one as FILE.bak-TIME
        #[arg(long)]
        write: bool,

        /// Do it even if more than 1 % of the bytes are no record, which a repair takes out, or if
        /// something would be lost that is not reported, or if what is left cannot be judged
        #[arg(long)]
        force: bool,

        /// Keep the images and documents that are removed, as files in this folder
        #[arg(long, value_name = "DIR", requires = "write")]
        extract: Option<PathBuf>,
    },
    /// Show what repair would change, message by message
    #[command(after_help = CODES)]
    Diff {
        #[command(flatten)]
        paths: Paths,

        #[command(flatten)]
        how: How,
    },
    /// Print a session: of a database as JSON lines or messages, of a file as it is
    #[command(after_help = CODES)]
    Export {
        /// The session's file, a database of sessions, or the beginning of an agent's session's id
        file: PathBuf,

        /// Which session of the database; may be left out where there is one
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// List the checkpoints of a session, or make one
    #[command(after_help = CODES)]
    Checkpoints {
        #[command(flatten)]
        one: One,

        /// Make a checkpoint of the session as it is now
        #[arg(long)]
        create: bool,

        /// What to remember it by; not in a database
        #[arg(long, requires = "create", value_name = "TEXT")]
        note: Option<String>,
    },
    /// Take a session back to a checkpoint: without --write, show how far
    #[command(after_help = CODES)]
    Rollback {
        #[command(flatten)]
        one: One,

        #[command(flatten)]
        to: To,

        /// Do it; the old file stays beside the new one as FILE.bak-TIME
        #[arg(long)]
        write: bool,
    },
    /// Reset a session to its system prompt: without --write, show what would be removed
    #[command(after_help = CODES)]
    Reset {
        #[command(flatten)]
        one: One,

        /// Keep the old file for good, as FILE.archive-TIME, with its checkpoints
        #[arg(long)]
        archive: bool,

        /// Do it; the old file stays beside the new one, as FILE.bak-TIME if it is not archived
        #[arg(long)]
        write: bool,
    },
}

/// How far back.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct To {
    /// To this checkpoint, by its id or the number at its end
    #[arg(long, value_name = "ID")]
    pub(crate) to: Option<String>,

    /// To the last message before the first fault, all calls answered
    #[arg(long)]
    pub(crate) before_fault: bool,
}

/// One session, and how to speak of it.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The session's file, a database of sessions, or the beginning of an agent's session's id
    pub(crate) file: PathBuf,

    /// Which session of the database; may be left out where there is one
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Files, and how to speak of them.
#[derive(Debug, Args)]
pub(crate) struct Paths {
    /// Sessions' files, databases of sessions, or folders with such files; the beginning of an agent's session's id
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,

    /// Of databases, only this session: all by default
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Print JSON, a line for each session
    #[arg(long)]
    pub(crate) json: bool,
}

/// How to repair.
#[derive(Clone, Copy, Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct How {
    /// What becomes of a result without its call, or of a call without its result
    #[arg(long, value_enum, default_value_t = Mode::Preserve)]
    pub(crate) mode: Mode,

    /// Answer the calls of the last step too: nothing runs any more that could
    #[arg(long)]
    pub(crate) close_tail: bool,
}

/// How to repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Mode {
    /// It stays: as text, or answered with "outcome unknown, may have run"
    Preserve,
    /// It goes. The model may then call again what has run already
    Remove,
}

impl How {
    /// The repair itself.
    pub(crate) const fn repair(self) -> tr_transcript::Repair {
        let repair = match self.mode {
            Mode::Preserve => tr_transcript::Repair::preserve(),
            Mode::Remove => tr_transcript::Repair::remove(),
        };
        let repair = repair.with_members().only_errors();
        if self.close_tail { repair.close_tail() } else { repair }
    }

    /// As it stands on the command line.
    pub(crate) const fn flags(self) -> &'static str {
        match (self.mode, self.close_tail) {
            (Mode::Preserve, false) => "",
            (Mode::Preserve, true) => " --close-tail",
            (Mode::Remove, false) => " --mode remove",
            (Mode::Remove, true) => " --mode remove --close-tail",
        }
    }
}
