//! The loop guard, which reads what a model sees of its calls.
use super::GOOD;
use crate::{
    call,
    run::{Comes, Run, note_leaf},
};
use std::{convert::Infallible, future::ready, hint::black_box};
use tower::{Layer, service_fn};
use tr_core::{Json, ToolCall, ToolOutcome};
use tr_loopguard::{LoopGuardLayer, Signals};

/// The loop guard around a success.
#[must_use]
pub fn success() -> Run {
    Run::service(Comes::Through, LoopGuardLayer::default().layer(call::Leaf), call::same())
}

/// A loop guard that looks at each answer, late in a turn of tens of thousands of calls. The answers
/// are empty.
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

/// The same with answers of 1 KiB.
///
/// # Panics
/// Never: the answer is JSON.
#[must_use]
pub fn answers() -> Run {
    let answer = ToolOutcome::success(Json::from_text(call::params()).expect("JSON"));
    let leaf = service_fn(move |call: ToolCall| {
        note_leaf();
        drop(black_box(call));
        ready(Ok::<_, Infallible>(answer.clone()))
    });
    let layer = LoopGuardLayer::builder().signals(Signals::default()).build().expect(GOOD);
    Run::service(Comes::Through, layer.layer(leaf), call::various())
}
