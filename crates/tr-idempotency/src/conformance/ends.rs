//! Cases: how a call ends, is settled, released and cleared.
use super::subject::*;
use crate::{
    protocol::{Again, State, Token},
    store::{ClaimRequest, Claimed},
};

/// A call that one owner lost and another claimed.
async fn taken_over<S: Subject>(cx: Cx<'_, S>) -> Verdict<(Token, Token)> {
    let claim = ClaimRequest { mutating: false, ..cx.short_claim("a") };
    let old = cx.lose(&claim).await?.token;
    let claim = ClaimRequest { mutating: false, ..cx.claim("a") };
    let new = granted(cx.other.claim(&claim).await?)?.token;
    Ok((old, new))
}

pub(super) async fn an_older_claim_neither_records_nor_deletes(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let (old, new) = taken_over(cx).await?;
    let key = cx.key("a");
    for state in [done("late"), State::Failed(b"late".to_vec(), Again::Freely)] {
        let recorded = cx.store.finalize(&key, old, &lasting(state)).await?;
        must!(!recorded => "the end of an older claim was recorded");
    }
    must!(!cx.store.release(&key, old.owner).await? => "an older claim was released");
    for half in [Token { owner: old.owner, ..new }, Token { epoch: old.epoch, ..new }] {
        let recorded = cx.store.finalize(&key, half, &lasting(done("half"))).await?;
        must!(!recorded => "a token with a wrong half was accepted");
    }
    cx.stands("a", &State::Inflight).await?;
    let recorded = cx.other.finalize(&key, new, &lasting(done("new"))).await?;
    must!(recorded => "the newer claim was lost");
    cx.stands("a", &done("new")).await.map(drop)
}

pub(super) async fn a_late_end_is_recorded_while_unclaimed(cx: Cx<'_, impl Subject>) -> Verdict {
    for (key, state) in [("a", State::Unknown(Some(b"?".to_vec()))), ("b", done("late"))] {
        let token = cx.lose(&cx.short_claim(key)).await?.token;
        cx.stands(key, &State::Unknown(None)).await?;
        for state in [state, done("late")] {
            let recorded = cx.other.finalize(&cx.key(key), token, &lasting(state.clone())).await?;
            must!(recorded => "a late end was refused, although no other owner had claimed the call");
            cx.stands(key, &state).await?;
        }
    }
    Ok(())
}

pub(super) async fn an_end_sent_again_is_recognized(cx: Cx<'_, impl Subject>) -> Verdict {
    let token = cx.end(&cx.claim("a"), done("x")).await?;
    let before = cx.stands("a", &done("x")).await?;
    for store in [&cx.store, &cx.other] {
        let known = store.finalize(&cx.key("a"), token, &lasting(done("x"))).await?;
        must!(known => "an end that was sent again was refused");
    }
    let after = cx.stands("a", &done("x")).await?;
    must!(after.record == before.record => "an end that was sent again changed {before:?} to {after:?}");
    Ok(())
}

pub(super) async fn the_first_end_is_kept(cx: Cx<'_, impl Subject>) -> Verdict {
    let token = cx.end(&cx.claim("a"), done("first")).await?;
    for state in [done("second"), State::Cancelled(None), State::Unknown(None)] {
        cx.store.finalize(&cx.key("a"), token, &lasting(state)).await?;
        cx.stands("a", &done("first")).await?;
    }
    Ok(())
}

pub(super) async fn bytes_come_back_as_they_are(cx: Cx<'_, impl Subject>) -> Verdict {
    let all: Vec<u8> = (0..=255).collect();
    let bodies = [Vec::new(), vec![0], all.clone(), all.repeat(1_024)];
    for (n, body) in bodies.into_iter().enumerate() {
        let key = format!("a{n}");
        let mut claim = cx.claim(&key);
        claim.notes = all.clone();
        claim.session = Some(cx.name("séance ' \" \0 % _ * [é] {x} \\ :"));
        claim.tool = cx.name("tool ' \" \0 % _ * [é] {x} \\ :");
        cx.end(&claim, State::Done(body.clone())).await?;
        let stored = cx.other.read(&claim.key).await?;
        let Some(stored) = stored else { return Err("there is no record".into()) };
        let bytes = body.len();
        must!(stored.record.state == State::Done(body) => "{bytes} bytes came back changed");
        must!(stored.notes == all => "the notes came back changed");
        must!(stored.session == claim.session => "the session came back changed");
        must!(stored.tool == claim.tool => "the tool came back changed");
    }
    let claim = ClaimRequest { session: None, ..cx.claim("b") };
    cx.end(&claim, State::Cancelled(None)).await?;
    let stored = cx.stands("b", &State::Cancelled(None)).await?;
    must!(stored.session.is_none() => "a missing session came back as a session");
    Ok(())
}

pub(super) async fn a_released_claim_leaves_nothing(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.claim("a");
    cx.run(&claim).await?;
    must!(cx.other.release(&claim.key, claim.owner).await? => "a claim could not be released");
    must!(cx.read("a").await?.is_none() => "a released claim left a record");
    must!(!cx.store.release(&claim.key, claim.owner).await? => "a claim was released twice");
    granted(cx.other.claim(&cx.claim("a")).await?).map(drop)
}

