//! The store under test, and helpers for the cases.
use crate::{
    protocol::{Millis, State, Token, Ttls},
    store::{
        Change, ClaimRequest, Claimed, End, Grant, RecordStore, StoreFuture, Stored, StoredState,
    },
};
use std::{
    borrow::Cow,
    future::{Future, ready},
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tr_core::canonical::{Digest, Key};
pub(super) use tr_core::conformance::Verdict;

/// A store under test, and what the cases may do to it.
pub trait Subject: Sync {
    /// A client of the store.
    fn store(&self) -> Arc<dyn RecordStore>;

    /// Another client of the same records, as in another process; by default another
    /// [`store`](Self::store).
    fn another(&self) -> Arc<dyn RecordStore> {
        self.store()
    }

    /// A separate store with a capacity of `records`; `None` if that is impossible, which skips the
    /// case about it.
    fn with_room_for(&self, _records: usize) -> impl Future<Output = Option<Arc<dyn RecordStore>>> {
        ready(None)
    }

    /// Stops the store as a crash would and starts it again; `false` if that is impossible, which
    /// skips the case about it. Existing clients reconnect, or [`store`](Self::store) makes new
    /// ones.
    fn restart(&self) -> impl Future<Output = bool> {
        ready(false)
    }

    /// Lets time pass on the store's clock.
    fn pass(&self, time: Duration) -> impl Future<Output = ()>;

    /// The length of a short lease: short enough to wait for, long enough for a few requests. 200
    /// ms by default.
    fn short(&self) -> Duration {
        Duration::from_millis(200)
    }
}

/// Each [`Change`] as a method, for tests of a store.
pub trait RecordStoreExt: RecordStore {
    /// [`Change::Renew`]
    fn renew<'s>(&'s self, key: &'s Key, of: Token, lease: Millis) -> StoreFuture<'s, bool> {
        self.change(key, Change::Renew(of, lease))
    }

    /// [`Change::Release`]
    fn release<'s>(&'s self, key: &'s Key, owner: u64) -> StoreFuture<'s, bool> {
        self.change(key, Change::Release(owner))
    }

    /// [`Change::Finalize`]
    fn finalize<'s>(&'s self, key: &'s Key, of: Token, end: &'s End) -> StoreFuture<'s, bool> {
        self.change(key, Change::Finalize(of, Cow::Borrowed(end)))
    }

    /// [`Change::Settle`]
    fn settle<'s>(
        &'s self,
        key: &'s Key,
        of: Option<Token>,
        end: &'s End,
    ) -> StoreFuture<'s, bool> {
        self.change(key, Change::Settle(of, Cow::Borrowed(end)))
    }
}

impl<S: RecordStore + ?Sized> RecordStoreExt for S {}

/// Longer than any case takes, in milliseconds.
pub(super) const LONG: Millis = 3_600_000;

/// How long a case waits for what must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// One case: its store, another client, and its own names.
pub(super) struct Case<'s, S> {
    pub(super) subject: &'s S,
    pub(super) store: Arc<dyn RecordStore>,
    pub(super) other: Arc<dyn RecordStore>,
    seed: u64,
    owners: AtomicU64,
}

/// What each case is given.
pub(super) type Cx<'c, S> = &'c Case<'c, S>;

impl<'s, S: Subject> Case<'s, S> {
    pub(super) fn new(subject: &'s S) -> Self {
        Self {
            subject,
            store: subject.store(),
            other: subject.another(),
            seed: RandomState::new().hash_one("case"),
            owners: AtomicU64::new(1),
        }
    }

    /// The same case with new clients.
    pub(super) fn reconnected(&self) -> Self {
        Self {
            seed: self.seed,
            owners: self.owners.load(Relaxed).into(),
            ..Self::new(self.subject)
        }
    }

    pub(super) fn short(&self) -> Millis {
        crate::clock::millis(self.subject.short())
    }

    /// Lets a short lease end.
    pub(super) async fn outlast(&self) {
        self.subject.pass(self.subject.short() + self.subject.short() / 4).await;
    }

    /// A name that no other case uses.
    pub(super) fn name(&self, name: &str) -> String {
        format!("{name}-{:016x}", self.seed)
    }

    pub(super) fn key(&self, name: &str) -> Key {
        Key::from_bytes(*Digest::of_bytes(self.name(name)).as_bytes())
    }

    /// A claim of a mutating call, by an owner of its own.
    pub(super) fn claim(&self, key: &str) -> ClaimRequest {
        ClaimRequest {
            key: self.key(key),
            digest: Digest::of_bytes("params"),
            mutating: true,
            corrects: false,
            again: false,
            owner: self.seed.wrapping_add(self.owners.fetch_add(1, Relaxed)).max(1),
            ttls: Ttls { done: LONG, failed: LONG, inflight: LONG, unknown: LONG },
            tool: self.name("tool"),
            session: Some(self.name("session")),
            notes: b"notes".to_vec(),
        }
    }

    /// The same with a lease that ends soon.
    pub(super) fn short_claim(&self, key: &str) -> ClaimRequest {
        let mut claim = self.claim(key);
        claim.ttls.inflight = self.short();
        claim
    }

    /// Claims; fails if the claim is not granted.
    pub(super) async fn run(&self, claim: &ClaimRequest) -> Verdict<Grant> {
        granted(self.store.claim(claim).await?)
    }

    /// Claims and lets the lease end.
    pub(super) async fn lose(&self, claim: &ClaimRequest) -> Verdict<Grant> {
        let grant = self.run(claim).await?;
        self.outlast().await;
        Ok(grant)
    }

    /// Claims and ends.
    pub(super) async fn end(&self, claim: &ClaimRequest, state: StoredState) -> Verdict<Token> {
        let token = self.run(claim).await?.token;
        let end = End { state, ttl: LONG };
        match self.store.finalize(&claim.key, token, &end).await? {
            true => Ok(token),
            false => Err("the holder of a claim could not record its end".into()),
        }
    }

    pub(super) async fn read(&self, key: &str) -> Verdict<Option<Stored>> {
        Ok(self.store.read(&self.key(key)).await?)
    }

    /// Fails if the record's state is not this one.
    pub(super) async fn stands(&self, key: &str, state: &StoredState) -> Verdict<Stored> {
        match self.read(key).await? {
            Some(stored) if stored.record.state == *state => Ok(stored),
            Some(stored) => {
                Err(format!("the record's state is {:?}, not {state:?}", stored.record.state)
                    .into())
            }
            None => Err(format!("there is no record, expected {state:?}").into()),
        }
    }
}

/// Fails if the claim was not granted.
pub(super) fn granted(claimed: Claimed) -> Verdict<Grant> {
    match claimed {
        Claimed::Run(grant) => Ok(grant),
        other => Err(format!("the claim was not granted: {other:?}").into()),
    }
}

pub(super) fn done(body: &str) -> StoredState {
    State::Done(body.as_bytes().to_vec())
}

pub(super) const fn lasting(state: StoredState) -> End {
    End { state, ttl: LONG }
}

/// Fails a case whose condition does not hold.
macro_rules! must {
    ($condition:expr => $what:literal $(, $argument:expr)*) => {
        if !$condition {
            return Err(format!($what $(, $argument)*).into());
        }
    };
}
pub(crate) use must;
