//! A store that makes one mistake.
use super::mistake::Mistake::{self, *};
use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tr_core::canonical::{Digest, Key};
use tr_idempotency::conformance::RecordStoreExt as _;
use tr_idempotency::{
    protocol::{Millis, State, Token},
    store::{
        Change, ClaimRequest, Claimed, End, Listing, Memory, Query, RecordStore, Seen, Selector,
        StateFilter, StoreError, StoreFuture, Stored,
    },
};

/// A store that makes one mistake.
#[derive(Clone)]
pub(crate) struct Broken {
    inner: Memory,
    pub(crate) mistake: Mistake,
    owners: Arc<AtomicU64>,
    renewals: Arc<AtomicU64>,
    keys: Arc<Mutex<Vec<Key>>>,
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.mistake)
    }
}

const FOREVER: Millis = 1 << 40;

impl Broken {
    pub(crate) fn new(inner: Memory, mistake: Mistake) -> Self {
        let (owners, renewals) = (Arc::new(AtomicU64::new(1 << 50)), Arc::default());
        Self { inner, mistake, owners, renewals, keys: Arc::default() }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    async fn stored(&self, key: &Key) -> Option<Stored> {
        self.inner.read(key).await.unwrap()
    }

    async fn token(&self, key: &Key) -> Option<Token> {
        Some(self.stored(key).await?.record.token)
    }

    /// Whether the record can still be changed by its holder.
    async fn is_open(&self, key: &Key) -> bool {
        let stored = self.stored(key).await;
        stored.is_some_and(|it| matches!(it.record.state, State::Inflight | State::Unknown(_)))
    }

    fn kept(&self, end: &End) -> End {
        let mut end = end.clone();
        if self.is(RecordsLast) {
            end.ttl = FOREVER;
        }
        if let State::Done(body) = &mut end.state {
            match self.mistake {
                KeepsText => *body = String::from_utf8_lossy(body).into_owned().into_bytes(),
                CutsBodies => body.truncate(1_000),
                _ => {}
            }
        }
        end
    }

    async fn renewed(&self, key: &Key, token: Token, lease: Millis) -> Result<bool, StoreError> {
        self.renewals.fetch_add(1, Relaxed);
        match self.mistake {
            RenewsNothing => Ok(self.token(key).await == Some(token)),
            RenewsAnybody => {
                let token = self.token(key).await.unwrap_or(token);
                self.inner.renew(key, token, lease).await
            }
            _ => self.inner.renew(key, token, lease).await,
        }
    }

    async fn released(&self, key: &Key, owner: u64) -> Result<bool, StoreError> {
        match self.mistake {
            ReleasesNothing => Ok(self.token(key).await.is_some_and(|it| it.owner == owner)),
            ReleasesAnybody => self.inner.clear(key).await,
            ReleasesEnded if self.token(key).await.is_some_and(|it| it.owner == owner) => {
                self.inner.clear(key).await
            }
            _ => self.inner.release(key, owner).await,
        }
    }

    async fn finalized(&self, key: &Key, token: Token, end: &End) -> Result<bool, StoreError> {
        let end = self.kept(end);
        let Some(stored) = self.stored(key).await else { return Ok(false) };
        let now = stored.record.token;
        let token = match self.mistake {
            RecordsAnybody => now,
            ComparesEpochsOnly if token.epoch == now.epoch => now,
            ComparesOwnersOnly if token.owner == now.owner => now,
            _ => token,
        };
        if self.is(RefusesLateEnds) && matches!(stored.record.state, State::Unknown(_)) {
            return Ok(false);
        }
        if self.is(ForgetsItsEnds) && !self.is_open(key).await {
            return Ok(false);
        }
        if self.is(OverwritesEnds) && token == now && !self.is_open(key).await {
            let state = State::Unknown(None);
            let mut claim = claim_of(&stored);
            claim.owner = token.owner;
            self.inner.clear(key).await?;
            let Claimed::Run(grant) = self.inner.claim(&claim).await? else { return Ok(false) };
            self.inner.finalize(key, grant.token, &End { state, ttl: end.ttl }).await?;
            return self.inner.finalize(key, grant.token, &end).await;
        }
        self.inner.finalize(key, token, &end).await
    }

    async fn settled(&self, key: &Key, of: Option<Token>, end: &End) -> Result<bool, StoreError> {
        let end = self.kept(end);
        let Some(stored) = self.stored(key).await else { return Ok(false) };
        match self.mistake {
            SettlesAll => {
                let claim = claim_of(&stored);
                self.inner.clear(key).await?;
                let Claimed::Run(grant) = self.inner.claim(&claim).await? else {
                    return Ok(false);
                };
                self.inner.finalize(key, grant.token, &end).await
            }
            SettlesAnyRun => self.inner.settle(key, None, &end).await,
            SettlesWithoutTaking if matches!(stored.record.state, State::Unknown(_)) => {
                self.inner.finalize(key, stored.record.token, &end).await
            }
            _ => self.inner.settle(key, of, &end).await,
        }
    }
}

impl RecordStore for Broken {
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        Box::pin(async move {
            let mut claim = claim.clone();
            let before = self.stored(&claim.key).await;
            match self.mistake {
                ForgetsOwners => claim.owner = self.owners.fetch_add(1, Relaxed),
                IgnoresDigests => claim.digest = Digest::of_bytes("any"),
                LeasesLast => claim.ttls.inflight = FOREVER,
                LeaseEndsRecord => claim.ttls.unknown = 0,
                RecordsLast => claim.ttls.unknown = FOREVER,
                _ => {}
            }
            if let Some(before) = &before {
                let unknown = matches!(before.record.state, State::Unknown(_));
                let forgets = match self.mistake {
                    GrantsAll => matches!(before.record.state, State::Inflight),
                    RunsUnknownAgain => unknown,
                    TrustsTheRecordsEffect => unknown && !before.record.mutating,
                    _ => false,
                };
                if forgets && before.record.token.owner != claim.owner {
                    self.inner.clear(&claim.key).await?;
                }
                if self.is(KeepsOldNotes) {
                    (claim.notes, claim.tool) = (before.notes.clone(), before.tool.clone());
                }
            }
            let mut claimed = self.inner.claim(&claim).await?;
            if self.is(EvictsClaims) && claimed == Claimed::Full {
                let oldest = self.keys.lock().unwrap().remove(0);
                self.inner.clear(&oldest).await?;
                claimed = self.inner.claim(&claim).await?;
            }
            if let Claimed::Run(grant) = &mut claimed {
                self.keys.lock().unwrap().push(claim.key);
                if self.is(EpochsStartOver) && before.is_none() {
                    // What a store without a counter would say.
                    grant.token.epoch = 1;
                }
            }
            if let (Claimed::Busy { seen, .. }, true) = (&mut claimed, self.is(CountsRenewals)) {
                seen.version += self.renewals.load(Relaxed);
            }
            Ok(claimed)
        })
    }

