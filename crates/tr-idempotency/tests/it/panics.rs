//! Panics in the users' code: no call runs twice, and no caller waits for ever.
use crate::support::{MINUTE, SECOND, settle};
use std::{
    io::Write,
    panic::panic_any,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    time::Duration,
};
use tower::{ServiceBuilder, ServiceExt};
use tr_core::{
    BoxError, Classification, DedupeKey, DefaultPolicy, Effect, End, InvalidKey, KeyRef, Ran,
    RecordRef, Replay, RequestPolicy, ResponsePolicy, StoreResponse, Verdict,
    canonical::{Digest, Key},
};
use tr_idempotency::{
    Builder, Counts, Filter, IdempotencyLayer,
    store::{Memory, Persist},
};
use tr_testkit::tool::{Handle, Scripted, Step};

/// What panics next, once.
#[derive(Clone, Debug, Default)]
struct Trap(Arc<AtomicU8>);

const CODEC: u8 = 1;
const CLASSIFY: u8 = 2;
const NOTES: u8 = 3;
const BYTES: u8 = 4;
const DROP: u8 = 5;
/// And so many copies later.
const CLONE: u8 = 10;

impl Trap {
    fn set(&self, here: u8) {
        self.0.store(here, Relaxed);
    }

    /// A copy is made.
    fn count(&self) {
        if self.0.load(Relaxed) > CLONE && self.0.fetch_sub(1, Relaxed) == CLONE + 1 {
            panic_any("trapped");
        }
    }

    fn pass(&self, here: u8) {
        if self.0.compare_exchange(here, 0, Relaxed, Relaxed).is_ok() {
            panic_any("trapped");
        }
    }
}

#[derive(Clone)]
struct Pay(Trap);

#[derive(Clone, Debug)]
struct Paid(usize, Trap);

#[derive(Debug)]
struct Kept(usize, Trap);

impl Clone for Kept {
    fn clone(&self) -> Self {
        self.1.count();
        Self(self.0, self.1.clone())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.1.pass(DROP);
    }
}

impl Persist for Kept {
    fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError> {
        self.1.pass(BYTES);
        Ok(write!(out, "{}", self.0)?)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
        Ok(Self(std::str::from_utf8(bytes)?.parse()?, Trap::default()))
    }
}

impl RequestPolicy<Pay> for DefaultPolicy {
    fn key<'r>(&self, _: &'r Pay) -> KeyRef<'r> {
        KeyRef::new("pay")
    }

    fn effect(&self, _: &Pay) -> Effect {
        Effect::Mutating
    }

    fn idempotency_key(&self, _: &Pay) -> Result<Option<DedupeKey>, InvalidKey> {
        Ok(Some(DedupeKey { key: Key::from_bytes([1; 32]), digest: Digest::of_bytes([]) }))
    }

    fn record<'r>(&self, pay: &'r Pay) -> RecordRef<'r> {
        pay.0.pass(NOTES);
        RecordRef::default()
    }
}

impl ResponsePolicy<Paid> for DefaultPolicy {
    fn classify<'r>(&self, end: End<'r, Paid>) -> Classification<'r> {
        end.map_or_else(
            |error| tr_core::classify::error(error).end,
            |paid| {
                paid.1.pass(CLASSIFY);
                Classification::SUCCESS
            },
        )
    }
}

impl StoreResponse<Paid> for DefaultPolicy {
    type Stored = Kept;

    fn store(&self, paid: &Paid) -> Option<Kept> {
        paid.1.pass(CODEC);
        Some(Kept(paid.0, paid.1.clone()))
    }

    fn load(&self, kept: Kept, _: Replay) -> Paid {
        Paid(kept.0, kept.1.clone())
    }
}

type Service = tr_idempotency::Idempotency<Scripted<Pay, Paid>, DefaultPolicy, Kept>;

fn guarded(
    builder: Builder<DefaultPolicy, Kept>,
    takes: Duration,
) -> (Service, tr_idempotency::Handle<Kept>, Handle<Pay>) {
    let tool = Scripted::by(move |n, pay: &Pay| {
        let paid = Step::Ok(Paid(n, pay.0.clone()));
        if takes.is_zero() { paid } else { Step::after(takes, paid) }
    });
    let asked = tool.handle();
    let layer = builder.build().unwrap();
    let records = layer.handle();
    (ServiceBuilder::new().layer(layer).service(tool), records, asked)
}

fn builder() -> Builder<DefaultPolicy, Kept> {
    IdempotencyLayer::builder_for()
}

async fn ask(service: &Service, trap: &Trap) -> tokio::task::JoinHandle<Result<Paid, BoxError>> {
    let task = tokio::spawn(service.clone().oneshot(Pay(trap.clone())));
    settle().await;
    task
}

