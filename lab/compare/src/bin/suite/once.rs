//! Running a call once, however often it is asked for; all driven in the same way.
mod ours;
mod peers;
mod scenarios;

pub(crate) use self::scenarios::section;
use crate::cell::Name;
use benches::small::Failed;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// The tool; each call is a run.
type Tool = Arc<dyn Fn() -> BoxFuture<'static, Result<u64, Failed>> + Send + Sync>;

/// What a caller gets.
type Answer = BoxFuture<'static, Result<u64, String>>;

/// Runs a tool under a key.
type Runner = Arc<dyn Fn(u64, Tool) -> Answer + Send + Sync>;

/// A request, for those that are layers.
struct Asked {
    key: u64,
    tool: Tool,
}

/// Under test.
struct Subject {
    name: Name,
    make: fn() -> Result<Runner, &'static str>,
}

/// Records that each has room for.
const CAPACITY: u16 = 100;

const SUBJECTS: [Subject; 6] = [
    Subject { name: Name::of("tr-idempotency", ""), make: ours::runner },
    Subject { name: Name::of("agent-effects", ""), make: peers::agent_effects },
    Subject { name: Name::of("tower-resilience", "cache + coalesce"), make: peers::coalesced },
    Subject { name: Name::of("tower-resilience", "cache"), make: peers::cached },
    Subject { name: Name::of("moka", "try_get_with"), make: peers::moka },
    Subject { name: Name::of("quick_cache", "get_or_insert_async"), make: peers::quick_cache },
];
