//! Cases: which caller may run a call.
use super::subject::*;
use crate::{
    protocol::{Again, State, Token},
    store::{ClaimRequest, Claimed},
};
use futures_util::future::join_all;
use std::{
    collections::HashSet,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};
use tr_core::canonical::Digest;

pub(super) async fn a_new_key_is_granted(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.claim("a");
    let grant = cx.run(&claim).await?;
    must!(grant.token.owner == claim.owner => "the grant is for another owner: {:?}", grant.token);
    must!(grant.runs == 1 && grant.before.is_none() => "the grant of a new key is not its first run: {grant:?}");
    must!(grant.lease_left <= LONG && grant.lease_left > LONG / 2 => "wrong lease: {grant:?}");
    granted(cx.other.claim(&cx.claim("b")).await?).map(drop)
}

pub(super) async fn a_claim_in_force_makes_others_busy(cx: Cx<'_, impl Subject>) -> Verdict {
    let token = cx.run(&cx.claim("a")).await?.token;
    for store in [&cx.store, &cx.other] {
        let mut claim = cx.claim("a");
        for (mutating, again) in [(true, false), (true, true), (false, false), (false, true)] {
            (claim.mutating, claim.again) = (mutating, again);
            let Claimed::Busy { seen, lease_left } = store.claim(&claim).await? else {
                return Err("the reply to a second claim was not `Busy`".into());
            };
            must!(seen.token == token => "`Busy` names another claim: {seen:?}");
            must!(lease_left <= LONG => "the lease of the first claim is too long: {lease_left}");
        }
    }
    Ok(())
}

pub(super) async fn a_claim_sent_again_is_the_same_claim(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.claim("a");
    let token = cx.run(&claim).await?.token;
    for store in [&cx.store, &cx.other] {
        let again = granted(store.claim(&claim).await?)?;
        must!(again.token == token => "the same claim got another token: {:?}, {token:?}", again.token);
        must!(again.runs == 1 => "the same claim counts as another run");
    }
    let renewed = cx.store.renew(&claim.key, token, LONG).await?;
    must!(renewed => "the first grant is no longer valid");
    Ok(())
}

