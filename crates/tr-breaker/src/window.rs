//! The last calls, sliding by count and by time.
use crate::{
    epoch::Epoch,
    settings::{Rules, Settings},
    snapshot::{SavedMark, SavedWindow},
};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The last calls of a closed breaker.
///
/// Failures are kept one by one. Successes are only counted, and each mark notes how many there
/// were before it: that gives their exact place among the failures. A success is as old as the
/// mark before it, so a mark is also made where a success comes a lap after the last.
#[derive(Debug, Default)]
pub(crate) struct Window {
    marks: VecDeque<Mark>,
    /// Marks that are calls, and not laps.
    bad: usize,
    /// Successes ever.
    successes: u64,
    /// Failures in a row, and the successes before the last of them.
    run: u32,
    run_at: u64,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    /// Successes before it.
    successes: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Lap,
    Bad(Bad),
}

/// A call that speaks against the tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) failed: bool,
    pub(crate) slow: bool,
}

/// What a window holds at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) calls: u32,
    pub(crate) failures: u32,
    pub(crate) slow: u32,
}

impl Mark {
    const fn bad(&self) -> Option<Bad> {
        match self.what {
            What::Lap => None,
            What::Bad(bad) => Some(bad),
        }
    }
}

impl Window {
    /// A window whose successes are as old as this.
    pub(crate) fn begun(at: Instant) -> Self {
        let lap = Mark { at, successes: 0, what: What::Lap };
        Self { marks: VecDeque::from([lap]), ..Self::default() }
    }

    /// How many successes there were, if that and the time of the only mark is all it knows.
    pub(crate) fn only_successes(&self) -> Option<u64> {
        let is_simple = self.marks.len() <= 1 && self.bad == 0 && self.run() == 0;
        is_simple.then(|| self.successes - self.marks.front().map_or(0, |mark| mark.successes))
    }

    /// What it knows, with wall times.
    pub(crate) fn saved(&self, epoch: Epoch) -> SavedWindow {
        let ends = self.marks.iter().skip(1).map(|next| next.successes).chain([self.successes]);
        let marks = self.marks.iter().zip(ends).map(|(mark, end)| {
            let bad = mark.bad().unwrap_or_default();
            let successes = end - mark.successes;
            SavedMark { at: epoch.wall(mark.at), failed: bad.failed, slow: bad.slow, successes }
        });
        SavedWindow { marks: marks.collect(), run: self.run() }
    }

    /// A window that knows what was saved, as far as that can still matter.
    pub(crate) fn restored(saved: &SavedWindow, epoch: Epoch, settings: &Settings) -> Self {
        let mut window = Self::default();
        // Laps are few; another thread may have recorded more.
        let most = settings.keep() as usize + 32;
        for mark in &saved.marks[saved.marks.len().saturating_sub(most)..] {
            let Some(at) = epoch.past(mark.at) else { continue };
            let bad = Bad { failed: mark.failed, slow: mark.slow };
            let what = if bad == Bad::default() { What::Lap } else { What::Bad(bad) };
            window.push(at, what, settings);
            window.successes += mark.successes.min(settings.keep().into());
        }
        (window.run, window.run_at) = (saved.run, window.successes);
        window
    }

    /// Counts successes that ended before the end of the lap.
    pub(crate) fn add_successes(&mut self, count: u64) {
        self.successes += count;
    }

    /// Counts a success.
    pub(crate) fn success(&mut self, now: Instant, settings: &Settings) {
        if self.lap_end(settings).is_none_or(|end| now >= end) {
            self.push(now, What::Lap, settings);
        }
        self.successes += 1;
    }

    /// Counts a call that failed or was slow.
    pub(crate) fn bad(&mut self, now: Instant, bad: Bad, settings: &Settings) {
        let in_a_row = self.run();
        self.push(now, What::Bad(bad), settings);
        self.run = if bad.failed { in_a_row.saturating_add(1) } else { 0 };
        self.run_at = self.successes;
    }

    /// The tool answered, whatever it said.
    pub(crate) fn end_run(&mut self) {
        self.run = 0;
    }

    /// Until when successes need not look at the clock; `None` before the first mark.
    pub(crate) fn lap_end(&self, settings: &Settings) -> Option<Instant> {
        Some(self.marks.back()?.at + settings.lap())
    }

    /// Failures in a row.
    pub(crate) fn run(&self) -> u32 {
        if self.successes == self.run_at { self.run } else { 0 }
    }

    /// Whether no call that it remembers speaks against the tool.
    pub(crate) const fn is_clean(&self) -> bool {
        self.bad == 0
    }

    /// Whether these rules want the breaker open.
    pub(crate) fn trips(&self, now: Instant, rules: &Rules, settings: &Settings) -> bool {
        if rules.consecutive.is_some_and(|n| self.has_run(n)) {
            return true;
        }
        let tally = self.tally(now, settings);
        let reaches = |bad, rate| bad > 0 && f64::from(bad) / f64::from(tally.calls) >= rate;
        tally.calls >= settings.min_calls
            && (rules.rate.is_some_and(|rate| reaches(tally.failures, rate))
                || settings.slow.is_some_and(|slow| reaches(tally.slow, slow.rate)))
    }

    /// Whether a success could make some rate reach its threshold: by filling up the least number
    /// of calls, or by coming when older successes have left the window.
    pub(crate) fn is_watched(&self, now: Instant, settings: &Settings) -> bool {
        let tally = self.tally(now, settings);
        tally.failures >= settings.failures_to_watch() || tally.slow >= settings.slow_to_watch()
    }

    /// What the window holds.
    pub(crate) fn tally(&self, now: Instant, settings: &Settings) -> Tally {
        let mut tally = Tally::default();
        let mut later = self.successes;
        for mark in self.marks.iter().rev() {
            if is_past(mark.at, now, settings.rolling) {
                break;
            }
            let room = settings.window - tally.calls;
            let successes = u32::try_from(later - mark.successes).unwrap_or(u32::MAX);
            tally.calls += successes.min(room);
            later = mark.successes;
            if tally.calls == settings.window {
                break;
            }
            if let What::Bad(bad) = mark.what {
                tally.calls += 1;
                tally.failures += u32::from(bad.failed);
                tally.slow += u32::from(bad.slow);
            }
        }
        tally
    }

    /// Marks kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether the last `n` calls failed; what is too old was dropped when the last one came.
    fn has_run(&self, n: u32) -> bool {
        self.run() >= n && self.marks.len() >= n as usize
    }

    fn push(&mut self, now: Instant, what: What, settings: &Settings) {
        self.marks.push_back(Mark { at: now, successes: self.successes, what });
        self.bad += usize::from(what != What::Lap);
        while self.marks.len() > 1 && self.first_is_spent(now, settings) {
            let first = self.marks.pop_front();
            self.bad -= usize::from(first.is_some_and(|mark| mark.what != What::Lap));
        }
    }

    /// Whether nothing looks at the first mark any more: it is too old, or enough calls follow.
    fn first_is_spent(&self, now: Instant, settings: &Settings) -> bool {
        let (first, second) = (self.marks[0], self.marks[1]);
        let bad = self.bad - usize::from(first.what != What::Lap);
        is_past(first.at, now, settings.rolling)
            || self.successes - second.successes + bad as u64 >= u64::from(settings.keep())
    }
}

fn is_past(at: Instant, now: Instant, rolling: Duration) -> bool {
    now.saturating_duration_since(at) > rolling
}
