//! What happened in all rounds.
use crate::{call::Call, round::Victim, shop::Way};
use std::{collections::BTreeMap, fmt, time::Duration};

/// Counts, summed over rounds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) ways: BTreeMap<Way, u64>,
    pub(crate) calls: u64,
    /// Processes that were killed, by what they were and when.
    pub(crate) kills: BTreeMap<(Victim, &'static str), u64>,
    /// Those of them between a payment and its answer.
    pub(crate) between: BTreeMap<Victim, u64>,
    /// Payments by how their client knows them in the end, and how often they were made.
    pub(crate) ends: BTreeMap<(&'static str, usize), u64>,
    /// Answers that had been read before a kill, and were given again after it.
    pub(crate) kept: u64,
    /// Requests that were in flight as their server was killed, and were answered by their guard.
    pub(crate) answered: u64,
    /// Calls without an ID that were sent again after a cut, and answered; and so with the same bytes.
    pub(crate) joined: [u64; 2],
    /// Requests of a session that the server had lost.
    pub(crate) lost_sessions: u64,
    /// Rounds with two guards on the same records.
    pub(crate) pairs: u64,
    /// Answers by which a call did not run, and was sent again.
    pub(crate) not_run: u64,
    /// The longest that a guard's start and its answer to a call took after a kill.
    pub(crate) longest: Duration,
}

impl Tally {
    pub(crate) fn of(way: Way, calls: usize) -> Self {
        let ways = [(way, 1)].into();
        Self { rounds: 1, ways, calls: calls as u64, ..Self::default() }
    }

    /// Takes in how a payment ended, and says what is wrong with it.
    pub(crate) fn end(
        &mut self,
        call: &Call,
        end: &'static str,
        made: usize,
    ) -> Result<(), String> {
        let right = if call.read.is_some() { made == 1 } else { made <= 1 };
        if !right {
            return Err(format!("{} was made {made} times, and ended as {end}", call.order));
        }
        *self.ends.entry((end, made)).or_default() += 1;
        Ok(())
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.calls += other.calls;
        for (way, count) in &other.ways {
            *self.ways.entry(*way).or_default() += count;
        }
        for (victim, count) in &other.between {
            *self.between.entry(*victim).or_default() += count;
        }
        for (sum, count) in self.joined.iter_mut().zip(other.joined) {
            *sum += count;
        }
        self.lost_sessions += other.lost_sessions;
        self.pairs += other.pairs;
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
            let hit = self.between.get(&victim).is_some_and(|count| count * 20 > self.rounds);
            assert!(
                hit,
                "too few {victim:?} were killed between a payment and its answer:\n{self}"
            );
        }
        for end in [("paid", 1), ("unknown", 1), ("unknown", 0)] {
            assert!(self.ends.contains_key(&end), "no payment ended as {end:?}:\n{self}");
        }
        assert!(self.kept > 0 && self.answered > 0, "{self}");
    }

    /// As above, of what only HTTP has.
    pub(crate) fn assert_meaningful_over_http(&self) {
        for way in Way::OVER_HTTP {
            assert!(self.ways.contains_key(&way), "no round over {way:?}:\n{self}");
        }
        let [again, same] = self.joined;
        assert!(again > 0 && self.lost_sessions > 0 && self.pairs > 0, "{self}");
        assert!(same > 0 || self.rounds < 1_000, "{self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rounds, {} payments", self.rounds, self.calls)?;
        for ((victim, when), count) in &self.kills {
            writeln!(f, "killed {victim:?} {when}: {count}")?;
        }
        for (way, count) in &self.ways {
            writeln!(f, "{way:?}: {count} rounds")?;
        }
        for (victim, count) in &self.between {
            writeln!(f, "killed {victim:?} between a payment and its answer: {count}")?;
        }
        let [again, same] = self.joined;
        writeln!(
            f,
            "without an ID, cut, sent again and answered: {again}, {same} of them as the same bytes"
        )?;
        writeln!(
            f,
            "requests of a lost session: {}, rounds with two guards: {}",
            self.lost_sessions, self.pairs
        )?;
        for ((end, made), count) in &self.ends {
            writeln!(f, "{end}, made {made} times: {count}")?;
        }
        writeln!(f, "answers given again after a kill: {}", self.kept)?;
        writeln!(f, "in flight as the server was killed, and answered: {}", self.answered)?;
        writeln!(f, "did not run, and sent again: {}", self.not_run)?;
        write!(f, "longest from a start after a kill to all answers: {:?}", self.longest)
    }
}
