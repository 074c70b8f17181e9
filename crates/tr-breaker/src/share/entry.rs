//! The text of a decision in Redis: `publish.lua` writes it, [`Entry::read`] reads it.
use crate::{
    decision::{Decision, State},
    settings::Mode,
};
use std::time::Duration;

/// A decision as Redis keeps it: `1 EPOCH ORIGIN AT UNTIL STATE MODE`, times in microseconds of the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Grows with each decision about a breaker.
    pub(crate) epoch: u64,
    /// We wrote it ourselves.
    pub(crate) mine: bool,
    /// How long ago it was decided.
    pub(crate) age: Duration,
    pub(crate) decision: Decision,
}

/// Why an entry says nothing to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// A later version of this crate wrote it.
    #[error("written by a newer version")]
    Newer,
    #[error("unknown format")]
    Garbled,
}

/// The version of what is written; in the keys too, so that versions that don't understand each other don't meet.
pub(crate) const VERSION: &str = "1";

/// The word for each order, and for none.
const ORDERS: [(&str, Option<Mode>); 4] = [
    ("set", None),
    ("enforce", Some(Mode::Enforce)),
    ("shadow", Some(Mode::Shadow)),
    ("disabled", Some(Mode::Disabled)),
];

impl Entry {
    /// What `text` says at the server's time `now`, to the process called `origin`.
    pub(crate) fn read(text: &str, origin: &str, now: u64) -> Result<Self, Unreadable> {
        let mut words = text.split(' ');
        let version: u64 = number(words.next())?;
        if version > 1 {
            return Err(Unreadable::Newer);
        }
        let epoch = number(words.next())?;
        let mine = words.next().ok_or(Unreadable::Garbled)? == origin;
        let (at, until) = (number(words.next())?, number(words.next())?);
        let micros = |from: u64, to: u64| Duration::from_micros(to.saturating_sub(from));
        let state = match words.next() {
            Some("closed") => State::Closed,
            Some("open") => State::Open { left: micros(now, until) },
            Some("forced") => State::Forced,
            _ => return Err(Unreadable::Garbled),
        };
        let word = words.next();
        let order = ORDERS.iter().find(|(known, _)| word == Some(*known));
        let (_, order) = *order.ok_or(Unreadable::Garbled)?;
        if version == 0 || epoch == 0 || words.next().is_some() {
            return Err(Unreadable::Garbled);
        }
        Ok(Self { epoch, mine, age: micros(at, now), decision: Decision { state, order } })
    }
}

impl Decision {
    /// The words for its state and its mode.
    pub(crate) fn words(&self) -> (&'static str, &'static str) {
        let state = match self.state {
            State::Closed => "closed",
            State::Open { .. } => "open",
            State::Forced => "forced",
        };
        let order = ORDERS.iter().find(|(_, order)| *order == self.order);
        (state, order.expect("each order has a word").0)
    }

    /// Until it is half open; nothing, unless it is open.
    pub(crate) const fn left(&self) -> Duration {
        match self.state {
            State::Open { left } => left,
            State::Closed | State::Forced => Duration::ZERO,
        }
    }
}

fn number(word: Option<&str>) -> Result<u64, Unreadable> {
    let word = word.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    word.and_then(|word| word.parse().ok()).ok_or(Unreadable::Garbled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_700_000_000_000_000;

    fn read(text: &str) -> Result<Entry, Unreadable> {
        Entry::read(text, "me", NOW)
    }

    #[test]
    fn an_entry_is_read_as_it_is_written() {
        let at = NOW - 2_000_000;
        let until = NOW + 3_000_000;
        assert_eq!(
            read(&format!("1 7 me {at} {until} open shadow")),
            Ok(Entry {
                epoch: 7,
                mine: true,
                age: Duration::from_secs(2),
                decision: Decision {
                    state: State::Open { left: Duration::from_secs(3) },
                    order: Some(Mode::Shadow),
                },
            })
        );
        let forced = read(&format!("1 8 you {until} {at} forced set")).unwrap();
        assert_eq!((forced.mine, forced.age), (false, Duration::ZERO), "a clock may go back");
        assert_eq!(forced.decision, Decision { state: State::Forced, order: None });
    }

    #[test]
    fn each_decision_has_words_that_are_read_again() {
        for state in [State::Closed, State::Open { left: Duration::ZERO }, State::Forced] {
            for order in [None, Some(Mode::Enforce), Some(Mode::Shadow), Some(Mode::Disabled)] {
                let decision = Decision { state, order };
                let (state, mode) = decision.words();
                let text = format!("1 1 me {NOW} {NOW} {state} {mode}");
                assert_eq!(read(&text).map(|entry| entry.decision), Ok(decision));
            }
        }
    }

    #[test]
    fn what_is_not_ours_is_told_apart() {
        assert_eq!(read("2 whatever it is"), Err(Unreadable::Newer));
        for text in [
            "",
            "1",
            "{\"epoch\":1}",
            "1 7 me 1 1 ajar set",
            "1 7 me 1 1 open",
            "1 7 me 1 1 open set more",
            "1 7 me 1 -1 open set",
            "1 +7 me 1 1 open set",
            "1 0 me 1 1 open set",
            "0 7 me 1 1 open set",
            "1 7 me 1 1 open loud",
            "1 99999999999999999999999 me 1 1 open set",
        ] {
            assert_eq!(read(text), Err(Unreadable::Garbled), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_read(text in ".{0,60}") {
            let _ = read(&text);
        }
    }
}
