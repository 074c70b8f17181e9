//! Cases: calls whose owner vanished, and how long records last.
use super::subject::*;
use crate::{
    protocol::{Again, State},
    store::{ClaimRequest, Claimed, End},
};

pub(super) async fn a_lease_that_ends_leaves_unknown(cx: Cx<'_, impl Subject>) -> Verdict {
    let grant = cx.lose(&cx.short_claim("a")).await?;
    let stored = cx.stands("a", &State::Unknown(None)).await?;
    must!(stored.record.token == grant.token => "the record belongs to another claim: {stored:?}");
    for (store, again) in [(&cx.store, false), (&cx.other, true)] {
        for mutating in [true, false] {
            let claim = ClaimRequest { again, mutating, ..cx.claim("a") };
            let met = store.claim(&claim).await?;
            let Claimed::Unknown(stored) = &met else {
                return Err(
                    format!("the reply for a mutating call that may have run was {met:?}").into()
                );
            };
            let same = stored.record.state == State::Unknown(None);
            must!(same => "the record's state is {:?}", stored.record.state);
        }
    }
    Ok(())
}

pub(super) async fn a_lost_call_that_is_not_mutating_runs_again(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let claim = ClaimRequest { mutating: false, ..cx.short_claim("a") };
    let lost = cx.lose(&claim).await?;
    let claim = ClaimRequest { mutating: false, ..cx.claim("a") };
    let grant = granted(cx.other.claim(&claim).await?)?;
    must!(grant.token.epoch > lost.token.epoch => "the epoch does not grow");
    let before = grant.before.map(|before| before.state);
    must!(before == Some(State::Unknown(None)) => "the state before is {before:?}");
    Ok(())
}

pub(super) async fn a_mutating_claim_of_a_lost_call_is_refused(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let claim = ClaimRequest { mutating: false, ..cx.short_claim("a") };
    cx.lose(&claim).await?;
    let met = cx.other.claim(&cx.claim("a")).await?;
    must!(matches!(met, Claimed::Unknown(_)) => "the reply was {met:?}");
    Ok(())
}

pub(super) async fn a_lapsed_claim_sent_again_gets_a_new_lease(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let mut claim = cx.short_claim("a");
    let lost = cx.lose(&claim).await?;
    claim.ttls.inflight = LONG;
    let grant = cx.run(&claim).await?;
    must!(grant.token == lost.token => "the same claim got another token: {:?}", grant.token);
    must!(grant.lease_left > LONG / 2 => "its lease did not start again: {}", grant.lease_left);
    cx.stands("a", &State::Inflight).await.map(drop)
}

pub(super) async fn a_renewed_lease_lasts(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.short_claim("a");
    let token = cx.run(&claim).await?.token;
    must!(cx.store.renew(&claim.key, token, LONG).await? => "the lease was lost at once");
    let shorter = cx.store.renew(&claim.key, token, 1).await?;
    must!(shorter => "the lease was lost after a renewal");
    cx.outlast().await;
    let met = cx.other.claim(&cx.claim("a")).await?;
    must!(matches!(met, Claimed::Busy { .. }) => "a renewed lease has ended: {met:?}");
    Ok(())
}

pub(super) async fn a_lapsed_lease_is_renewed_while_unclaimed(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.short_claim("a");
    let token = cx.lose(&claim).await?.token;
    let met = cx.other.claim(&cx.claim("a")).await?;
    must!(matches!(met, Claimed::Unknown(_)) => "the reply was {met:?}");
    let renewed = cx.store.renew(&claim.key, token, LONG).await?;
    must!(renewed => "its owner could not renew the lease, although no other owner had claimed the call");
    let met = cx.other.claim(&cx.claim("a")).await?;
    must!(matches!(met, Claimed::Busy { .. }) => "after the renewal, the reply was {met:?}");
    Ok(())
}

pub(super) async fn a_lost_claim_is_not_renewed(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = ClaimRequest { mutating: false, ..cx.short_claim("a") };
    let old = cx.lose(&claim).await?.token;
    let claim = ClaimRequest { mutating: false, ..cx.claim("a") };
    let new = cx.run(&claim).await?.token;
    must!(!cx.store.renew(&claim.key, old, LONG).await? => "an older claim was renewed");
    must!(cx.store.renew(&claim.key, new, LONG).await? => "the newer claim was lost");
    let end = lasting(done("x"));
    cx.store.finalize(&claim.key, new, &end).await?;
    let renewed = cx.store.renew(&claim.key, new, LONG).await?;
    must!(!renewed => "a call that has ended was renewed");
    let renewed = cx.store.renew(&cx.key("none"), new, LONG).await?;
    must!(!renewed => "a claim that was never granted was renewed");
    Ok(())
}

pub(super) async fn an_unknown_call_lasts_for_its_time(cx: Cx<'_, impl Subject>) -> Verdict {
    let mut claim = cx.short_claim("a");
    claim.ttls.unknown = cx.short();
    cx.run(&claim).await?;
    cx.end(&cx.claim("b"), State::Unknown(Some(b"why".to_vec()))).await?;
    cx.outlast().await;
    cx.outlast().await;
    must!(cx.read("a").await?.is_none() => "an expired record can be read");
    granted(cx.other.claim(&cx.claim("a")).await?)?;
    cx.stands("b", &State::Unknown(Some(b"why".to_vec()))).await?;
    let met = cx.other.claim(&cx.claim("b")).await?;
    must!(matches!(met, Claimed::Unknown(_)) => "before its expiry, the reply was {met:?}");
    Ok(())
}

pub(super) async fn a_record_lasts_for_its_time(cx: Cx<'_, impl Subject>) -> Verdict {
    let failed = State::Failed(b"no".to_vec(), Again::Never);
    for (key, state) in [("done", done("x")), ("failed", failed)] {
        let claim = cx.claim(key);
        let token = cx.run(&claim).await?.token;
        let end = End { state: state.clone(), ttl: cx.short() };
        cx.store.finalize(&claim.key, token, &end).await?;
        cx.end(&cx.claim(&format!("long {key}")), state).await?;
    }
    cx.outlast().await;
    for key in ["done", "failed"] {
        must!(cx.read(key).await?.is_none() => "{key}: an expired record can be read");
        let grant = granted(cx.other.claim(&cx.claim(key)).await?)?;
        must!(grant.runs == 1 => "{key}: an expired record counts as a run");
        let long = cx.store.claim(&cx.claim(&format!("long {key}"))).await?;
        must!(matches!(long, Claimed::Settled(_)) => "{key}: before its expiry, the reply was {long:?}");
    }
    Ok(())
}
