//! Where an outcome comes from: a run, a shared run or a record.
use crate::{MatchedOn, Replay};
use std::time::Duration;

/// Whether an outcome is a replay, and of what; and whether it was recorded.
#[derive(Clone, Copy, Default)]
pub(super) struct Provenance {
    fingerprint: [u8; 8],
    /// How old the recorded outcome is, up to a century.
    secs: u32,
    nanos: u32,
    /// What it replays; none is a run.
    matched_on: Option<MatchedOn>,
    pub(super) unrecorded: bool,
    /// No record keeps it.
    pub(super) unkept: bool,
    /// Its content was searched for an envelope.
    pub(super) searched: bool,
}

impl Provenance {
    pub(super) const fn is_replay(self) -> bool {
        self.matched_on.is_some()
    }

    pub(super) const fn replay(self) -> Option<Replay> {
        let Some(matched_on) = self.matched_on else { return None };
        let age = Duration::new(self.secs as u64, self.nanos);
        Some(Replay { matched_on, age, fingerprint: self.fingerprint })
    }

    pub(super) const fn replayed(self, replay: Replay) -> Self {
        let Replay { matched_on, age, fingerprint } = replay;
        let secs = age.as_secs();
        let secs = if secs > u32::MAX as u64 { u32::MAX } else { secs as u32 };
        Self { fingerprint, secs, nanos: age.subsec_nanos(), matched_on: Some(matched_on), ..self }
    }
}

crate::debug_parts! { Provenance, |it| replay = it.replay(), unrecorded = it.unrecorded }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BoxError, ToolOutcome};
    use std::task::Poll;

    #[test]
    fn a_replay_comes_back() {
        for matched_on in [MatchedOn::Inflight, MatchedOn::Completed] {
            for age in [Duration::ZERO, Duration::from_nanos(86_399_999_999_999), Duration::MAX] {
                let provenance =
                    Provenance::default().replayed(Replay { matched_on, age, fingerprint: [7; 8] });
                let back = provenance.replay().unwrap();
                assert_eq!((back.matched_on, back.fingerprint), (matched_on, [7; 8]));
                assert_eq!(back.age, age.min(Duration::new(u32::MAX.into(), 999_999_999)));
            }
        }
        assert_eq!(Provenance::default().replay(), None);
    }

    #[test]
    fn being_a_replay_and_being_recorded_are_two_things() {
        let replay =
            Replay { matched_on: MatchedOn::Completed, age: Duration::ZERO, fingerprint: [0; 8] };
        let mut outcome = ToolOutcome::default();
        outcome.set_unrecorded();
        let outcome = outcome.replayed(replay);
        assert!(outcome.from_cache() && !outcome.recorded());
        assert!(ToolOutcome::default().replayed(replay).recorded());
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn an_outcome_takes_four_words_wherever_it_goes() {
        assert_eq!(size_of::<Poll<Option<Result<ToolOutcome, BoxError>>>>(), 32);
    }
}
