//! A small `Copy` request with answers of its own.
use crate::{
    kind::{Keyed, Kind},
    run::note_leaf,
};
use std::{
    error::Error,
    fmt,
    future::{Ready, ready},
    hint::black_box,
    task::{Context, Poll},
};
use tower::Service;
use tr_core::{
    Classification, CloneRequest, DedupeKey, Effect, End, InvalidKey, KeyRef, Ran, Replay,
    RequestPolicy, ResponsePolicy, StoreResponse, Verdict,
    canonical::{Digest, Key},
    internal::CoarseInstant,
};

/// A request of 40 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Small {
    /// By which a repeat is recognized.
    pub key: [u8; 32],
    /// What the leaf answers.
    pub id: u64,
}

impl Small {
    /// The same request each time.
    #[must_use]
    pub const fn same() -> Self {
        Self { key: [7; 32], id: 1 }
    }

    /// The `n`th of many with keys of their own.
    #[must_use]
    pub fn nth(n: u64) -> Self {
        Self { key: nth_key(n), id: 1 }
    }
}

/// 32 bytes that look like a hash and differ for each `n`.
#[must_use]
pub fn nth_key(n: u64) -> [u8; 32] {
    let mut key = [7; 32];
    key[..8].copy_from_slice(&(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    key
}

/// A counter of requests with keys of their own.
pub fn unique() -> impl FnMut() -> Small {
    let mut n = 0;
    move || {
        n += 1;
        Small::nth(n)
    }
}

/// An error of the leaf's, which always succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl Error for Failed {}

/// Succeeds at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaf;

impl Leaf {
    #[inline(never)]
    fn answer(self, request: Small) -> Result<u64, Failed> {
        note_leaf();
        Ok(black_box(request.id))
    }
}

impl Service<Small> for Leaf {
    type Response = u64;
    type Error = Failed;
    type Future = Ready<Result<u64, Failed>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Small) -> Self::Future {
        ready(self.answer(request))
    }
}

impl Kind for Leaf {
    const NAME: &'static str = "40 bytes";

    type Request = Small;
    type Answer = u64;
    type Error = Failed;
    type Leaf = Self;
    type Policy = SmallPolicy;

    fn same() -> impl FnMut() -> Small + 'static {
        Small::same
    }
}

impl Keyed for Leaf {
    fn unique() -> impl FnMut() -> Small + 'static {
        unique()
    }

    fn key(request: &Small) -> [u8; 32] {
        request.key
    }
}

/// What our layers want to know of a [`Small`] and of what it comes to.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmallPolicy;

impl RequestPolicy<Small> for SmallPolicy {
    #[inline]
    fn key<'r>(&self, _: &'r Small) -> KeyRef<'r> {
        KeyRef::hashed(0x9E37_79B9_7F4A_7C15, "bench")
    }

    #[inline]
    fn effect(&self, _: &Small) -> Effect {
        Effect::ReadOnly
    }

    #[inline]
    fn idempotency_key(&self, request: &Small) -> Result<Option<DedupeKey>, InvalidKey> {
        let digest = Digest::from_bytes(request.key);
        Ok(Some(DedupeKey { key: Key::from_bytes(request.key), digest }))
    }
}

impl ResponsePolicy<u64> for SmallPolicy {
    #[inline]
    fn classify<'r>(&self, end: End<'r, u64>) -> Classification<'r> {
        match end {
            Ok(_) => Classification::SUCCESS,
            Err(_) => Classification::new(Verdict::TRANSIENT, Ran::Yes, "failed"),
        }
    }
}

impl CloneRequest<Small> for SmallPolicy {
    #[inline]
    fn clone_request(&self, request: &Small) -> Option<Small> {
        Some(*request)
    }
}

/// The same answers for requests that carry this time.
#[derive(Clone, Copy, Debug)]
pub struct Stamped(pub CoarseInstant);

impl RequestPolicy<Small> for Stamped {
    #[inline]
    fn key<'r>(&self, request: &'r Small) -> KeyRef<'r> {
        SmallPolicy.key(request)
    }

    #[inline]
    fn effect(&self, request: &Small) -> Effect {
        SmallPolicy.effect(request)
    }

    #[inline]
    fn stamp(&self, _: &Small) -> Option<CoarseInstant> {
        Some(self.0)
    }
}

impl ResponsePolicy<u64> for Stamped {
    #[inline]
    fn classify<'r>(&self, end: End<'r, u64>) -> Classification<'r> {
        SmallPolicy.classify(end)
    }
}

/// The same answers, with a key for each [`id`](Small::id).
#[derive(Clone, Copy, Debug)]
pub struct KeyedById;

impl RequestPolicy<Small> for KeyedById {
    #[inline]
    fn key<'r>(&self, request: &'r Small) -> KeyRef<'r> {
        KeyRef::hashed(request.id.wrapping_mul(0x9E37_79B9_7F4A_7C15), "bench")
    }
}

impl ResponsePolicy<u64> for KeyedById {
    #[inline]
    fn classify<'r>(&self, end: End<'r, u64>) -> Classification<'r> {
        SmallPolicy.classify(end)
    }
}

impl StoreResponse<u64> for SmallPolicy {
    type Stored = u64;

    #[inline]
    fn store(&self, answer: &u64) -> Option<u64> {
        Some(*answer)
    }

    #[inline]
    fn load(&self, stored: u64, _: Replay) -> u64 {
        stored
    }
}
