//! Runs a command on each session of some paths, and prints the results.
use super::{
    target::{Entry, Target, Which, entries, of_agents},
    verdict::{Failure, NotJudged, Verdict},
};
use crate::{
    files::CliError,
    terminal::{BAD, DIM, GOOD, TITLE, WARN, count, say, say_error},
};
use serde::Serialize;
use serde_json::json;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};
use tr_core::{printable, printable_json};

/// How many skipped files are named in the summary.
const NAMED: usize = 5;

/// The result for a file.
pub(crate) trait Outcome: Serialize {
    fn verdict(&self) -> Verdict {
        Verdict::Clean
    }

    /// The `status` in its JSON.
    fn status(&self) -> &'static str {
        self.verdict().status()
    }

    /// Whether there is something to say of it, though it is clean.
    fn is_notable(&self) -> bool {
        false
    }

    /// Writes it for display.
    fn show(&self, _target: &Target, _out: &mut String) {}

    /// The suggested next command, for display.
    fn next(&self, _target: &Target) -> Option<String> {
        None
    }
}

/// A session was printed: nothing else is said of it.
impl Outcome for () {}

/// The version of the report; `schemas/session-report.schema.json` describes it.
const VERSION: u32 = 1;

/// The JSON line for a session.
#[derive(Serialize)]
struct Line<'f, T> {
    version: u32,
    file: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'f str>,
    status: &'f str,
    #[serde(flatten)]
    what: T,
}

/// What a command reads, and how it prints the results.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'o> {
    pub(crate) paths: &'o [PathBuf],
    pub(crate) which: Which<'o>,
    pub(crate) json: bool,
    /// Whether it may read standard input, and several sessions of an id.
    pub(crate) is_check: bool,
    /// Whether it prints clean sessions of folders.
    pub(crate) verbose: bool,
}

impl<'o> Scope<'o> {
    /// That of a command that prints all results.
    pub(crate) fn of(
        paths: &'o [PathBuf],
        session: Option<&'o String>,
        otherwise: Which<'o>,
        json: bool,
    ) -> Self {
        let which = session.map_or(otherwise, |id| Which::Named(id));
        Self { paths, which, json, is_check: false, verbose: true }
    }
}

/// The results printed so far.
#[derive(Default)]
struct Tally {
    json: bool,
    /// Whether a clean session was not printed.
    is_hiding: bool,
    /// How many of these have something to be said.
    notable: u64,
    worst: Verdict,
    /// Whether a write to standard output failed.
    is_cut_off: bool,
    /// How many sessions have each verdict, in the order of [`Verdict`].
    sessions: [usize; 4],
    skipped: Vec<String>,
    next: Option<String>,
}

