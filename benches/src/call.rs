//! A tool call with 1 KiB of params.
use crate::{
    kind::{Keyed, Kind},
    run::note_leaf,
    small::nth_key,
};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    hint::black_box,
    task::{Context, Poll},
};
use tower::Service;
use tr_core::{
    DedupeKey, DefaultPolicy, Effect, Params, ToolCall, ToolOutcome,
    canonical::{Digest, Key},
};

/// 1 KiB of nested params, as a model writes them.
///
/// # Panics
/// If it is not 1 KiB: then its name would be wrong.
#[must_use]
pub fn params() -> String {
    let legs: Vec<_> = (0..6)
        .map(|leg| {
            serde_json::json!({
                "to": {"city": "Lisbon", "airport": "LIS", "terminal": leg},
                "from": {"city": "São Paulo", "airport": "GRU"},
                "date": "2026-11-21T10:00:00Z",
                "passengers": leg + 1,
            })
        })
        .collect();
    let params = |note: &str| {
        serde_json::json!({
            "query": {"legs": legs, "flexible": true, "budget": 1234.5},
            "filters": ["nonstop", "carry-on \"included\"", null],
            "note": note,
        })
        .to_string()
    };
    let missing = 1024 - params("").len();
    let params = params(&"x".repeat(missing));
    assert_eq!(params.len(), 1024);
    params
}

/// A call without a key.
///
/// # Panics
/// Never: the params are JSON.
#[must_use]
pub fn plain() -> ToolCall {
    ToolCall::new("flight_search", Params::from_text(params()).expect("JSON"))
        .session("s-1")
        .turn("t-1")
}

/// The same call each time; a copy is a reference count.
pub fn same() -> impl FnMut() -> ToolCall {
    from(0)
}

/// Calls with the one key that `n` stands for.
pub fn from(n: u64) -> impl FnMut() -> ToolCall {
    let mut call = plain();
    call.parts_mut().idempotency.id = Some(nth_id(n));
    move || call.clone()
}

/// Calls with keys of their own, from `n` on.
pub fn unique(mut n: u64) -> impl FnMut() -> ToolCall {
    let mut call = plain();
    move || {
        n += 1;
        // Two calls share no parts, so nothing is copied here.
        call.parts_mut().idempotency.id = Some(nth_id(n));
        call.clone()
    }
}

/// Calls with keys of their own, as an agent makes them: nothing of them is known before they are called.
///
/// # Panics
/// Never: the params are JSON.
pub fn new() -> impl FnMut() -> ToolCall {
    let params = Params::from_text(params()).expect("JSON");
    let mut n = 0_u64;
    move || {
        n += 1;
        ToolCall::new("flight_search", params.clone())
            .session("s-1")
            .turn("t-1")
            .idempotency_key(format!("order-{n}"))
    }
}

/// Calls that only read, with 64 different params in turn: no two neighbors are alike.
///
/// # Panics
/// Never: the params are JSON.
pub fn various() -> impl FnMut() -> ToolCall {
    let call = |n: u64| {
        let params = format!(r#"{{"page": {n}, "of": {}}}"#, params());
        ToolCall::new("flight_search", Params::from_text(params).expect("JSON"))
            .effect(Effect::ReadOnly)
            .session("s-1")
            .turn("t-1")
    };
    let mut calls: Vec<_> = (0..64).map(call).collect();
    let mut n = 0;
    move || {
        n += 1;
        let call = &mut calls[n as usize % 64];
        call.parts_mut().idempotency.id = Some(nth_id(n));
        call.clone()
    }
}

/// The key of a call that has one.
///
/// # Panics
/// If it has none.
#[must_use]
pub fn key(call: &ToolCall) -> [u8; 32] {
    *call.parts().idempotency.id.as_ref().expect("a call with a key").key.as_bytes()
}

fn nth_id(n: u64) -> DedupeKey {
    DedupeKey { key: Key::from_bytes(nth_key(n)), digest: Digest::from_bytes(nth_key(n)) }
}

/// Succeeds at once and says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaf;

impl Service<ToolCall> for Leaf {
    type Response = ToolOutcome;
    type Error = Infallible;
    type Future = Ready<Result<ToolOutcome, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, call: ToolCall) -> Self::Future {
        note_leaf();
        drop(black_box(call));
        ready(Ok(ToolOutcome::default()))
    }
}

impl Kind for Leaf {
    const NAME: &'static str = "tool call";

    type Request = ToolCall;
    type Answer = ToolOutcome;
    type Error = Infallible;
    type Leaf = Self;
    type Policy = DefaultPolicy;

    fn same() -> impl FnMut() -> ToolCall + 'static {
        same()
    }
}

impl Keyed for Leaf {
    fn unique() -> impl FnMut() -> ToolCall + 'static {
        unique(0)
    }

    fn key(call: &ToolCall) -> [u8; 32] {
        key(call)
    }
}
