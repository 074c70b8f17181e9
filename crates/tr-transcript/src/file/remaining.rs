//! Computes the check's report of a repaired file from the reports of its parts: the rest of the
//! file is unchanged, and no link from the rest leads into a part.
use super::{
    form::FileForm,
    records::find_in_records,
    report::{FileBytes, FileReport, Findings},
};
use std::array;

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
    /// The changes of the report's counts.
    counts: Counts,
    /// The uses that wait for their results, if the last part ends the file.
    pending: Option<Vec<Box<str>>>,
}

/// The counts of a report, in the order of [`counts`].
type Counts = [i64; 10];

/// The position of a part in the whole file: how many more lines, bytes and messages stand before
/// it there than in the part alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shift {
    pub(super) lines: i64,
    pub(super) bytes: i64,
    pub(super) messages: i64,
}

/// The counts of a report.
fn counts(report: &FileReport) -> Counts {
    let counts = [
        report.bytes.total,
        report.lines,
        report.messages as u64,
        report.bytes.records,
        report.bytes.skipped,
        report.bytes.separators,
        report.records,
        report.own_records,
        report.other_records,
        report.torn_lines,
    ];
    counts.map(|count| count as i64)
}

impl Remaining {
    pub(super) fn new(form: FileForm) -> Self {
        let (before, after) = ((0, 0), Findings::up_to(MOST));
        Self { form, before, after, counts: Counts::default(), pending: None }
    }

    /// Adds the next part: its reports before and after the repair.
    pub(super) fn add(&mut self, was: &FileReport, now: &FileReport, at: Shift, ends_file: bool) {
        let (before, new, old) = (self.counts, counts(now), counts(was));
        self.before.0 += was.found;
        self.before.1 += was.errors;
        self.after.all += now.found;
        self.after.errors += now.errors;
        self.counts = array::from_fn(|nth| before[nth] + new[nth] - old[nth]);
        let [bytes, lines, messages, ..] = before;
        let (bytes, lines, messages) = (at.bytes + bytes, at.lines + lines, at.messages + messages);
        for finding in &now.findings {
            self.after.keep(finding.clone().shifted(lines, bytes, messages));
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
        let was = counts(before);
        let now: Counts = array::from_fn(|nth| was[nth] + self.counts[nth]);
        if now.iter().any(|count| *count < 0) {
            return None;
        }
        let now = now.map(i64::cast_unsigned);
        let [total, lines, messages, in_records, skipped, separators, records, own, other, torn] =
            now;
        let mut report = before.clone();
        report.findings.clone_from(&self.after.kept);
        (report.found, report.errors) = (self.after.all, self.after.errors);
        report.bytes = FileBytes { total, records: in_records, skipped, separators };
        (report.lines, report.records, report.own_records) = (lines, records, own);
        (report.other_records, report.torn_lines) = (other, torn);
        report.messages = usize::try_from(messages).ok()?;
        if let Some(pending) = &self.pending {
            report.pending.clone_from(pending);
        }
        Some(report)
    }
}

/// The form that follows from the first record.
fn first_form(bytes: &[u8]) -> Option<FileForm> {
    find_in_records(bytes, |record| Some(FileForm::detect(record)))?
}