    fn change<'s>(&'s self, key: &'s Key, change: Change<'s>) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            match change {
                Change::Renew(token, lease) => self.renewed(key, token, lease).await,
                Change::Release(owner) => self.released(key, owner).await,
                Change::Finalize(token, end) => self.finalized(key, token, &end).await,
                Change::Settle(of, end) => self.settled(key, of, &end).await,
            }
        })
    }

    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        Box::pin(async move {
            let mut stored = self.inner.read(key).await?;
            if let Some(stored) = &mut stored {
                match (&mut stored.record.state, self.mistake) {
                    (State::Done(body), DropsEmptyBodies) if body.is_empty() => {
                        stored.record.state = State::Unknown(None);
                    }
                    (_, LosesDigests) => stored.record.digest = Digest::of_bytes(""),
                    _ => {}
                }
            }
            Ok(stored)
        })
    }

    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()> {
        match self.mistake {
            WakesNobody => Box::pin(std::future::pending()),
            MissesThePast => Box::pin(async move {
                let stored = self.stored(key).await;
                let Some(stored) = stored else { return std::future::pending().await };
                self.inner.watch(key, stored.seen()).await
            }),
            _ => self.inner.watch(key, seen),
        }
    }

    fn list<'s>(
        &'s self,
        query: &'s Query,
        limit: usize,
        is_brief: bool,
    ) -> StoreFuture<'s, Listing> {
        Box::pin(async move {
            let limit = if self.is(ListsAll) { usize::MAX } else { limit };
            self.inner.list(&self.meant(query), limit, is_brief).await
        })
    }

    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let wrong = u64::from(self.is(Miscounts));
            Ok(self.inner.count(&self.meant(query)).await? + wrong)
        })
    }

    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let named = self.is(FlushesTheNamed) && matches!(query.selector, Selector::Key(_));
            if !self.is(FlushesPinned) && !named {
                return self.inner.flush(query).await;
            }
            let all = self.inner.list(query, usize::MAX, true).await?.records;
            for stored in &all {
                self.inner.clear(&stored.key).await?;
            }
            Ok(all.len() as u64)
        })
    }

    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            let stored = self.stored(key).await;
            let inflight = stored.is_some_and(|it| matches!(it.record.state, State::Inflight));
            if self.is(SparesInflight) && inflight {
                return Ok(false);
            }
            self.inner.clear(key).await
        })
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            if self.is(SweepsLapsed) {
                let lapsed = Query { selector: Selector::All, state: StateFilter::Unknown };
                for stored in self.inner.list(&lapsed, usize::MAX, true).await?.records {
                    self.inner.clear(&stored.key).await?;
                }
            }
            self.inner.sweep().await
        })
    }

    fn mark<'s>(&'s self, from: &'s [u8], to: &'s [u8]) -> StoreFuture<'s, Vec<u8>> {
        Box::pin(async move {
            let now = self.inner.mark(&[], &[]).await?;
            let from = if self.is(MarksOver) { &now } else { from };
            self.inner.mark(from, to).await
        })
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        self.inner.check()
    }
}

impl Broken {
    fn meant(&self, query: &Query) -> Query {
        let mut query = query.clone();
        match (&mut query.selector, self.mistake) {
            (Selector::Tool(prefix), MatchesPatterns) => *prefix = prefix.replace(['%', '_'], ""),
            (_, ListsLapsedAsInflight) if matches!(query.state, StateFilter::Inflight { .. }) => {
                query.state = StateFilter::Any;
            }
            _ => {}
        }
        query
    }
}

fn claim_of(stored: &Stored) -> ClaimRequest {
    ClaimRequest {
        key: stored.key,
        digest: stored.record.digest,
        mutating: stored.record.mutating,
        again: false,
        corrects: false,
        owner: stored.record.token.owner,
        ttls: tr_idempotency::protocol::Ttls {
            done: FOREVER,
            failed: FOREVER,
            inflight: FOREVER,
            unknown: FOREVER,
        },
        tool: stored.tool.clone(),
        session: stored.session.clone(),
        notes: stored.notes.clone(),
    }
}
