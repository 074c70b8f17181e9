//! The strongest match in a text so far: each match of the tables has a [`Rank`] and a [`Kind`].
use super::{Finding, Kind};
use crate::Ran;

/// Phrases of one kind.
pub(super) type Group = (Kind, &'static str);

/// How much a match is worth, most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// An identifier that is never there by accident.
    Exact,
    /// An HTTP status, the name of an exception.
    Named,
    /// A refusal that says what is wrong with the input.
    Refusal,
    /// What happened, in so many words.
    Failure,
    /// What happened, in words that many failures share.
    Broad,
    /// Why a call was refused, vaguely.
    Vague,
    /// No more than a hint.
    Hint,
}

/// The strongest match in a text, and the HTTP status that the text names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    best: Option<(Rank, Kind)>,
    status: Option<u16>,
}

impl Scan {
    pub(super) const fn of(rank: Rank, kind: Kind, status: Option<u16>) -> Self {
        Self { best: Some((rank, kind)), status }
    }

    /// The stronger of both; the first, if they are equal.
    pub(super) fn or(mut self, other: Self) -> Self {
        if let Some((rank, kind)) = other.best {
            self.offer(rank, kind);
        }
        self.status = self.status.or(other.status);
        self
    }

    /// Takes another match, if it is stronger.
    pub(super) fn offer(&mut self, rank: Rank, kind: Kind) {
        if self.best.is_none_or(|(best, _)| rank < best) {
            self.best = Some((rank, kind));
        }
    }

    /// Notes a status that the text names; the first one counts.
    pub(super) fn name_status(&mut self, status: u16) {
        self.status = self.status.or(Some(status));
    }

    /// Counts as at least `least`.
    pub(super) fn at_least(mut self, least: Rank) -> Self {
        if let Some((rank, _)) = &mut self.best {
            *rank = least.min(*rank);
        }
        self
    }

    pub(super) fn finding(self) -> Option<Finding<'static>> {
        let (rank, kind) = self.best?;
        let mut found = Finding::of(kind).status(self.status);
        // Words and codes are no evidence that nothing was done, not even those of our own layers.
        if rank == Rank::Hint || found.end.ran == Ran::No {
            found.end.ran = Ran::Unknown;
        }
        Some(found)
    }
}
