//! A session of JSON lines, as harnesses keep them.
use super::{
    Failure, Trouble,
    content::{Content, hash},
    file::File,
    form::Form,
    messages::Planned,
    progress,
    report::{About, Act, Found, Health, Lost},
    sidecar::Checkpoint,
};
use std::borrow::Cow;
use tr_integrity::{
    CheckpointError, FileCheck, FileCheckpoint, FileFault, FileFinding, FileForm, FileLoss,
    FileReport, Repair, SessionFile, Severity, SkipReason,
};

/// A session of JSON lines, in memory.
#[derive(Debug)]
pub(crate) struct Lines {
    file: SessionFile,
    report: FileReport,
}

/// A line that is longer is not looked at while a file is read.
const LONGEST: u64 = 256 << 20;

/// Checks a file while it is read, in bounded memory: that of its longest line, if that is long.
pub(crate) fn check(file: &File) -> Result<(About, Health), Failure> {
    let mut report = run(file, &FileCheck::new())?;
    let too_long = report.findings.iter().filter(|finding| is_too_long(finding));
    let longest = too_long.map(|finding| finding.length).filter(|length| *length <= LONGEST).max();
    if let Some(longest) = longest.and_then(|longest| usize::try_from(longest).ok()) {
        report = run(file, &FileCheck::new().max_record(longest))?;
    }
    refuse_others(&report)?;
    Ok((about(&report), health(&report)))
}

fn run(file: &File, check: &FileCheck) -> Result<FileReport, Trouble> {
    let bar = progress::bar(file.found().len());
    let checked = check.run(file.rewound()?, |done| bar.set_position(done));
    bar.finish_and_clear();
    checked.map_err(|error| Trouble::reading(file.real(), &error))
}

fn is_too_long(finding: &FileFinding) -> bool {
    finding.fault == FileFault::Skipped(SkipReason::TooLong)
}

impl Lines {
    pub(crate) fn read(bytes: Vec<u8>) -> Result<Self, Failure> {
        let lines = Self::new(SessionFile::read(bytes));
        refuse_others(&lines.report)?;
        Ok(lines)
    }

    fn new(file: SessionFile) -> Self {
        Self { report: file.check(), file }
    }

    /// The first bytes of it.
    fn beginning(&self, len: usize) -> Self {
        Self::new(SessionFile::read(&self.bytes()[..len]))
    }

    pub(crate) fn about(&self) -> About {
        about(&self.report)
    }

    pub(crate) fn health(&self) -> Health {
        health(&self.report)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.file.as_bytes()
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = (u64, Cow<'_, str>)> {
        let lines = self.bytes().split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
        (1..).zip(lines).filter(|(_, line)| !line.trim().is_empty())
    }

    pub(crate) fn plan(&self, repair: Repair) -> Planned {
        let plan = self.file.plan(repair);
        let lost = |lost: &FileLoss| Lost { line: lost.line, loss: lost.loss.clone() };
        Planned {
            acts: plan.actions().iter().map(Act::of_file).collect(),
            losses: plan.losses().iter().map(lost).collect(),
            after: Self::new(plan.after().clone()).into(),
        }
    }

    /// Cuts before the record with the first fault, and further back while that is not enough.
    pub(crate) fn before_fault(&self) -> Self {
        let errors = self.report.findings.iter().filter(|it| it.severity == Severity::Error);
        let fault = errors.map(|finding| finding.offset).min();
        let mut at = usize::try_from(fault.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        at = at.min(self.bytes().len());
        loop {
            let beginning = self.beginning(at);
            if beginning.health().is_valid() && beginning.report.pending.is_empty() {
                return beginning;
            }
            let lines = self.bytes()[..at].trim_ascii_end();
            at = memchr::memrchr(b'\n', lines).map_or(0, |end| end + 1);
        }
    }

    /// Its end, as the library names it: behind the last record, and the end of its line.
    pub(crate) fn end(&self) -> FileCheckpoint {
        self.file.end()
    }

    pub(crate) fn at(&self, checkpoint: &Checkpoint) -> Option<Self> {
        let length = usize::try_from(checkpoint.length?).ok()?;
        let holds = hash(self.bytes().get(..length)?) == checkpoint.content_hash;
        holds.then(|| self.beginning(length))
    }

    /// The header, and messages of the system.
    pub(crate) fn prompt(&self) -> Self {
        let mut file = self.file.clone();
        file.reset();
        Self::new(file)
    }

    /// The newest points to which the session can go back without a checkpoint of ours.
    pub(crate) fn turns(&self) -> impl Iterator<Item = FileCheckpoint> {
        self.file
            .checkpoints()
            .filter(|turn| turn.messages > 0 && turn.length < self.bytes().len() as u64)
    }

    /// What stood there at such a point.
    pub(crate) fn at_turn(&self, id: &str) -> Result<Self, CheckpointError> {
        let mut file = self.file.clone();
        file.rollback(id)?;
        Ok(Self::new(file))
    }
}

impl From<Lines> for Content {
    fn from(lines: Lines) -> Self {
        Self::Lines(lines)
    }
}

/// Lines of something else are no session.
fn refuse_others(report: &FileReport) -> Result<(), Failure> {
    match report.form {
        FileForm::Other if report.records == 0 => {
            Err(Failure::NoSession("there is no JSON in it".into()))
        }
        FileForm::Other => Err(Failure::NoSession("there are no messages in it".into())),
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
