//! A session of JSON lines, as harnesses keep them.
use super::{Document, Numbered, Planned, agents, doubt, refuse_guess};
use crate::{
    files::{CliError, File},
    session::{
        report::{About, Form, Found, Health},
        sidecar::{Checkpoint, hash},
        verdict::{Failure, NotJudged, Verdict},
    },
    terminal::count,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::{cell::OnceCell, collections::BTreeMap};
use tr_core::printable;
use tr_transcript::{
    CheckpointError, FileCheck, FileCheckpoint, FileFault, FileFinding, FileForm, FilePlanner,
    FileReport, Repair, SessionFile, Severity, SkipReason, Skipped,
};

/// A session of JSON lines, in memory.
#[derive(Debug)]
pub(crate) struct JsonLines {
    bytes: Vec<u8>,
    /// Made when it is first asked for.
    report: OnceCell<FileReport>,
}

/// Longer lines are not checked while a file is read.
const LONGEST: u64 = 256 << 20;

/// Checks a file while it is read. Memory is bounded by the longest line, if that is long.
pub(crate) fn check(file: &File) -> Result<(About, Health), Failure> {
    agents::refuse_lines(file)?;
    let check = FileCheck::new().with_members().bounded(file.found.len());
    let mut report = run(file, &check)?;
    let too_long = report.findings.iter().filter(|finding| is_too_long(finding));
    let longest = too_long.map(|finding| finding.length).filter(|length| *length <= LONGEST).max();
    if let Some(longest) = longest.and_then(|longest| usize::try_from(longest).ok()) {
        report = run(file, &check.max_record(longest))?;
    }
    refuse_others(&report)?;
    match unread(&report).or_else(|| unsure(&report)) {
        Some(why) => Err(why.into()),
        None => Ok((about(&report), health(&report))),
    }
}

fn run(file: &File, check: &FileCheck) -> Result<FileReport, CliError> {
    let open = file.rewound()?;
    let checked = under_bar(file.found.len(), |at| check.run(open, at));
    checked.map_err(|error| CliError::reading(&file.real, &error))
}

fn report(bytes: &[u8], check: &FileCheck) -> FileReport {
    let report = under_bar(bytes.len() as u64, |at| check.run(bytes, at));
    report.expect("a slice can always be read")
}

fn is_too_long(finding: &FileFinding) -> bool {
    finding.fault == FileFault::Skipped(SkipReason::TooLong)
}

impl JsonLines {
    pub(crate) fn read(file: &File) -> Result<Self, Failure> {
        agents::refuse_lines(file)?;
        Self::stored(file.bytes()?)
    }

    /// The lines of a session, of a file or a database.
    pub(crate) fn stored(bytes: Vec<u8>) -> Result<Self, Failure> {
        // The same check as `session check`; a repair's plan runs its own.
        let check = FileCheck::new().max_record(usize::MAX).with_members();
        let check = check.bounded(bytes.len() as u64);
        let report = report(&bytes, &check);
        refuse_others(&report)?;
        Ok(Self { bytes, report: report.into() })
    }

    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, report: OnceCell::new() }
    }

    /// A check without the bounds of one in bounded memory.
    fn closer(&self) -> FileCheck {
        FileCheck::in_memory(self.bytes.len()).with_members()
    }

    fn report(&self) -> &FileReport {
        self.report.get_or_init(|| report(&self.bytes, &self.closer()))
    }

    /// The form of the repaired session, if it is another one, and `after` is invalid in one of the two.
    fn invalid_other_form(&self, after: &Self) -> Option<Form> {
        let (before, form) = (self.report().form, after.report().form);
        let as_before = || report(&after.bytes, &after.closer().form(before));
        let is_invalid = |report: &FileReport| health(report).verdict() != Verdict::Clean;
        (before != form && (is_invalid(after.report()) || is_invalid(&as_before())))
            .then_some(Form::Lines(form))
    }
}

impl Document for JsonLines {
    fn about(&self) -> About {
        about(self.report())
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn numbered(&self) -> Numbered<'_> {
        let ends = memchr::memchr_iter(b'\n', &self.bytes).chain([self.bytes.len()]);
        let lines = ends.scan(0, |from, end| {
            let line = &self.bytes[*from..end];
            *from = end + 1;
            Some(line)
        });
        Box::new((1..).zip(lines).filter(|(_, line)| !line.trim_ascii().is_empty()))
    }

    fn line_of(&self, record: u64) -> Option<u64> {
        Some(record)
    }

