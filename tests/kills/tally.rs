//! What happened in all rounds.
use crate::round::Victim;
use std::{collections::BTreeMap, fmt, time::Duration};

/// Counts, summed over rounds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) calls: u64,
    /// Processes that were killed, by what they were and when.
    pub(crate) kills: BTreeMap<(Victim, &'static str), u64>,
    /// Payments by how their client knows them in the end, and how often they were made.
    pub(crate) ends: BTreeMap<(&'static str, usize), u64>,
    /// Answers that had been read before a kill, and were given again after it.
    pub(crate) kept: u64,
    /// Requests that were in flight as their server was killed, and were answered by their guard.
    pub(crate) answered: u64,
    /// Answers by which a call did not run, and was sent again.
    pub(crate) not_run: u64,
    /// The longest that a guard's start and its answer to a call took after a kill.
    pub(crate) longest: Duration,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.calls += other.calls;
        for (kind, count) in &other.kills {
            *self.kills.entry(*kind).or_default() += count;
        }
        for (end, count) in &other.ends {
            *self.ends.entry(*end).or_default() += count;
        }
        self.kept += other.kept;
        self.answered += other.answered;
        self.not_run += other.not_run;
        self.longest = self.longest.max(other.longest);
    }

    /// A proof in which nothing happened proves nothing.
    pub(crate) fn assert_meaningful(&self, rounds: u64) {
        assert_eq!(self.rounds, rounds);
        for victim in Victim::ALL {
            let killed = self.kills.keys().any(|(one, _)| *one == victim);
            assert!(killed, "no {victim:?} was killed:\n{self}");
        }
        for end in [("paid", 1), ("unknown", 1), ("unknown", 0)] {
            assert!(self.ends.contains_key(&end), "no payment ended as {end:?}:\n{self}");
        }
        assert!(self.kept > 0 && self.answered > 0, "{self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rounds, {} payments", self.rounds, self.calls)?;
        for ((victim, when), count) in &self.kills {
            writeln!(f, "killed {victim:?} {when}: {count}")?;
        }
        for ((end, made), count) in &self.ends {
            writeln!(f, "{end}, made {made} times: {count}")?;
        }
        writeln!(f, "answers given again after a kill: {}", self.kept)?;
        writeln!(f, "in flight as the server was killed, and answered: {}", self.answered)?;
        writeln!(f, "did not run, and sent again: {}", self.not_run)?;
        write!(f, "longest from a start after a kill to all answers: {:?}", self.longest)
    }
}
