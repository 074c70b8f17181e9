//! Our layers at the work that is measured.
pub mod breaker;
pub mod idempotency;
pub mod integrity;
pub mod keys;
pub mod loopguard;
pub mod retry;
pub mod stack;
pub mod telemetry;
pub mod timeout;

use crate::{
    kind::Kind,
    run::{Comes, Run},
};

/// Records that are kept, ours and the peers'.
pub const RECORDS: usize = 10_000;

/// Why settings are not refused.
const GOOD: &str = "good settings";

/// The leaf alone.
#[must_use]
pub fn bare<K: Kind>() -> Run {
    Run::service(Comes::Through, K::Leaf::default(), K::same())
}
