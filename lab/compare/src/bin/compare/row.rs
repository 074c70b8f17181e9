//! A row: what is compared, and how it is measured.
use crate::{
    Options, files,
    scaling::{Threads, two_by_one},
};
use benches::{
    measure::{Effort, side_by_side},
    run::{Make, Run},
};
use tr_core::BoxError;
use tr_testkit::alloc;

/// One comparison.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    /// Whom ours is measured against, if anybody.
    pub(crate) peer: &'static str,
    pub(crate) target: Target,
    /// The target before this one, and why it changed.
    pub(crate) old: Option<(Target, &'static str)>,
    pub(crate) how: How,
}

/// What is aimed at.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// Ours ÷ the peer's.
    Ratio(f64),
    /// Ours ÷ the peer's, at least.
    AtLeast(f64),
    /// Ours alone.
    Most(f64),
    /// Nothing: it stands there to be compared with.
    Nothing,
}

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// Nanoseconds of both.
    Time(Make, Make),
    /// Nanoseconds of ours alone.
    OwnTime(Make),
    /// Allocations of both.
    Allocations(Make, Make),
    /// Allocations of ours alone.
    OwnAllocations(Make),
    /// Instructions of a case of the gate.
    Instructions(&'static str),
    /// Two threads ÷ one, where both use one service and where each has its own.
    Scaling(fn() -> Threads),
    /// Syncs of a SQLite file per call.
    Syncs,
    /// Real nanoseconds per call on a SQLite file.
    BesideBlocking,
    /// Real nanoseconds of both, with programs of their own.
    Real(fn(Effort) -> Result<Option<[f64; 2]>, BoxError>),
    /// Ours alone, in this unit.
    Counted(&'static str, fn(Effort) -> Result<Option<f64>, BoxError>),
    /// Real nanoseconds of ours alone.
    OwnReal(fn(Effort) -> Result<f64, BoxError>),
}

/// The result of a row.
pub(crate) struct Measured {
    pub(crate) row: Row,
    pub(crate) ours: Option<f64>,
    pub(crate) peer: Option<f64>,
    pub(crate) unit: &'static str,
}

impl Row {
    /// Keeps the target before this one, with the reason for the new one.
    pub(crate) const fn was(self, old: Target, why: &'static str) -> Self {
        Self { old: Some((old, why)), ..self }
    }

    pub(crate) fn measure(self, options: &Options) -> Result<Measured, BoxError> {
        let effort = options.effort();
        let (ours, peer, unit) = match self.how {
            How::Time(ours, peer) => {
                let [ours, peer] = side_by_side([ours(), peer()], effort);
                (Some(ours), Some(peer), "ns")
            }
            How::OwnTime(ours) => {
                let [ours] = side_by_side([ours()], effort);
                (Some(ours), None, "ns")
            }
            How::Allocations(ours, peer) => {
                (Some(allocations(ours())), Some(allocations(peer())), "allocations")
            }
            How::OwnAllocations(ours) => (Some(allocations(ours())), None, "allocations"),
            How::Instructions(case) => (options.instructions_of(case), None, "Ir"),
            How::Scaling(threads) => {
                let [together, apart] = two_by_one(&threads(), effort);
                (together, apart, "×")
            }
            How::Syncs => (Some(files::syncs_a_cycle(effort)?), None, "syncs"),
            How::BesideBlocking => {
                let [ours, peer] = files::beside_blocking(effort)?;
                (Some(ours), Some(peer), "ns")
            }
            How::Real(both) => match both(effort)? {
                Some([ours, peer]) => (Some(ours), Some(peer), "ns"),
                None => (None, None, "ns"),
            },
            How::Counted(unit, ours) => (ours(effort)?, None, unit),
            How::OwnReal(ours) => (Some(ours(effort)?), None, "ns"),
        };
        Ok(Measured { row: self, ours, peer, unit })
    }
}

impl Measured {
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (ours, peer) = (self.ours?, self.peer?);
        // The figures themselves show a quotient of zero.
        (peer > 0.0).then_some(ours / peer)
    }

    /// Whether the target is met; `None` without a figure or a target.
    pub(crate) fn is_met(&self) -> Option<bool> {
        match self.row.target {
            Target::Ratio(most) => self.ratio().map(|ratio| ratio <= most),
            Target::AtLeast(least) => self.ratio().map(|ratio| ratio >= least),
            Target::Most(most) => self.ours.map(|ours| ours <= most),
            Target::Nothing => None,
        }
    }
}

/// Allocations per operation.
fn allocations(run: Run) -> f64 {
    const TIMES: u64 = 10_000;
    let mut run = run.warm();
    alloc::count(|| run.times(TIMES)).count as f64 / TIMES as f64
}
