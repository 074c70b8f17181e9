//! Computes the check's report of a repaired file from the reports of its parts: the rest of the
//! file is unchanged, and no link from the rest leads into a part.
use super::{
    form::FileForm,
    records::{Piece, Records},
    report::{FileReport, Findings},
};

/// The limit for kept findings, as in a check.
const MOST: usize = 10_000;

/// How the repaired parts change the report of the whole file.
#[derive(Clone, Debug)]
pub(super) struct Remaining {
    form: FileForm,
    /// The findings in the parts before the repair, and how many are errors.
    before: (u64, u64),
    /// The findings in the parts after the repair.
    after: Findings,
    counts: Counts,
    /// The uses that wait for their results, if the last part ends the file.
    pending: Option<Vec<Box<str>>>,
}

/// The counters of a report.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    total: i64,
    records: i64,
    skipped: i64,
    separators: i64,
    lines: i64,
    numbers: [i64; 4],
    messages: i64,
}

/// The position of a part in the whole file: how many more lines, bytes and messages stand before
/// it there than in the part alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shift {
    pub(super) lines: i64,
    pub(super) bytes: i64,
    pub(super) messages: i64,
}

impl Counts {
    fn of(report: &FileReport) -> Self {
        let FileReport { bytes, lines, records, own_records, other_records, torn_lines, .. } =
            report;
        let numbers = [records, own_records, other_records, torn_lines];
        Self {
            total: bytes.total as i64,
            records: bytes.records as i64,
            skipped: bytes.skipped as i64,
            separators: bytes.separators as i64,
            lines: *lines as i64,
            numbers: numbers.map(|number| *number as i64),
            messages: report.messages as i64,
        }
    }

    /// Combines each counter with `join`.
    fn with(self, other: Self, join: fn(i64, i64) -> i64) -> Self {
        let mut numbers = self.numbers;
        numbers.iter_mut().zip(other.numbers).for_each(|(one, other)| *one = join(*one, other));
        Self {
            total: join(self.total, other.total),
            records: join(self.records, other.records),
            skipped: join(self.skipped, other.skipped),
            separators: join(self.separators, other.separators),
            lines: join(self.lines, other.lines),
            numbers,
            messages: join(self.messages, other.messages),
        }
    }
}

impl Remaining {
    pub(super) fn new(form: FileForm) -> Self {
        let (before, after) = ((0, 0), Findings::up_to(MOST));
        Self { form, before, after, counts: Counts::default(), pending: None }
    }

    /// Adds the next part: its reports before and after the repair.
    pub(super) fn add(&mut self, was: &FileReport, now: &FileReport, at: Shift, ends_file: bool) {
        let before = self.counts;
        self.before.0 += was.found;
        self.before.1 += was.errors;
        self.after.all += now.found;
        self.after.errors += now.errors;
        self.counts = before.with(Counts::of(now), |one, other| one + other);
        self.counts = self.counts.with(Counts::of(was), |one, other| one - other);
        for finding in &now.findings {
            let (lines, bytes) = (at.lines + before.lines, at.bytes + before.total);
            self.after.keep(finding.clone().shifted(lines, bytes, at.messages + before.messages));
        }
        self.pending = ends_file.then(|| now.pending.clone());
    }

    /// The report of the repaired file; `before` is the report of the file as it was. `None` if it
    /// cannot be computed: the check found something else than the repair did, or the new file may
    /// be read as another form.
    pub(super) fn of(&self, before: &FileReport, after: &[u8]) -> Option<FileReport> {
        let is_same = before.form == self.form && (before.found, before.errors) == self.before;
        if !is_same || first_form(after) != Some(self.form) {
            return None;
        }
        let counts = Counts::of(before).with(self.counts, |one, other| one + other);
        let number = |number: i64| u64::try_from(number).ok();
        let mut report = before.clone();
        report.findings.clone_from(&self.after.kept);
        (report.found, report.errors) = (self.after.all, self.after.errors);
        report.bytes.total = number(counts.total)?;
        report.bytes.records = number(counts.records)?;
        report.bytes.skipped = number(counts.skipped)?;
        report.bytes.separators = number(counts.separators)?;
        report.lines = number(counts.lines)?;
        let [records, own, other, torn] = counts.numbers.map(number);
        (report.records, report.own_records) = (records?, own?);
        (report.other_records, report.torn_lines) = (other?, torn?);
        report.messages = usize::try_from(counts.messages).ok()?;
        if let Some(pending) = &self.pending {
            report.pending.clone_from(pending);
        }
        Some(report)
    }
}

/// The form that follows from the first record.
fn first_form(bytes: &[u8]) -> Option<FileForm> {
    let mut records = Records::new(bytes).max_record(usize::MAX);
    // Reading a slice cannot fail.
    while let Ok(Some(piece)) = records.next() {
        let Piece::Record(record) = piece else { continue };
        return FileForm::detect(&record.text);
    }
    None
}
