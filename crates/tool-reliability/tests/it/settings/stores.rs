//! What is said of a store of records, which the program gives, and of its probe.
use super::{
    bench::{Group, bench, ms, rows},
    records::keyed,
};
use std::{
    cell::RefCell,
    future::{pending, ready},
};
use tokio::time::sleep;
use tool_reliability::{
    Builder,
    config::Live,
    idempotency::store::{
        Change, ClaimRequest, Claimed, Listing, Memory, Probe, ProbeFuture, Query, RecordStore,
        Seen, StoreError, StoreFuture, Stored, UnresolvedCall,
    },
};
use tr_core::{Effect, ToolOutcome, canonical::Key};
use tr_testkit::{calls::answers, tool::Step};

pub(crate) const ROWS: &[Group] = rows! {
    once(Effect::ReadOnly), in away, "{}" {
        "idempotency.when_store_fails.read_only" = "\"refuse\"" => "ok" => "store_unavailable";
    }
    once(Effect::Idempotent), in away, "{}" {
        "idempotency.when_store_fails.idempotent" = "\"refuse\"" => "ok" => "store_unavailable";
    }
    once(Effect::Mutating), in away, "{}" {
        "idempotency.when_store_fails.mutating" = "\"run\"" => "store_unavailable" => "ok";
    }
    timed, in silent, "{}" {
        "idempotency.store_timeout_ms" = "50" => "store_unavailable after 3060 ms" => "store_unavailable after 210 ms";
    }
    forgotten, in in_memory, "{}" {
        "idempotency.replay_from_memory_ms" = "1000" => "ok, ok" => "ok, cached";
    }
    probed, in with_probe, r#"{"attempt_timeout_ms": 5}"# {
        "idempotency.probe_timeout_ms" = "50" => "outcome_unknown after 30000 ms" => "outcome_unknown after 50 ms";
    }
};

fn away(builder: Builder) -> Builder {
    builder.idempotency(|records| records.store(Away { answers: true }))
}

fn silent(builder: Builder) -> Builder {
    builder.idempotency(|records| records.store(Away { answers: false }))
}

thread_local! {
    /// The store of this test's stack.
    static STORE: RefCell<Option<Memory>> = const { RefCell::new(None) };
}

fn in_memory(builder: Builder) -> Builder {
    let memory = Memory::new();
    STORE.set(Some(memory.clone()));
    builder.idempotency(|records| records.store(memory))
}

fn with_probe(builder: Builder) -> Builder {
    builder.idempotency(|records| records.probe(Hanging))
}

async fn once(live: Live, effect: Effect) -> String {
    let bench = bench(live, [answers("ok")]);
    bench.run(keyed(&bench, effect)).await
}

async fn timed(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    bench.timed(keyed(&bench, Effect::Mutating)).await
}

/// A repeat of a call whose record another process has cleared.
async fn forgotten(live: Live) -> String {
    let bench = bench(live, [answers("ok")]);
    let one = bench.run(keyed(&bench, Effect::ReadOnly)).await;
    let store = STORE.take().unwrap();
    assert_eq!(store.flush(&Query::ALL).await.unwrap(), 1);
    format!("{one}, {}", bench.run(keyed(&bench, Effect::ReadOnly)).await)
}

async fn probed(live: Live) -> String {
    let bench = bench(live, [Step::Hang]);
    bench.run(keyed(&bench, Effect::Mutating).turn("1")).await;
    sleep(ms(10)).await;
    bench.timed(keyed(&bench, Effect::Mutating).turn("2")).await
}

#[derive(Debug)]
struct Hanging;

impl Probe<ToolOutcome> for Hanging {
    fn probe<'p>(&'p self, _: &'p UnresolvedCall) -> ProbeFuture<'p, ToolOutcome> {
        Box::pin(pending())
    }
}

/// A store that cannot be reached: it says so, or says nothing.
#[derive(Debug)]
struct Away {
    answers: bool,
}

impl Away {
    fn say<'s, T: Send + 's>(&self) -> StoreFuture<'s, T> {
        match self.answers {
            true => Box::pin(ready(Err(StoreError::unreachable("no route to it")))),
            false => Box::pin(pending()),
        }
    }
}

impl RecordStore for Away {
    fn claim<'s>(&'s self, _: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        self.say()
    }
    fn change<'s>(&'s self, _: &'s Key, _: Change<'s>) -> StoreFuture<'s, bool> {
        self.say()
    }
    fn read<'s>(&'s self, _: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        self.say()
    }
    fn watch<'s>(&'s self, _: &'s Key, _: Seen) -> StoreFuture<'s, ()> {
        self.say()
    }
    fn list<'s>(&'s self, _: &'s Query, _: usize, _: bool) -> StoreFuture<'s, Listing> {
        self.say()
    }
    fn count<'s>(&'s self, _: &'s Query) -> StoreFuture<'s, u64> {
        self.say()
    }
    fn flush<'s>(&'s self, _: &'s Query) -> StoreFuture<'s, u64> {
        self.say()
    }
    fn clear<'s>(&'s self, _: &'s Key) -> StoreFuture<'s, bool> {
        self.say()
    }
    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.say()
    }
    fn mark<'s>(&'s self, _: &'s [u8], _: &'s [u8]) -> StoreFuture<'s, Vec<u8>> {
        self.say()
    }
    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        self.say()
    }
}
