//! A run's requests to the store.
use super::{
    Boxed, Recorded, Request,
    client::Client,
    held::Held,
    obtain::{Obtained, obtain},
};
use crate::{
    codec::Place,
    end::State,
    local::{notes::RequestNote, table::LocalClaim},
    store::ClaimRequest,
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tr_core::{BoxError, CallInfo, Effect, RecordRef};

/// A run's requests to the store. `R` is the tool's response.
pub(crate) struct StoreCall<R, V> {
    pub(crate) remote: Arc<Client<V>>,
    pub(crate) request: Request,
    pub(crate) stage: Stage<R, V>,
}

pub(crate) enum Stage<R, V> {
    /// The claim was not sent.
    Due,
    /// Waits for the store to grant or refuse the claim.
    Claiming(Boxed<Obtained<V>>),
    /// The claim is granted.
    Held(Box<Held<V>>),
    /// The store is unavailable; the call runs without a record.
    Open,
    /// The tool has run; its end is being recorded.
    Ending(Ending<R, V>),
    Over,
}

pub(crate) struct Ending<R, V> {
    pub(crate) recording: Boxed<Recorded>,
    pub(crate) end: Result<R, BoxError>,
    pub(crate) state: Option<State<V>>,
    /// A duplicate will get the whole response.
    pub(crate) whole: bool,
}

impl<R, V> StoreCall<R, V> {
    /// For a call that is claimed in this process.
    #[cold]
    pub(crate) fn new(
        remote: &Arc<Client<V>>,
        local: &LocalClaim<'_>,
        effect: Effect,
        (info, record): (&CallInfo<'_>, &RecordRef<'_>),
        (deadline, max_wait): (Option<Instant>, Duration),
    ) -> Box<Self> {
        let LocalClaim { id, mutating, again, ttls, wait, .. } = *local;
        let (key, digest, frames) = (id.key, id.digest, &remote.format.frames);
        let place = Place { key, digest, mutating, epoch: 0, by_hand: false };
        let claim = Arc::new(ClaimRequest {
            key,
            digest,
            mutating,
            again,
            owner: remote.owner(),
            ttls,
            tool: info.tool.to_owned(),
            session: record.session.or(info.session).map(|session| frames.session(session)),
            notes: RequestNote::of(info, record).write(&place, frames),
        });
        let (until, found) = (None, Arc::default());
        let request = Request { claim, effect, wait, deadline, max_wait, until, found };
        Box::new(Self { remote: remote.clone(), request, stage: Stage::Due })
    }

    pub(crate) fn claim(&mut self)
    where
        V: Clone + Send + 'static,
    {
        let obtained = obtain(self.remote.clone(), self.request.clone());
        self.stage = Stage::Claiming(Box::pin(obtained));
    }

    /// Claims again as another owner: the first claim was lost before the call started.
    pub(crate) fn claim_again(&mut self) {
        let claim = (*self.request.claim).clone();
        let owner = self.remote.owner();
        self.request.claim = Arc::new(ClaimRequest { owner, ..claim });
        self.stage = Stage::Due;
    }
}