    fn health(&self) -> Health {
        health(self.report())
    }

    fn plan(&self, repair: Repair) -> Result<Planned, NotJudged> {
        if let Some(why) = unsure(self.report()) {
            return Err(why);
        }
        let planner = FilePlanner::new(repair);
        let bytes = 2 * self.bytes.len() as u64;
        let plan = under_bar(bytes, |at| planner.plan(&self.bytes, at));
        let lines = plan.actions.iter().map(|action| action.line);
        let lines = lines.chain(plan.losses.iter().map(|lost| lost.line)).flatten();
        // A line break reports the line behind it, too.
        let mut behind = BTreeMap::new();
        let divided = plan.dropped.iter().filter(|it| it.skipped.why == SkipReason::LineBreak);
        let divided = divided.map(|it| {
            let line = behind.entry(it.skipped.line).or_insert(it.skipped.line);
            *line += 1;
            *line
        });
        let reported = lines.chain(divided).collect();
        let dropped = plan.dropped.iter().map(|dropped| dropped.skipped);
        // Those hold no content: NULs, raw line breaks, and the last record if the agent died while writing it.
        let may_go = |skipped: &Skipped| {
            let end = usize::try_from(skipped.offset + skipped.length).unwrap_or(usize::MAX);
            let behind = self.bytes.get(end..).unwrap_or_default();
            skipped.why.says_nothing()
                || skipped.why == SkipReason::Torn && behind.trim_ascii().is_empty()
        };
        let dropped = dropped.filter(|skipped| !may_go(skipped)).map(|it| it.length).sum();
        let doubt = doubt(plan.changed_unknown, plan.doubtful_answer);
        let doubt = doubt.or_else(|| {
            let (line, id) = plan.named_elsewhere?;
            Some(format!(
                "line {line} mentions the call {}, which has no result, in an unknown form: its \
                 outcome cannot be called unknown",
                printable(&id)
            ))
        });
        let after = plan.after.map(Self::new);
        let other = || after.as_ref().and_then(|after| self.invalid_other_form(after));
        refuse_guess(doubt, self.about().form, other)?;
        Ok(Planned {
            acts: plan.actions,
            losses: plan.losses,
            reported,
            dropped,
            after: after.map(|after| Box::new(after) as _),
        })
    }

