//! Cycles: calls that repeat in the same order with the same responses.

/// The longest cycle that is detected.
pub(super) const LONGEST: usize = 5;

/// The last steps, and for each length `p` how many steps in a row equal the step `p` before: a
/// cycle of `p` calls has repeated once for every `p` of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycles {
    /// The latest first.
    past: [Option<PastStep>; LONGEST],
    matches: [u32; LONGEST],
    /// The steps since the last wait.
    hasty: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PastStep {
    call: u64,
    end: u64,
    failed: bool,
}

impl Cycles {
    /// Records a step; `end` is `None` if it cannot be compared. Returns a cycle that has repeated
    /// `rounds` times.
    pub(super) fn push(
        &mut self,
        call: u64,
        end: Option<u64>,
        failed: bool,
        haste: bool,
        rounds: u32,
    ) -> Option<(u8, u32)> {
        let step = end.map(|end| PastStep { call, end, failed });
        self.hasty = if haste { (self.hasty + 1).min(LONGEST) } else { 0 };
        for period in 1..=LONGEST {
            let matches = &mut self.matches[period - 1];
            if step.is_none() || self.past[period - 1] != step {
                *matches = 0;
            } else if self.hasty >= period {
                // A round with a wait neither counts nor breaks the cycle.
                *matches = matches.saturating_add(1);
            }
        }
        self.past.rotate_right(1);
        self.past[0] = step;
        (2..=LONGEST).find_map(|period| self.found(period, rounds))
    }

    /// Whether `call` would continue a cycle that has repeated `rounds` times.
    pub(super) fn next_is(&self, call: u64, rounds: u32) -> Option<(u8, u32)> {
        (2..=LONGEST)
            .filter(|period| self.past[period - 1].is_some_and(|past| past.call == call))
            .find_map(|period| self.found(period, rounds))
    }

    /// How many calls the cycle has, and how often it has repeated.
    fn found(&self, period: usize, rounds: u32) -> Option<(u8, u32)> {
        let matches = self.matches[period - 1];
        // AAAA is a cycle of one call, and ABAB one of two.
        let is_shorter = (1..period)
            .any(|part| period.is_multiple_of(part) && self.matches[part - 1] >= matches);
        let found = 1 + matches / u32::try_from(period).unwrap_or(u32::MAX);
        let calls = u8::try_from(period).unwrap_or(u8::MAX);
        (found >= rounds && !is_shorter).then_some((calls, found))
    }
}