/// Runs `act` on each session of the paths; the worst verdict is the command's.
pub(crate) fn each<T: Outcome>(
    scope: Scope<'_>,
    mut act: impl FnMut(&Target) -> Result<T, Failure>,
) -> Verdict {
    let mut tally = Tally { json: scope.json, ..Tally::default() };
    let groups = match scope.paths {
        [] => vec![(Path::new("this machine"), of_agents())],
        paths => paths.iter().map(|path| (&**path, entries(path, scope.is_check))).collect(),
    };
    for (path, entries) in groups {
        let before = tally.sessions();
        for entry in entries {
            let (file, id, is_named) = match entry {
                Entry::Named(file, id) => (file, id, true),
                Entry::Found(file) => (file, None, false),
                Entry::Skipped(file, reason) => {
                    tally.skip(&file, reason);
                    continue;
                }
                Entry::Unreadable(file, cli_error) => {
                    tally.unreadable(&Target::file(file), &cli_error);
                    continue;
                }
            };
            match Target::of(&file, id.as_deref().map_or(scope.which, Which::Named)) {
                Ok(targets) => {
                    for target in targets {
                        match act(&target) {
                            Ok(outcome) => {
                                tally.done(&target, &outcome, is_named || scope.verbose);
                            }
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
            tally.unreadable(&Target::file(path.into()), &CliError::new(what, help));
        }
    }
    tally.end();
    tally.worst
}

impl Tally {
    fn sessions(&self) -> usize {
        self.sessions.iter().sum()
    }

    fn count(&mut self, verdict: Verdict) {
        self.worst = self.worst.max(verdict);
        self.sessions[verdict as usize] += 1;
    }

    fn failed(&mut self, target: &Target, failure: Failure, is_named: bool) {
        match failure {
            // A file that the user named is reported as not judged.
            Failure::NoSession(what) if is_named => {
                let help = "it is left as it is; give an array of messages, a request with messages, \
                            an agent's JSON lines, or a database of tr-integrity's";
                self.not_judged(target, &NotJudged::new(format!("it is no session: {what}"), help));
            }
            Failure::NoSession(reason) => self.skip(&target.file, &reason),
            Failure::NotJudged(why) => self.not_judged(target, &why),
            Failure::CliError(cli_error) => self.unreadable(target, &cli_error),
        }
    }

    fn done<T: Outcome>(&mut self, target: &Target, outcome: &T, shows_clean: bool) {
        let verdict = outcome.verdict();
        self.count(verdict);
        if self.json {
            self.print_json(target, outcome.status(), outcome);
        } else if verdict == Verdict::Clean && !shows_clean {
            self.is_hiding = true;
            self.notable += u64::from(outcome.is_notable());
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
            let what = json!({ "reason": reason });
            self.print_json(&Target::file(file.into()), "skipped", what);
        }
        let skipped = format!("{} ({reason})", file.display());
        self.skipped.push(printable(&skipped).into_owned());
    }

    fn not_judged(&mut self, target: &Target, why: &NotJudged) {
        self.count(Verdict::NotJudged);
        if self.json {
            self.print_json(target, Verdict::NotJudged.status(), why);
        } else {
            self.say(&format!("{WARN}?{WARN:#} {TITLE}{target}{TITLE:#}\n{why}"));
        }
    }

    fn unreadable(&mut self, target: &Target, cli_error: &CliError) {
        self.count(Verdict::Unreadable);
        let CliError { what, help } = cli_error;
        if self.json {
            let what = json!({ "error": what, "help": help });
            self.print_json(target, Verdict::Unreadable.status(), what);
        } else {
            let (what, help) = (printable(what), printable(help));
            say_error(&format!(
                "{BAD}✗{BAD:#} {TITLE}{target}{TITLE:#} {what}\n  {DIM}→ {help}{DIM:#}\n"
            ));
        }
    }

    /// Prints the summary of several files.
    fn end(&mut self) {
        if self.json {
            return;
        }
        let mut out = String::new();
        let all = count(self.sessions() as u64, "session");
        if self.is_hiding && self.sessions[Verdict::Clean as usize] == self.sessions() {
            let clean = if self.sessions() == 1 { "clean" } else { "all clean" };
            let _ = writeln!(out, "{GOOD}✓{GOOD:#} {all}, {clean}");
            if self.notable > 0 {
                let open = count(self.notable, "session");
                let _ = writeln!(
                    out,
                    "  {open} with a call without a result, or with bytes that are no record: -v says which"
                );
            }
        } else if self.sessions() > 1 {
            let names = [
                ("clean", GOOD),
                ("not judged", WARN),
                ("with findings", BAD),
                ("unreadable", BAD),
            ];
            let parts = self.sessions.iter().zip(names).filter(|(count, _)| **count > 0);
            let parts =
                parts.map(|(count, (what, style))| format!("{style}{count} {what}{style:#}"));
            let parts = parts.collect::<Vec<_>>().join(", ");
            let _ = writeln!(out, "\n{all}: {parts}");
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

    /// Prints a JSON line.
    fn print_json(&mut self, target: &Target, status: &str, what: impl Serialize) {
        let session = target.stored.as_ref().map(|stored| &*stored.id);
        let file = &target.file.to_string_lossy();
        let line = Line { version: VERSION, file, session, status, what };
        let line = serde_json::to_string(&line).expect("what was made here can be written");
        let mut line = printable_json(&line).into_owned();
        line.push('\n');
        self.say(&line);
    }

    /// Prints `text`. A failed write makes the command fail, so that a script does not take the
    /// output for complete.
    fn say(&mut self, text: &str) {
        if let Err(error) = say(text)
            && !std::mem::replace(&mut self.is_cut_off, true)
        {
            self.worst = Verdict::Unreadable;
            say_error(&format!("{BAD}✗{BAD:#} cannot print the result: {error}\n"));
        }
    }
}
