//! Retries, all driven in the same way.
mod ours;
mod peers;
mod scenarios;

pub(crate) use self::scenarios::section;
use crate::cell::Name;
use futures_util::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use tr_core::BoxError;

/// What one attempt comes to.
type Attempt = BoxFuture<'static, Result<(), BoxError>>;

/// The tool; each call is an attempt.
type Tool = Arc<dyn Fn() -> Attempt + Send + Sync>;

/// Retries that a budget has saved up at the start.
const SAVED: u32 = 10;

/// How retries are set up.
#[derive(Clone, Copy, Debug)]
struct Plan {
    attempts: u32,
    /// The first delay, doubled each time, with the peer's own jitter.
    base: Duration,
    /// How many retries each success pays for.
    budget: Option<f32>,
}

/// Calls a tool until it succeeds or its attempts are used up.
type Retrier = Arc<dyn Fn(Tool) -> Attempt + Send + Sync>;

/// Retries under test; what they cannot be set up as, they say.
struct Subject {
    name: Name,
    make: fn(&Plan) -> Result<Retrier, &'static str>,
    /// Why it has no place for a delay that the error asks for.
    hints: Result<(), &'static str>,
}

const SUBJECTS: [Subject; 4] = [
    Subject { name: Name::of("tr-retry", ""), make: ours::retrier, hints: Ok(()) },
    Subject {
        name: Name::of("tower-resilience", "retry"),
        make: peers::tower_resilience,
        hints: Ok(()),
    },
    Subject {
        name: Name::of("tower", "retry"),
        make: peers::tower,
        hints: Err("left to one's own policy"),
    },
    Subject { name: Name::of("backon", ""), make: peers::backon, hints: Ok(()) },
];
