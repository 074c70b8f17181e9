//! A call that a store has to grant too.
use super::client::Client;
use crate::{
    clock::millis,
    codec::Place,
    local::{notes::RequestNote, table::LocalClaim},
    protocol::Millis,
    store::ClaimRequest,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::Instant;
use tr_core::{CallInfo, Effect, Ran, RecordRef};

/// A caller's claim, and how long the caller can wait.
pub(crate) struct StoreCall<V> {
    pub(crate) remote: Arc<Client<V>>,
    pub(crate) claim: Arc<ClaimRequest>,
    pub(crate) effect: Effect,
    /// Whether to wait for another process's run.
    pub(super) wait: bool,
    pub(crate) deadline: Option<Instant>,
    /// The longest wait, whatever the deadline; and its end, once the wait has begun.
    pub(super) max_wait: Duration,
    pub(crate) until: Option<Instant>,
    /// Whether the store has reported that another process runs the call, or may have run it.
    pub(super) found: AtomicBool,
}

impl<V> StoreCall<V> {
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
        let (remote, until, found) = (remote.clone(), None, AtomicBool::new(false));
        Box::new(Self { remote, claim, effect, wait, deadline, max_wait, until, found })
    }

    /// Becomes the claim of another owner: the first one was lost before the call started.
    pub(crate) fn claim_again(&mut self) {
        let owner = self.remote.owner();
        self.claim = Arc::new(ClaimRequest { owner, ..(*self.claim).clone() });
    }

    /// Whether the tool may have run in another process.
    pub(crate) fn ran(&self) -> Ran {
        if self.found.load(Relaxed) { Ran::Unknown } else { Ran::No }
    }

    /// How long this process replays a recorded success without a request.
    pub(crate) fn memory(&self) -> Option<Millis> {
        self.remote.settings.memory.map(millis)
    }
}
