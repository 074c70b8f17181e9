//! The last calls, sliding by count and by time.
use crate::settings::{Rules, Settings};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};
use tr_policy::internal::millis;

/// The last calls of a closed breaker.
///
/// Failures are kept one by one. Successes are only counted, and each mark notes how many there
/// were before it: that gives their exact place among the failures. A success is as old as the
/// mark before it, so a mark is also made where a success comes a lap after the last.
#[derive(Debug, Default)]
pub(crate) struct Window {
    marks: VecDeque<Mark>,
    /// Marks that are calls, and not laps.
    bad: u32,
    /// Failures in a row.
    pub(crate) run: u32,
    /// Successes ever.
    successes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    /// Successes before it.
    successes: u64,
    /// `None`: a lap.
    bad: Option<BadCall>,
}

/// A call that speaks against the tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BadCall {
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

/// The last calls, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedWindow {
    pub(crate) marks: Vec<SavedMark>,
    /// Failures in a row, up to the last call.
    pub(crate) run: u32,
}

/// A call that failed or was slow, or neither: then it stands for the successes that follow.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedMark {
    pub(crate) at: u64,
    pub(crate) failed: bool,
    pub(crate) slow: bool,
    /// Successes between it and the next.
    pub(crate) successes: u64,
}

/// The same time on the monotonic clock and on the wall clock, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    pub(crate) now: Instant,
    pub(crate) unix_ms: u64,
}

impl Window {
    /// What it knows, with wall times.
    pub(crate) fn saved(&self, epoch: Epoch) -> SavedWindow {
        let ends = self.marks.iter().skip(1).map(|next| next.successes).chain([self.successes]);
        let marks = self.marks.iter().zip(ends).map(|(mark, end)| {
            let bad = mark.bad.unwrap_or_default();
            let successes = end - mark.successes;
            SavedMark { at: epoch.wall(mark.at), failed: bad.failed, slow: bad.slow, successes }
        });
        SavedWindow { marks: marks.collect(), run: self.run }
    }

    /// A window that knows what was saved, as far as that can still matter.
    pub(crate) fn restored(saved: &SavedWindow, epoch: Epoch, settings: &Settings) -> Self {
        let mut window = Self::default();
        // Laps are few; another thread may have recorded more.
        let most = settings.derived.keep as usize + 32;
        for mark in &saved.marks[saved.marks.len().saturating_sub(most)..] {
            let Some(at) = epoch.past(mark.at) else { continue };
            let bad = BadCall { failed: mark.failed, slow: mark.slow };
            window.push(at, Some(bad).filter(|bad| *bad != BadCall::default()), settings);
            window.successes += mark.successes.min(settings.derived.keep.into());
        }
        window.run = saved.run;
        window
    }

    /// Counts a success.
    #[inline]
    pub(crate) fn success(&mut self, now: Instant, settings: &Settings) {
        if self.marks.back().is_none_or(|last| now >= last.at + settings.derived.lap) {
            self.push(now, None, settings);
        }
        (self.successes, self.run) = (self.successes + 1, 0);
    }

    /// Counts a success as one of the last mark's time; `false` if it has to be counted with its own:
    /// there is no mark, or a success could open the breaker.
    #[inline]
    pub(crate) fn success_untimed(&mut self, settings: &Settings) -> bool {
        let counts = self.marks.back().is_some_and(|last| !self.is_watched(last.at, settings));
        if counts {
            (self.successes, self.run) = (self.successes + 1, 0);
        }
        counts
    }

    /// Until when a further success changes nothing: there are as many already as any rule looks at, all of
    /// this lap, and nothing else.
    #[inline]
    pub(crate) fn quiet_until(&self, settings: &Settings) -> Option<Instant> {
        let last = self.marks.back().filter(|_| self.is_clean())?;
        let is_full = self.successes - last.successes >= settings.derived.keep.into();
        is_full.then(|| last.at + settings.derived.lap)
    }

    /// Counts a call that failed or was slow.
    pub(crate) fn bad(&mut self, now: Instant, bad: BadCall, settings: &Settings) {
        self.push(now, Some(bad), settings);
        self.run = if bad.failed { self.run.saturating_add(1) } else { 0 };
    }

    /// The tool answered, whatever it said.
    pub(crate) const fn end_run(&mut self) {
        self.run = 0;
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
    #[inline]
    pub(crate) fn is_watched(&self, now: Instant, settings: &Settings) -> bool {
        let (failures, slow) = settings.derived.to_watch;
        self.bad >= failures.min(slow) && {
            let tally = self.tally(now, settings);
            tally.failures >= failures || tally.slow >= slow
        }
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
            if let Some(bad) = mark.bad {
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
        self.run >= n && self.marks.len() >= n as usize
    }

    fn push(&mut self, now: Instant, bad: Option<BadCall>, settings: &Settings) {
        if self.marks.is_empty() {
            // One suffices for a tool that succeeds.
            self.marks.reserve_exact(1);
        }
        self.marks.push_back(Mark { at: now, successes: self.successes, bad });
        self.bad += u32::from(bad.is_some());
        while self.marks.len() > 1 && self.first_is_spent(now, settings) {
            let first = self.marks.pop_front();
            self.bad -= u32::from(first.is_some_and(|mark| mark.bad.is_some()));
        }
    }

    /// Whether nothing looks at the first mark any more: it is too old, or enough calls follow.
    fn first_is_spent(&self, now: Instant, settings: &Settings) -> bool {
        let (first, second) = (self.marks[0], self.marks[1]);
        let bad = self.bad - u32::from(first.bad.is_some());
        is_past(first.at, now, settings.rolling)
            || self.successes - second.successes + u64::from(bad)
                >= u64::from(settings.derived.keep)
    }
}

fn is_past(at: Instant, now: Instant, rolling: Duration) -> bool {
    now.saturating_duration_since(at) > rolling
}

impl Epoch {
    /// The wall time of a moment that is past.
    pub(crate) fn wall(self, past: Instant) -> u64 {
        self.unix_ms.saturating_sub(millis(self.now.saturating_duration_since(past)))
    }

    /// The wall time that long after now.
    pub(crate) fn wall_after(self, left: Duration) -> u64 {
        self.unix_ms.saturating_add(millis(left))
    }

    /// The moment of a wall time; now, if the wall clock says that it is still to come. `None` if
    /// it is longer ago than this clock can tell.
    pub(crate) fn past(self, unix_ms: u64) -> Option<Instant> {
        self.now.checked_sub(Duration::from_millis(self.unix_ms.saturating_sub(unix_ms)))
    }

    /// Until a wall time; nothing, if it is past.
    pub(crate) fn until(self, unix_ms: u64) -> Duration {
        Duration::from_millis(unix_ms.saturating_sub(self.unix_ms))
    }
}
