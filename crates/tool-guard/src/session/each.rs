//! Does the same to each file of some paths, and says what came of all.
use super::{
    Trouble,
    show::{BAD, DIM, GOOD, TITLE, WARN, say, say_error},
    target::{Target, Which},
    walk::{self, Entry},
};
use serde::Serialize;
use std::{
    fmt::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};
use tr_core::{printable, printable_json};

/// How many skipped files are named to a person.
const NAMED: usize = 5;

/// What came of a file, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Nothing is wrong, or not any more.
    Clean,
    /// It is a session, or seems to be one, of which not enough is understood to say more.
    NotJudged,
    /// Something is wrong, or would be changed.
    Findings,
    /// It cannot be read or changed.
    Unreadable,
}

impl Verdict {
    /// What a command that changes nothing calls it in JSON.
    pub(crate) const fn status(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::NotJudged => "notJudged",
            Self::Findings => "findings",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Why nothing came of a file.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It is something else; in a folder that is nothing to worry about.
    NoSession(String),
    /// It is a session that cannot be judged.
    NotJudged(NotJudged),
    /// It may be a session, and cannot be used.
    Trouble(Trouble),
}

/// Why a session is not judged. It is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NotJudged {
    pub(crate) reason: String,
    /// The program that wrote it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<&'static str>,
    pub(crate) help: String,
}

/// What came of a file. As JSON it has a `status`.
pub(crate) trait Outcome: Serialize {
    fn verdict(&self) -> Verdict;

    /// Writes it for a person.
    fn show(&self, target: &Target, out: &mut String);

    /// What to do next, for a person.
    fn next(&self, target: &Target) -> Option<String>;
}

/// Which report this is; `schemas/session-report.schema.json` describes it.
const VERSION: u32 = 1;

/// What is printed of a session as JSON.
#[derive(Serialize)]
struct Line<'f, T> {
    version: u32,
    file: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'f str>,
    #[serde(flatten)]
    what: T,
}

