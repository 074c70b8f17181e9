//! The loop guard, which reads what a model sees of its calls.
use super::GOOD;
use crate::{
    call,
    run::{Comes, Run},
};
use tower::Layer;
use tr_loopguard::{LoopGuardLayer, Signals};

/// The loop guard around a success.
#[must_use]
pub fn success() -> Run {
    Run::service(Comes::Through, LoopGuardLayer::default().layer(call::Leaf), call::same())
}

/// A loop guard that looks at each answer, late in a turn of tens of thousands of calls.
///
/// # Panics
/// Never: the settings are good.
#[must_use]
pub fn signals() -> Run {
    let layer = LoopGuardLayer::builder().signals(Signals::default()).build().expect(GOOD);
    Run::service(Comes::Through, layer.layer(call::Leaf), call::various())
}

/// The same early in a turn.
#[must_use]
pub fn signals_early() -> Run {
    signals().warm_after(128)
}