    /// Truncates before the record with the first fault, and further back while the rest is
    /// invalid.
    fn before_fault(&self) -> Box<dyn Document> {
        let report = report(&self.bytes, &self.closer());
        let errors = report.findings.iter().filter(|it| it.severity == Severity::Error);
        let fault = errors.map(|finding| finding.offset).min();
        let mut at = usize::try_from(fault.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        at = at.min(self.bytes.len());
        loop {
            let beginning = Self::new(self.bytes[..at].to_vec());
            if beginning.health().is_valid() && beginning.report().pending.is_empty() {
                return Box::new(beginning);
            }
            let lines = self.bytes[..at].trim_ascii_end();
            at = memchr::memrchr(b'\n', lines).map_or(0, |end| end + 1);
        }
    }

    /// The end of the last record and its line break.
    fn end(&self) -> Option<(&[u8], Option<Box<str>>)> {
        let end = Some(SessionFile::read(&*self.bytes).end()).filter(|end| end.records > 0)?;
        Some((&self.bytes[..usize::try_from(end.length).ok()?], Some(end.id)))
    }

    fn at(&self, checkpoint: &Checkpoint) -> Option<Box<dyn Document>> {
        let before = self.bytes.get(..usize::try_from(checkpoint.length?).ok()?)?;
        let holds = hash(before) == checkpoint.content_hash;
        holds.then(|| Box::new(Self::new(before.to_vec())) as _)
    }

    /// The header, and messages of the system.
    fn prompt(&self, _archive: bool) -> Box<dyn Document> {
        let mut file = SessionFile::read(&*self.bytes);
        file.reset();
        Box::new(Self::new(file.to_bytes()))
    }

    fn turns(&self, most: usize) -> Vec<FileCheckpoint> {
        let (file, end) = (SessionFile::read(&*self.bytes), self.bytes.len() as u64);
        let turns = file.checkpoints().filter(|turn| turn.messages > 0 && turn.length < end);
        turns.take(most).collect()
    }

    fn at_turn(&self, id: &str) -> Result<Box<dyn Document>, CheckpointError> {
        let mut file = SessionFile::read(&*self.bytes);
        file.rollback(id)?;
        Ok(Box::new(Self::new(file.to_bytes())))
    }
}

/// The first line that was too long to be read.
fn unread(report: &FileReport) -> Option<NotJudged> {
    let FileFinding { line, length, .. } = report.findings.iter().find(|it| is_too_long(it))?;
    Some(NotJudged::new(
        format!("line {line} has {length} bytes, and no more than {LONGEST} of a line are read"),
        "what the session says without it is not known; repair reads it, with the file in memory, and \
         without --write it changes nothing",
    ))
}

/// The first line whose place in the session is not certain.
fn unsure(report: &FileReport) -> Option<NotJudged> {
    let is_unsure = |finding: &&FileFinding| finding.fault == FileFault::UnsurePlace;
    let line = report.findings.iter().find(is_unsure)?.line;
    let mut here = report.findings.iter().filter(|finding| finding.line == line);
    let why = here.find_map(|FileFinding { fault, parent, .. }| {
        let (member, parent) = (report.form.parent_member(), parent.as_deref()?);
        let is = match fault {
            FileFault::ParentCycle => "one of its descendants",
            _ => "missing",
        };
        Some(format!("its {member} {parent} is {is}, and several branches end before it"))
    });
    let why = why.unwrap_or_else(|| {
        "its parent is not named, its call is missing, or another line has the same id with other \
         content"
            .into()
    });
    Some(NotJudged::new(
        format!("the position of line {line} in the session is uncertain: {why}"),
        "it is left as it is, since a repair would be a guess; checkpoints lists the turns \
         that rollback --to goes back to",
    ))
}

/// Refuses a file in which most lines are no records of a session.
fn refuse_others(report: &FileReport) -> Result<(), Failure> {
    if let Some(line) = report.too_much.filter(|_| report.is_session()) {
        let reason = format!(
            "line {line} has a message of more than 10,000 blocks, or a block of more than 10,000 \
             members"
        );
        let help = "no model and no agent is known to write such a message, so nothing is said of \
                    the session; it is left as it is";
        return Err(NotJudged::new(reason, help).into());
    }
    match report.form {
        FileForm::Other if report.records == 0 => {
            Err(Failure::NoSession("there is no JSON in it".into()))
        }
        FileForm::Other => Err(Failure::NoSession("there are no messages in it".into())),
        form if !report.is_session() => {
            let others = report.other_records + report.torn_lines;
            let own = count(report.own_records, "line");
            let of_all = if report.is_whole { "in it" } else { "in the part that was read" };
            Err(Failure::NoSession(format!(
                "{own} {of_all} look like a session ({form}), and {others} do not"
            )))
        }
        _ if report.unknown_api.is_some() => {
            Err(NotJudged::of_unknown_api(report.unknown_api.as_deref().unwrap_or_default()).into())
        }
        FileForm::Messages(_) if report.other_records > 0 => {
            let others = count(report.other_records, "line");
            let help = "the program that wrote it is not known here; to have its messages judged, \
                        check a copy with nothing but them";
            let reason = format!("{others} in it are no recognized messages");
            Err(NotJudged::new(reason, help).into())
        }
        _ => Ok(()),
    }
}

fn about(report: &FileReport) -> About {
    About {
        form: Form::Lines(report.form),
        messages: report.messages,
        bytes: report.bytes.total,
        skipped_bytes: report.bytes.skipped,
    }
}

fn health(report: &FileReport) -> Health {
    let found = |finding: &FileFinding| Found::of_file(finding, report.form);
    Health {
        pending: report.pending.iter().map(ToString::to_string).collect(),
        running: Vec::new(),
        found: report.found,
        errors: report.errors,
        findings: report.findings.iter().map(found).collect(),
    }
}

/// Smaller files need no progress bar.
const LARGE: u64 = 64 << 20;

/// The bar moves after this many bytes: that takes a look at the clock.
const STEP: u64 = 1 << 20;

/// Works through `bytes`, under a bar on standard error if they are many; hidden unless that is a
/// terminal. What is given to `work` moves the bar; it counts from the beginning.
fn under_bar<T>(bytes: u64, work: impl FnOnce(&mut dyn FnMut(u64)) -> T) -> T {
    if bytes < LARGE {
        return work(&mut |_| {});
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(bytes).with_style(style);
    let mut next = 0;
    let result = work(&mut |done| {
        if done >= next {
            bar.set_position(done);
            next = done.saturating_add(STEP);
        }
    });
    bar.finish_and_clear();
    result
}
