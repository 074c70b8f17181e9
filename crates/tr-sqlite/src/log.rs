//! Reads the bytes of a write-ahead log: how far SQLite replays it, and whether commits behind that point are lost.
//!
//! SQLite replays the frames whose checksums continue from the header, up to the last commit among them, and ignores
//! the rest without a word. With `synchronous = FULL` a crash can leave one unfinished commit there: the commit before
//! it was on the disk before it began. Behind it are frames with the salts of an older log, which a reset has left. So
//! a second commit with the header's salts behind the first invalid frame proves damage. With `NORMAL` a power failure
//! may look the same.
use std::{iter, ops::Range};

/// The length of the log's header, and of a frame's.
const HEADER: usize = 32;
const FRAME: usize = 24;

/// The smallest page.
const SMALLEST: usize = 512;

/// The first bytes: the lowest bit says that checksums read big-endian words.
const MAGIC: u32 = 0x377f_0682;

/// What a log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// How many commits SQLite replays.
    pub(crate) commits: usize,
    /// What of it is damaged.
    pub(crate) damage: Option<Damage>,
}

/// Where a log is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The number of the damaged frame, from 1; 0 for the header.
    pub(crate) frame: usize,
    /// How many commits behind it are known, which SQLite does not replay.
    pub(crate) commits: usize,
}

/// Whether a log of this length may hold a commit: one that is in use always has a frame.
pub(crate) const fn has_frame(length: u64) -> bool {
    length >= (HEADER + FRAME + SMALLEST) as u64
}

/// Judges a log.
pub(crate) fn judge(bytes: &[u8]) -> Finding {
    let Some(head) = bytes.get(..HEADER) else { return Finding { commits: 0, damage: None } };
    match Form::of(head) {
        Some(form) => behind_header(&form, head, bytes),
        None => {
            let commits = Form::any(head).map(|form| without_header(&form, head, bytes)).max();
            let damage = commits.filter(|commits| *commits > 0);
            Finding { commits: 0, damage: damage.map(|commits| Damage { frame: 0, commits }) }
        }
    }
}

fn behind_header(form: &Form, head: &[u8], bytes: &[u8]) -> Finding {
    let (mut sum, mut commits, mut valid) = (stated(head, 24), 0, 0);
    let frames: Vec<_> = form.frames(bytes).collect();
    for frame in &frames {
        if !frame.is_of(head) || frame.sum(form, sum) != frame.stated() || frame.page() == 0 {
            break;
        }
        (sum, valid) = (frame.stated(), valid + 1);
        commits += usize::from(frame.commits());
    }
    let Some((first, behind)) = frames[valid..].split_first() else {
        return Finding { commits, damage: None };
    };
    // A frame is sound by itself if its checksum continues from what the frame before states.
    let before = frames[valid..].iter();
    let sound = before.zip(behind).filter(|(before, frame)| {
        frame.is_of(head) && frame.commits() && frame.sum(form, before.stated()) == frame.stated()
    });
    let sound = sound.count();
    // The first invalid one is of this log by its salts or by its checksum.
    let is_of_log = first.is_of(head) || first.sum(form, sum) == first.stated();
    let lost = sound + usize::from(first.commits() && is_of_log);
    let is_damaged = sound > 0 && lost > 1;
    let damage = is_damaged.then_some(Damage { frame: valid + 1, commits: lost });
    Finding { commits, damage }
}

/// How many commits follow a header that is damaged: it was on the disk before any of them.
fn without_header(form: &Form, head: &[u8], bytes: &[u8]) -> usize {
    let frames: Vec<_> = form.frames(bytes).collect();
    let before = iter::once((stated(head, 24), None))
        .chain(frames.iter().map(|frame| (frame.stated(), Some(frame.salts()))));
    let sound = frames.iter().zip(before).filter(|(frame, (sum, salts))| {
        frame.commits()
            && salts.is_none_or(|salts| salts == frame.salts())
            && frame.sum(form, *sum) == frame.stated()
    });
    sound.count()
}

/// The running checksum.
type Sum = (u32, u32);

/// How a log is laid out.
#[derive(Clone, Copy, Debug)]
struct Form {
    big_endian: bool,
    page: usize,
}

impl Form {
    /// The form that a sound header states.
    fn of(head: &[u8]) -> Option<Self> {
        let magic = word(head, 0);
        let form = Self { big_endian: magic & 1 == 1, page: word(head, 8) as usize };
        let is_known = magic & !1 == MAGIC && form.is_possible();
        (is_known && form.sum((0, 0), &head[..24]) == stated(head, 24)).then_some(form)
    }

    fn is_possible(self) -> bool {
        self.page.is_power_of_two() && (SMALLEST..=65_536).contains(&self.page)
    }

    /// The forms that a log with a damaged header may have.
    fn any(head: &[u8]) -> impl Iterator<Item = Self> {
        let stated = word(head, 8) as usize;
        let sizes = (9..=16).map(|bits| 1 << bits);
        let of = |big_endian| move |page| Self { big_endian, page };
        let mut forms: Vec<_> = sizes.clone().map(of(false)).chain(sizes.map(of(true))).collect();
        forms.sort_by_key(|form| form.page != stated);
        forms.into_iter()
    }

    fn frames(self, bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
        bytes[HEADER..].chunks_exact(FRAME + self.page).map(Frame)
    }

    fn sum(self, (mut first, mut second): Sum, bytes: &[u8]) -> Sum {
        let read = |bytes: [u8; 4]| match self.big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        };
        for pair in bytes.as_chunks::<4>().0.as_chunks::<2>().0 {
            first = first.wrapping_add(read(pair[0])).wrapping_add(second);
            second = second.wrapping_add(read(pair[1])).wrapping_add(first);
        }
        (first, second)
    }
}

/// A page, with what is said of it before.
#[derive(Clone, Copy, Debug)]
struct Frame<'l>(&'l [u8]);

impl<'l> Frame<'l> {
    const SALTS: Range<usize> = 8..16;

    fn page(self) -> u32 {
        word(self.0, 0)
    }

    /// Whether it is the last of a commit: it states the number of pages of the file.
    fn commits(self) -> bool {
        word(self.0, 4) != 0
    }

    fn salts(self) -> &'l [u8] {
        &self.0[Self::SALTS]
    }

    /// Whether it has the salts of this header.
    fn is_of(self, head: &[u8]) -> bool {
        self.salts() == &head[16..24]
    }

    fn stated(self) -> Sum {
        stated(self.0, 16)
    }

    /// Its checksum, if `before` is that of the frame before.
    fn sum(self, form: &Form, before: Sum) -> Sum {
        form.sum(form.sum(before, &self.0[..8]), &self.0[FRAME..])
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
}

fn stated(bytes: &[u8], at: usize) -> Sum {
    (word(bytes, at), word(bytes, at + 4))
}

#[cfg(test)]
mod tests;