#[derive(Serialize)]
#[serde(tag = "status", rename_all = "camelCase")]
enum Other<'t> {
    NotJudged(&'t NotJudged),
    Skipped { reason: &'t str },
    Unreadable { error: &'t str, help: &'t str },
}

/// What was printed so far.
struct Tally {
    json: bool,
    worst: Verdict,
    /// Something could not be printed.
    is_cut_off: bool,
    clean: usize,
    not_judged: usize,
    findings: usize,
    unreadable: usize,
    skipped: Vec<String>,
    next: Option<String>,
}

/// Does `act` to each session that `paths` lead to; the worst of all counts.
pub(crate) fn each<T: Outcome>(
    paths: &[PathBuf],
    which: Which<'_>,
    json: bool,
    mut act: impl FnMut(&Target) -> Result<T, Failure>,
) -> Verdict {
    let mut tally = Tally {
        json,
        worst: Verdict::Clean,
        is_cut_off: false,
        clean: 0,
        not_judged: 0,
        findings: 0,
        unreadable: 0,
        skipped: Vec::new(),
        next: None,
    };
    for path in paths {
        let before = tally.sessions();
        for entry in walk::entries(path) {
            let (file, is_named) = match entry {
                Entry::Named(file) => (file, true),
                Entry::Found(file) => (file, false),
                Entry::Skipped(file, reason) => {
                    tally.skip(&file, reason);
                    continue;
                }
                Entry::Unreadable(file, trouble) => {
                    tally.unreadable(&Target::file(file), &trouble);
                    continue;
                }
            };
            match Target::of(&file, which) {
                Ok(targets) => {
                    for target in targets {
                        match act(&target) {
                            Ok(outcome) => tally.done(&target, &outcome),
                            Err(failure) => tally.failed(&target, failure, is_named),
                        }
                    }
                }
                Err(failure) => tally.failed(&Target::file(file), failure, is_named),
            }
        }
        if tally.sessions() == before {
            let what = "has no session in it, nor have the folders in it";
            let help = "give the folder in which the agent keeps its sessions, or a session's file";
            tally.unreadable(&Target::file(path.clone()), &Trouble::new(what, help));
        }
    }
    tally.end();
    tally.worst
}

/// Of a file that was named, it is said that nothing was looked for in it.
fn no_session(what: &str) -> NotJudged {
    let help = "it is left as it is; give an array of messages, a request with messages, an agent's \
                JSON lines, or a database of tr-integrity's";
    NotJudged { reason: format!("it is no session: {what}"), agent: None, help: help.into() }
}

impl Tally {
    fn sessions(&self) -> usize {
        self.clean + self.not_judged + self.findings + self.unreadable
    }

    fn failed(&mut self, target: &Target, failure: Failure, is_named: bool) {
        match failure {
            Failure::NoSession(what) if is_named => self.not_judged(target, &no_session(&what)),
            Failure::NoSession(reason) => self.skip(&target.file, &reason),
            Failure::NotJudged(why) => self.not_judged(target, &why),
            Failure::Trouble(trouble) => self.unreadable(target, &trouble),
        }
    }

    fn done<T: Outcome>(&mut self, target: &Target, outcome: &T) {
        let verdict = outcome.verdict();
        self.worst = self.worst.max(verdict);
        *match verdict {
            Verdict::Clean => &mut self.clean,
            Verdict::NotJudged => &mut self.not_judged,
            Verdict::Findings => &mut self.findings,
            Verdict::Unreadable => &mut self.unreadable,
        } += 1;
        if self.json {
            self.print_json(target, outcome);
        } else {
            let mut out = String::new();
            outcome.show(target, &mut out);
            self.say(&out);
        }
        if self.next.is_none() {
            self.next = outcome.next(target);
        }
    }

    fn skip(&mut self, file: &Path, reason: &str) {
        if self.json {
            self.print_json(&Target::file(file.into()), Other::Skipped { reason });
        }
        let skipped = format!("{} ({reason})", file.display());
        self.skipped.push(printable(&skipped).into_owned());
    }

    fn not_judged(&mut self, target: &Target, why: &NotJudged) {
        self.worst = self.worst.max(Verdict::NotJudged);
        self.not_judged += 1;
        if self.json {
            self.print_json(target, Other::NotJudged(why));
        } else {
            self.say(&format!("{WARN}?{WARN:#} {TITLE}{target}{TITLE:#}\n{why}"));
        }
    }

    fn unreadable(&mut self, target: &Target, trouble: &Trouble) {
        self.worst = Verdict::Unreadable;
        self.unreadable += 1;
        let Trouble { what, help } = trouble;
        if self.json {
            self.print_json(target, Other::Unreadable { error: what, help });
        } else {
            let (what, help) = (printable(what), printable(help));
            say_error(&format!(
                "{BAD}✗{BAD:#} {TITLE}{target}{TITLE:#} {what}\n  {DIM}→ {help}{DIM:#}\n"
            ));
        }
    }

    /// What a person wants to know of many files.
    fn end(&mut self) {
        if self.json {
            return;
        }
        let mut out = String::new();
        if self.sessions() > 1 {
            let parts = [
                (self.clean, "clean", GOOD),
                (self.not_judged, "not judged", WARN),
                (self.findings, "with findings", BAD),
                (self.unreadable, "unreadable", BAD),
            ];
            let parts = parts.iter().filter(|(count, _, _)| *count > 0);
            let parts = parts.map(|(count, what, style)| format!("{style}{count} {what}{style:#}"));
            let parts = parts.collect::<Vec<_>>().join(", ");
            let _ = writeln!(out, "\n{} sessions: {parts}", self.sessions());
        }
        if !self.skipped.is_empty() {
            let named = self.skipped.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>();
            let more = match self.skipped.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(", and {more} more (--json names them)"),
            };
            let _ = writeln!(out, "{DIM}skipped: {}{more}{DIM:#}", named.join(", "));
        }
        if let Some(next) = &self.next {
            let _ = writeln!(out, "\n{next}");
        }
        self.say(&out);
    }

    /// A line for a program.
    fn print_json(&mut self, target: &Target, what: impl Serialize) {
        let session = target.stored.as_ref().map(|stored| &*stored.id);
        let file = &target.file.to_string_lossy();
        let line = Line { version: VERSION, file, session, what };
        let line = serde_json::to_string(&line).expect("what was made here can be written");
        let mut line = printable_json(&line).into_owned();
        line.push('\n');
        self.say(&line);
    }

    /// Prints; where that cannot be done, what is printed would look whole to a script.
    fn say(&mut self, text: &str) {
        if let Err(error) = say(text)
            && !std::mem::replace(&mut self.is_cut_off, true)
        {
            self.worst = Verdict::Unreadable;
            say_error(&format!("{BAD}✗{BAD:#} cannot print what came of it: {error}\n"));
        }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// For a person, on lines of their own.
impl fmt::Display for NotJudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, help) = (printable(&self.reason), printable(&self.help));
        writeln!(f, "  {WARN}not judged:{WARN:#} {reason}\n  {DIM}→ {help}{DIM:#}")
    }
}

impl From<NotJudged> for Failure {
    fn from(why: NotJudged) -> Self {
        Self::NotJudged(why)
    }
}

/// What the command ends with.
impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(match verdict {
            Verdict::Clean => 0,
            Verdict::Findings => 1,
            Verdict::Unreadable => 2,
            Verdict::NotJudged => 3,
        })
    }
}