/// Code, and whether the tool ran.
fn refused(end: Result<Paid, BoxError>) -> (String, Ran, Verdict) {
    let error = end.unwrap_err();
    let facts = tr_core::failure_info(&*error).unwrap();
    (facts.code().to_owned(), facts.ran(), facts.verdict())
}

fn unknown() -> (String, Ran, Verdict) {
    ("outcome_unknown".into(), Ran::Unknown, Verdict::Permanent)
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_cannot_be_looked_at_is_not_run_again() {
    for here in [CODEC, CLASSIFY] {
        for takes in [Duration::ZERO, SECOND] {
            for stored in [false, true] {
                let builder = if stored { builder().store(Memory::new()) } else { builder() };
                let (service, _, asked) = guarded(builder, takes);
                let trap = Trap::default();
                trap.set(here);
                let first = ask(&service, &trap).await;
                let second = ask(&service, &trap).await;
                assert!(first.await.unwrap_err().is_panic());
                assert_eq!(refused(second.await.unwrap()), unknown());
                tokio::time::sleep(MINUTE).await;
                let third = ask(&service, &trap).await.await.unwrap();
                assert_eq!(refused(third), unknown(), "{here} {takes:?} {stored}");
                assert_eq!((asked.calls(), asked.breaches()), (1, vec![]));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_answer_that_cannot_be_copied_is_told() {
    // The first copy is made under the table's lock, the others for each waiter.
    for copies in [1, 2, 3] {
        for stored in [false, true] {
            let builder = if stored { builder().store(Memory::new()) } else { builder() };
            let (service, records, asked) = guarded(builder.capacity(1), SECOND);
            let trap = Trap::default();
            let first = ask(&service, &trap).await;
            let waiters = [ask(&service, &trap).await, ask(&service, &trap).await];
            trap.set(CLONE + copies);
            assert!(first.await.unwrap_err().is_panic());
            for waiter in waiters {
                let told = tokio::time::timeout(MINUTE, waiter).await.expect("it is told");
                match told.unwrap() {
                    Ok(paid) => assert_eq!(paid.0, 0),
                    error => assert_eq!(refused(error), unknown()),
                }
            }
            assert_eq!(asked.calls(), 1, "{copies} {stored}");
            // The table still counts what it may forget.
            let _ = records.flush(Filter::Key(&Key::from_bytes([1; 32])));
            let _ = records.clear(&Key::from_bytes([1; 32]));
            assert_eq!(records.counts(), Counts::default());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_without_notes_does_not_stay_in_flight() {
    let (service, records, asked) = guarded(builder(), Duration::ZERO);
    let trap = Trap::default();
    for _ in 0..2 {
        trap.set(NOTES);
        assert!(ask(&service, &trap).await.await.unwrap_err().is_panic());
        assert_eq!((records.counts().inflight, asked.calls()), (0, 0));
        // What was withdrawn before it started may be claimed again.
        asked.set_capacity(0);
        let held = ask(&service, &trap).await;
        assert!(records.cancel(&Key::from_bytes([1; 32])));
        assert_eq!(refused(held.await.unwrap()).1, Ran::No);
        asked.set_capacity(1);
    }
    assert_eq!(ask(&service, &trap).await.await.unwrap().unwrap().0, 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_written_leaves_unknown() {
    for takes in [Duration::ZERO, SECOND] {
        let (service, _, asked) = guarded(builder().store(Memory::new()), takes);
        let trap = Trap::default();
        trap.set(BYTES);
        let first = ask(&service, &trap).await;
        let second = ask(&service, &trap).await;
        assert!(first.await.unwrap_err().is_panic());
        assert_eq!(refused(second.await.unwrap()), unknown());
        let third = tokio::time::timeout(SECOND, ask(&service, &trap).await).await;
        assert_eq!(refused(third.expect("at once").unwrap()), unknown());
        assert_eq!((asked.calls(), asked.breaches()), (1, vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_answer_that_cannot_be_dropped_leaves_no_claim() {
    let (service, records, asked) = guarded(builder().done_ttl(SECOND), Duration::ZERO);
    let trap = Trap::default();
    assert_eq!(ask(&service, &trap).await.await.unwrap().unwrap().0, 0);
    tokio::time::sleep(MINUTE).await;
    trap.set(DROP);
    assert!(ask(&service, &trap).await.await.unwrap_err().is_panic());
    assert_eq!((records.counts().inflight, asked.calls()), (0, 1));
    assert_eq!(ask(&service, &trap).await.await.unwrap().unwrap().0, 1);
}
