//! The parts of a line that are not yet returned as pieces.
use super::{
    piece::{Piece, Record, SkipReason, Skipped},
    recover::{self, Cut, Part},
};
use std::{borrow::Cow, mem, ops::Range, str};

/// The parts of a line that are not yet returned; their ranges are those of a reader's buffer.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The next part.
    part: Option<Part>,
    /// The stretches that have the parts behind it, the next one last.
    cuts: Vec<Cut>,
    /// Up to where the next part was searched for unreadable bytes, and how many of them were
    /// returned as skipped.
    looked: usize,
    invalid: u64,
    /// Whether a record of the line was returned.
    has_record: bool,
}

/// Where a line is.
#[derive(Clone, Copy)]
pub(super) struct LinePosition {
    /// The file offset of the buffer's start.
    pub(super) base: u64,
    pub(super) line: u64,
}

impl Pieces {
    /// Whether there is another piece.
    pub(super) fn has_next(&mut self, buffer: &[u8]) -> bool {
        while self.part.is_none() {
            let Some(cut) = self.cuts.last_mut() else { return false };
            self.part = cut.next(buffer);
            if self.part.is_none() {
                self.cuts.pop();
            }
        }
        true
    }

    /// A line begins, or goes on behind a record.
    pub(super) fn begin_line_after(&mut self, has_record: bool) {
        self.has_record = has_record;
    }

    /// Sets the next part, if there is none.
    pub(super) fn push(&mut self, part: Part) {
        self.part = Some(part);
    }

    /// Adds the parts of a stretch.
    pub(super) fn cut(&mut self, buffer: &[u8], at: Range<usize>) {
        self.cuts.push(Cut::of(buffer, at));
    }

    /// Removes the next piece.
    pub(super) fn next<'b>(&mut self, buffer: &'b [u8], place: LinePosition) -> Option<Piece<'b>> {
        if let Some(Part::Promising(at)) = &self.part {
            let at = at.clone();
            self.part = None;
            // Nearly every line is UTF-8.
            match str::from_utf8(&buffer[at.clone()]) {
                Ok(text) => return Some(self.record(text.into(), &at, place)),
                Err(_) => self.cut(buffer, at),
            }
        }
        if !self.has_next(buffer) {
            return None;
        }
        if let Some((run, why)) = self.unreadable_of_first(buffer) {
            return Some(skipped(&run, why, place));
        }
        Some(match self.part.take()? {
            Part::Promising(at) | Part::Record(at) => {
                self.record(recover::on_one_line(&buffer[at.clone()]), &at, place)
            }
            Part::Skipped(at, why) => skipped(&at, why, place),
            Part::Far(skipped) => Piece::Skipped(skipped),
        })
    }

    fn record<'b>(
        &mut self,
        text: Cow<'b, str>,
        at: &Range<usize>,
        place: LinePosition,
    ) -> Piece<'b> {
        self.looked = 0;
        Piece::Record(Record {
            text,
            offset: place.base + at.start as u64,
            length: at.len() as u64,
            line: place.line,
            invalid: mem::take(&mut self.invalid),
            is_glued: mem::replace(&mut self.has_record, true),
        })
    }

    /// The next unreadable bytes of the record that is to be returned. All are returned before the
    /// record, one run at a time.
    fn unreadable_of_first(&mut self, buffer: &[u8]) -> Option<(Range<usize>, SkipReason)> {
        let Some(Part::Record(at)) = &self.part else { return None };
        let (run, why) = recover::unreadable(buffer, self.looked.max(at.start)..at.end)?;
        self.looked = run.end;
        self.invalid += run.len() as u64;
        Some((run, why))
    }
}

fn skipped<'b>(at: &Range<usize>, why: SkipReason, place: LinePosition) -> Piece<'b> {
    let LinePosition { base, line } = place;
    Piece::Skipped(Skipped { offset: base + at.start as u64, length: at.len() as u64, line, why })
}