pub(super) async fn a_release_by_another_owner_does_nothing(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.claim("a");
    let token = cx.run(&claim).await?.token;
    let rejected = cx.claim("a");
    cx.other.claim(&rejected).await?;
    let released = cx.other.release(&claim.key, rejected.owner).await?;
    must!(!released => "a rejected duplicate released the claim of another");
    let held = cx.store.renew(&claim.key, token, LONG).await?;
    must!(held => "a rejected duplicate deleted the claim of another");
    Ok(())
}

pub(super) async fn a_call_that_has_ended_is_not_released(cx: Cx<'_, impl Subject>) -> Verdict {
    for (key, state) in [("a", done("x")), ("b", State::Unknown(Some(b"?".to_vec())))] {
        let claim = cx.claim(key);
        cx.end(&claim, state.clone()).await?;
        let released = cx.store.release(&claim.key, claim.owner).await?;
        must!(!released => "a call that has ended was released");
        cx.stands(key, &state).await?;
    }
    Ok(())
}

pub(super) async fn a_lapsed_claim_can_be_released(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.short_claim("a");
    cx.lose(&claim).await?;
    let released = cx.store.release(&claim.key, claim.owner).await?;
    must!(released => "the owner could not release a claim whose lease had ended");
    granted(cx.other.claim(&cx.claim("a")).await?).map(drop)
}

pub(super) async fn an_unknown_call_is_settled_once(cx: Cx<'_, impl Subject>) -> Verdict {
    let token = cx.lose(&cx.short_claim("a")).await?.token;
    let settled = cx.other.settle(&cx.key("a"), Some(token), &lasting(done("x"))).await?;
    must!(settled => "a call of unknown outcome could not be settled");
    let stored = cx.stands("a", &done("x")).await?;
    must!(stored.record.token.epoch > token.epoch => "the epoch does not grow");
    must!(stored.record.token.owner == Token::BY_HAND => "settling left an owner of a claim");
    let again = cx.store.settle(&cx.key("a"), None, &lasting(done("y"))).await?;
    must!(!again => "a call was settled twice");
    let met = cx.store.claim(&cx.claim("a")).await?;
    must!(matches!(met, Claimed::Settled(_)) => "after settling as done, the reply was {met:?}");

    cx.end(&cx.claim("b"), State::Unknown(Some(b"?".to_vec()))).await?;
    let settled = cx.store.settle(&cx.key("b"), None, &lasting(State::Cancelled(None))).await?;
    must!(settled => "a call that ended as unknown could not be settled");
    granted(cx.other.claim(&cx.claim("b")).await?).map(drop)
}

pub(super) async fn only_unknown_calls_are_settled(cx: Cx<'_, impl Subject>) -> Verdict {
    cx.run(&cx.claim("inflight")).await?;
    cx.end(&cx.claim("done"), done("x")).await?;
    cx.end(&cx.claim("failed"), State::Failed(b"no".to_vec(), Again::Never)).await?;
    for key in ["inflight", "done", "failed", "none"] {
        let settled = cx.store.settle(&cx.key(key), None, &lasting(done("y"))).await?;
        must!(!settled => "{key}: a call whose outcome is not unknown was settled");
    }
    cx.stands("done", &done("x")).await?;
    cx.stands("inflight", &State::Inflight).await.map(drop)
}

pub(super) async fn a_later_run_is_not_settled(cx: Cx<'_, impl Subject>) -> Verdict {
    let (old, new) = taken_over(cx).await?;
    let key = cx.key("a");
    cx.other.finalize(&key, new, &lasting(State::Unknown(Some(b"?".to_vec())))).await?;
    let settled = cx.store.settle(&key, Some(old), &lasting(State::Cancelled(None))).await?;
    must!(!settled => "the resolution of an earlier run settled a later one");
    must!(
        cx.store.settle(&key, Some(new), &lasting(State::Cancelled(None))).await?
            => "the later run could not be settled"
    );
    Ok(())
}

pub(super) async fn a_former_owner_records_nothing_once_settled(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let claim = cx.short_claim("a");
    let token = cx.lose(&claim).await?.token;
    cx.other.settle(&claim.key, Some(token), &lasting(done("settled"))).await?;
    let late = cx.store.finalize(&claim.key, token, &lasting(done("late"))).await?;
    must!(!late => "the former owner recorded its end after the settlement");
    must!(!cx.store.renew(&claim.key, token, LONG).await? => "the former owner renewed its lease after the settlement");
    must!(!cx.store.release(&claim.key, claim.owner).await? => "the former owner released its claim after the settlement");
    cx.stands("a", &done("settled")).await.map(drop)
}

pub(super) async fn a_cleared_record_is_gone_in_every_state(cx: Cx<'_, impl Subject>) -> Verdict {
    let token = cx.run(&cx.claim("inflight")).await?.token;
    cx.end(&cx.claim("done"), done("x")).await?;
    cx.end(&cx.claim("unknown"), State::Unknown(None)).await?;
    for key in ["inflight", "done", "unknown"] {
        must!(cx.other.clear(&cx.key(key)).await? => "{key}: there was no record to clear");
        must!(!cx.other.clear(&cx.key(key)).await? => "{key}: the record was cleared twice");
        must!(cx.read(key).await?.is_none() => "{key}: the record is still there");
    }
    let key = cx.key("inflight");
    let late = cx.store.finalize(&key, token, &lasting(done("late"))).await?;
    must!(!late => "a cleared call recorded its end");
    for key in ["inflight", "done", "unknown"] {
        granted(cx.store.claim(&cx.claim(key)).await?)?;
    }
    Ok(())
}