pub(super) async fn a_claim_whose_reply_was_lost_is_recognized(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    for polls in 0..4 {
        let claim = cx.claim(&format!("a{polls}"));
        {
            let mut lost = pin!(cx.store.claim(&claim));
            let mut left = polls;
            poll_fn(|task| {
                let over = left == 0 || lost.as_mut().poll(task).is_ready();
                left -= usize::from(!over);
                if over { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        let grant = cx.run(&claim).await?;
        must!(grant.runs == 1 => "the lost claim counts as another run");
        let other = cx.other.claim(&cx.claim(&format!("a{polls}"))).await?;
        must!(matches!(other, Claimed::Busy { .. }) => "a second owner was granted too: {other:?}");
    }
    Ok(())
}

pub(super) async fn of_many_claims_one_is_granted(cx: Cx<'_, impl Subject>) -> Verdict {
    for round in 0..8 {
        let key = format!("a{round}");
        let claims: Vec<_> = (0..16).map(|_| cx.claim(&key)).collect();
        let asked = claims.iter().enumerate().map(|(n, claim)| {
            let client = if n % 2 == 0 { &cx.store } else { &cx.other };
            client.claim(claim)
        });
        let mut won = 0;
        for end in join_all(asked).await {
            match end? {
                Claimed::Run(_) => won += 1,
                Claimed::Busy { .. } => {}
                other => return Err(format!("unexpected reply to a claim: {other:?}").into()),
            }
        }
        must!(won == 1 => "{won} of 16 claims were granted");
    }
    Ok(())
}

pub(super) async fn other_params_are_a_conflict_in_every_state(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    cx.run(&cx.claim("inflight")).await?;
    let body = || b"x".to_vec();
    let ends = [
        ("done", State::Done(body())),
        ("never", State::Failed(body(), Again::Never)),
        ("asked", State::Failed(body(), Again::WhenAsked)),
        ("freely", State::Failed(body(), Again::Freely)),
        ("cancelled", State::Cancelled(None)),
        ("unknown", State::Unknown(Some(body()))),
    ];
    for (key, state) in ends.iter().cloned() {
        cx.end(&cx.claim(key), state).await?;
    }
    for key in ["inflight"].into_iter().chain(ends.iter().map(|(key, _)| *key)) {
        for again in [false, true] {
            let mut claim = cx.claim(key);
            (claim.digest, claim.again) = (Digest::of_bytes("other"), again);
            let met = cx.other.claim(&claim).await?;
            must!(met == Claimed::Conflict => "{key}: the reply to other params was {met:?}");
        }
    }
    Ok(())
}

pub(super) async fn a_done_call_is_replayed(cx: Cx<'_, impl Subject>) -> Verdict {
    let token = cx.end(&cx.claim("a"), done("answer")).await?;
    for (store, again) in [(&cx.store, true), (&cx.other, false)] {
        let claim = ClaimRequest { again, ..cx.claim("a") };
        let Claimed::Settled(stored) = store.claim(&claim).await? else {
            return Err("a claim of a done call did not return its record".into());
        };
        must!(stored.record.state == done("answer") => "the record's state is {:?}", stored.record.state);
        must!(stored.record.token == token => "the record belongs to another claim: {stored:?}");
        must!(stored.record.digest == claim.digest => "the params' digest is lost");
        must!(stored.now >= stored.record.changed_at => "the record was changed in the future: {stored:?}");
    }
    Ok(())
}

pub(super) async fn a_failed_call_runs_again_as_its_record_says(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    for (how, plain, asked) in
        [(Again::Never, false, false), (Again::WhenAsked, false, true), (Again::Freely, true, true)]
    {
        for (again, runs) in [(false, plain), (true, asked)] {
            let key = format!("{how:?}{again}");
            let token = cx.end(&cx.claim(&key), State::Failed(b"no".to_vec(), how)).await?;
            let claim = ClaimRequest { again, ..cx.claim(&key) };
            match cx.other.claim(&claim).await? {
                Claimed::Run(grant) if runs => {
                    must!(grant.token.epoch > token.epoch => "the epoch does not grow");
                    let busy = cx.store.claim(&cx.claim(&key)).await?;
                    must!(matches!(busy, Claimed::Busy { .. }) => "two claims were granted: {busy:?}");
                }
                Claimed::Settled(stored) if !runs => {
                    let same = stored.record.state == State::Failed(b"no".to_vec(), how);
                    must!(same => "the record's state is {:?}", stored.record.state);
                }
                other => {
                    return Err(
                        format!("failed, {how:?}, again {again}: the reply was {other:?}").into()
                    );
                }
            }
        }
    }
    Ok(())
}

pub(super) async fn a_failed_call_is_corrected_by_one_with_other_params(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let other = |key: &str, corrects| {
        let digest = Digest::of_bytes("corrected");
        ClaimRequest { digest, corrects, ..cx.claim(key) }
    };
    let failed = |how| State::Failed(b"no".to_vec(), how);
    for (key, end) in [
        ("a", failed(Again::Never)),
        ("b", failed(Again::WhenAsked)),
        ("c", State::Cancelled(None)),
    ] {
        let token = cx.end(&cx.claim(key), end).await?;
        let plain = cx.other.claim(&other(key, false)).await?;
        must!(matches!(plain, Claimed::Conflict) => "other params were no conflict: {plain:?}");
        let grant = granted(cx.other.claim(&other(key, true)).await?)?;
        must!(grant.token.epoch > token.epoch => "the epoch does not grow");
        must!(grant.before.is_none() => "the other call's run counts as one of this call");
        let first = cx.store.claim(&ClaimRequest { corrects: true, ..cx.claim(key) }).await?;
        must!(matches!(first, Claimed::Conflict) => "two calls run under one key: {first:?}");
    }
    for (key, end) in [("d", done("answer")), ("e", State::Unknown(None))] {
        cx.end(&cx.claim(key), end).await?;
        let reply = cx.other.claim(&other(key, true)).await?;
        must!(matches!(reply, Claimed::Conflict) => "a call that has not failed was corrected: {reply:?}");
    }
    Ok(())
}

pub(super) async fn a_cancelled_call_runs_again(cx: Cx<'_, impl Subject>) -> Verdict {
    let token = cx.end(&cx.claim("a"), State::Cancelled(Some(b"why".to_vec()))).await?;
    let grant = granted(cx.other.claim(&cx.claim("a")).await?)?;
    must!(grant.token.epoch > token.epoch => "the epoch does not grow");
    Ok(())
}

pub(super) async fn a_claim_returns_the_former_state(cx: Cx<'_, impl Subject>) -> Verdict {
    let failed = State::Failed(b"no".to_vec(), Again::Freely);
    cx.end(&cx.claim("a"), failed.clone()).await?;
    let mut claim = cx.claim("a");
    (claim.notes, claim.tool) = (b"later".to_vec(), cx.name("later"));
    let grant = granted(cx.other.claim(&claim).await?)?;
    must!(grant.runs == 2 => "the grant is for run {} of the call, not 2", grant.runs);
    let Some(before) = grant.before else {
        return Err("the grant lacks the state before the claim".into());
    };
    must!(before.state == failed => "the state before is {:?}", before.state);
    must!(before.claimed_at <= before.changed_at => "the times before are wrong: {before:?}");
    let stored = cx.stands("a", &State::Inflight).await?;
    must!(stored.notes == b"later" && stored.tool == claim.tool => "the notes are those of the former claim");
    Ok(())
}

pub(super) async fn epochs_grow_past_deleted_records(cx: Cx<'_, impl Subject>) -> Verdict {
    let mut last = 0;
    let grows = |epoch: u64, last: &mut u64| -> Verdict {
        must!(epoch > *last => "epoch {epoch} is not above all earlier ones");
        *last = epoch;
        Ok(())
    };
    for _ in 0..3 {
        let claim = cx.claim("a");
        grows(cx.run(&claim).await?.token.epoch, &mut last)?;
        cx.store.release(&claim.key, claim.owner).await?;
        grows(cx.run(&cx.claim("a")).await?.token.epoch, &mut last)?;
        cx.other.clear(&claim.key).await?;
        let claim = cx.claim("a");
        let token = cx.run(&claim).await?.token;
        grows(token.epoch, &mut last)?;
        let end = crate::store::End { state: done("x"), ttl: cx.short() };
        cx.store.finalize(&claim.key, token, &end).await?;
        cx.outlast().await;
    }
    Ok(())
}

pub(super) async fn a_full_store_refuses_and_keeps_its_claims(cx: Cx<'_, impl Subject>) -> Verdict {
    let Some(store) = cx.subject.with_room_for(4).await else { return Ok(()) };
    let mut held: Vec<(_, Token)> = Vec::new();
    let mut full = false;
    for n in 0..64 {
        let claim = cx.claim(&format!("a{n}"));
        match store.claim(&claim).await? {
            Claimed::Run(grant) => held.push((claim.key, grant.token)),
            Claimed::Full => full = true,
            other => return Err(format!("the reply to a new key was {other:?}").into()),
        }
    }
    must!(full => "64 claims were granted with a capacity of 4");
    let keys: HashSet<_> = held.iter().map(|(key, _)| *key).collect();
    must!(keys.len() == held.len() => "a claim was granted twice");
    for (key, token) in held {
        let held = store.renew(&key, token, LONG).await?;
        must!(held => "a claim in force was forgotten");
    }
    Ok(())
}
