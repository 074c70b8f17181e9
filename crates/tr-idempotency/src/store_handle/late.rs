//! Recording the end of a run that was given up before it ended.
use super::{StoreHandle, check_notes};
use crate::{
    codec::Place,
    handle::Resolution,
    protocol::{Phase, Token},
    remote::{background::retried, client::new_owner},
    store::{Change, ClaimRequest, Claimed, Grant, StoreError, Stored},
};
use std::{borrow::Cow, sync::Arc, time::Duration};
use tr_core::canonical::Key;

/// Attempts to record an end under a claim that was granted for it.
const TIMES: usize = 10;

/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(100);

/// What [`StoreHandle::settle_late`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LateEnd {
    /// The call was of unknown outcome; its end is recorded.
    Recorded,
    /// An operator had recorded that the call did not run. It was not claimed again; its end is
    /// recorded in place of that.
    Corrected,
    /// An operator had recorded that the call did not run, and it was claimed again: it may have run
    /// twice. Nothing was changed.
    ClaimedAgain,
    /// The run is still recorded as in flight: ask again.
    InFlight,
    /// The record needs nothing: it has an end that does not contradict this one, or is gone.
    Settled,
}

impl<V: Clone> StoreHandle<V> {
    /// Records the end of the run with this [epoch](crate::DedupeRecord::epoch), whose response came
    /// after the call was given up. The response proves how the run ended, so it replaces what an
    /// operator recorded by mistake, as long as the call was not claimed again.
    ///
    /// # Errors
    /// The store's, and `Unreadable` as [`settle_by`](Self::settle_by) does.
    pub async fn settle_late(
        &self,
        key: &Key,
        epoch: u64,
        how: Resolution<V>,
    ) -> Result<LateEnd, StoreError> {
        let Some(stored) = self.remote.gate.read(key).await? else { return Ok(LateEnd::Settled) };
        let Token { epoch: now, owner } = stored.record.token;
        let (phase, ran) = (stored.record.state.phase(), !matches!(how, Resolution::DidNotRun));
        match phase {
            Phase::Inflight if now == epoch => return Ok(LateEnd::InFlight),
            Phase::Unknown if now == epoch => {
                let settled = self.settle_by(key, Some(epoch), how, None).await?;
                // Otherwise another change came first; the next read shows it.
                return Ok(if settled.is_ok() { LateEnd::Recorded } else { LateEnd::InFlight });
            }
            _ if now <= epoch || !ran => return Ok(LateEnd::Settled),
            Phase::Cancelled if owner == Token::BY_HAND => {}
            Phase::Done if owner == Token::BY_HAND => return Ok(LateEnd::Settled),
            _ => return Ok(LateEnd::ClaimedAgain),
        }
        check_notes(&stored, &self.remote.format)?;
        let claim = self.claim_of(&stored);
        let Claimed::Run(Grant { token, .. }) = self.remote.gate.claim(&claim).await? else {
            return Ok(LateEnd::ClaimedAgain);
        };
        let state = how.into_state();
        let ttl = self.front.ttls.of(&state);
        let place = Place::of_claim(&claim, token);
        let (end, _) = self.remote.format.write(&place, &state, ttl, &[], None);
        let change = || Change::Finalize(token, Cow::Borrowed(&end));
        let record = || self.remote.gate.change(&claim.key, change());
        // If that fails, the claim's lease leaves the call of unknown outcome, which does not run either.
        let is_recorded = retried([PAUSE; TIMES - 1], record).await?;
        Ok(if is_recorded { LateEnd::Corrected } else { LateEnd::ClaimedAgain })
    }

    /// A claim for the call of a record, as the call itself made it.
    fn claim_of(&self, stored: &Stored) -> Arc<ClaimRequest> {
        Arc::new(ClaimRequest {
            key: stored.key,
            digest: stored.record.digest,
            mutating: stored.record.mutating,
            again: false,
            corrects: false,
            owner: new_owner(),
            ttls: self.front.ttls,
            tool: stored.tool.clone(),
            session: stored.session.clone(),
            notes: stored.notes.clone(),
        })
    }
}
