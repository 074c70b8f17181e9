//! Cases: watching a call of another process.
use super::subject::*;
use crate::{
    protocol::{State, Token},
    store::{Claimed, RecordStore, Seen, StoreError},
};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// What a second caller has to watch.
async fn seen<S: Subject>(cx: Cx<'_, S>, key: &str) -> Verdict<Seen> {
    match cx.other.claim(&cx.claim(key)).await? {
        Claimed::Busy { seen, .. } => Ok(seen),
        other => Err(format!("expected `Busy` for a call in flight, got {other:?}").into()),
    }
}

/// Watches through one client while the other client makes a change, which must wake the watcher.
async fn wakes<S: Subject>(
    cx: Cx<'_, S>,
    key: &str,
    seen: Seen,
    act: impl AsyncFnOnce(&dyn RecordStore) -> Result<bool, StoreError>,
) -> Verdict {
    let key = cx.key(key);
    let mut watch = pin!(cx.other.watch(&key, seen));
    // Long enough for the watch to be in place after one poll.
    let early = poll_fn(|task| Poll::Ready(watch.as_mut().poll(task))).await;
    act(&*cx.store).await?;
    if early.is_ready() {
        return Ok(()); // A watch may end early.
    }
    match tokio::time::timeout(PATIENCE, watch).await {
        Ok(end) => Ok(end?),
        Err(_) => Err(format!("the watcher was not woken within {PATIENCE:?}").into()),
    }
}

pub(super) async fn a_watcher_wakes_when_the_call_ends(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.claim("a");
    let token = cx.run(&claim).await?.token;
    let seen = seen(cx, "a").await?;
    let end = lasting(done("x"));
    wakes(cx, "a", seen, async |store| store.finalize(&claim.key, token, &end).await).await
}

pub(super) async fn a_watcher_wakes_when_the_claim_is_released(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let claim = cx.claim("a");
    cx.run(&claim).await?;
    let seen = seen(cx, "a").await?;
    wakes(cx, "a", seen, async |store| store.release(&claim.key, claim.owner).await).await
}

pub(super) async fn a_watcher_wakes_when_the_record_is_cleared(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let claim = cx.claim("a");
    cx.run(&claim).await?;
    let seen = seen(cx, "a").await?;
    wakes(cx, "a", seen, async |store| store.clear(&claim.key).await).await
}

pub(super) async fn a_watcher_wakes_when_the_call_is_settled(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.short_claim("a");
    cx.lose(&claim).await?;
    let seen = cx.stands("a", &State::Unknown(None)).await?.seen();
    let end = lasting(done("x"));
    wakes(cx, "a", seen, async |store| store.settle(&claim.key, None, &end).await).await
}

pub(super) async fn a_watcher_wakes_at_once_after_a_change(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.claim("a");
    let token = cx.run(&claim).await?.token;
    let then = seen(cx, "a").await?;
    cx.store.finalize(&claim.key, token, &lasting(done("x"))).await?;
    let never = Seen { token: Token { epoch: 1, owner: 1 }, version: 1 };
    for (key, seen) in [("a", then), ("none", never)] {
        let key = cx.key(key);
        match tokio::time::timeout(PATIENCE, cx.other.watch(&key, seen)).await {
            Ok(end) => end?,
            Err(_) => return Err("a watch missed a change that came before it".into()),
        }
    }
    Ok(())
}

pub(super) async fn a_renewal_is_no_change(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.claim("a");
    let token = cx.run(&claim).await?.token;
    let before = seen(cx, "a").await?;
    must!(before.token == token => "the record belongs to another claim: {before:?}");
    cx.store.renew(&claim.key, token, LONG).await?;
    let after = seen(cx, "a").await?;
    must!(after == before => "a renewal changed {before:?} to {after:?}, which wakes all watchers");
    Ok(())
}
