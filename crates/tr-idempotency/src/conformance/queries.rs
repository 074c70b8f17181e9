//! Cases: what operators list and flush, and what survives a restart.
use super::subject::*;
use crate::{
    protocol::{Again, State},
    store::{ClaimRequest, Claimed, Query, Selector, StateFilter},
};
use std::collections::HashSet;
use tr_core::canonical::Digest;

fn query(selector: Selector, state: StateFilter) -> Query {
    Query { selector, state }
}

/// The keys that a query lists; fails if the count differs.
async fn found<S: Subject>(cx: Cx<'_, S>, query: &Query, names: &[&str]) -> Verdict<Vec<String>> {
    let listed = cx.other.list(query, 1_000, true).await?.records;
    let count = cx.store.count(query).await?;
    if count != listed.len() as u64 {
        return Err(format!("{query:?}: counts {count} records and lists {}", listed.len()).into());
    }
    let keys: HashSet<_> = listed.iter().map(|stored| stored.key).collect();
    let mut found: Vec<_> =
        names.iter().filter(|name| keys.contains(&cx.key(name))).map(|&it| it.to_owned()).collect();
    found.resize(listed.len().max(found.len()), "another's".to_owned());
    Ok(found)
}

pub(super) async fn a_record_reads_as_it_stands(cx: Cx<'_, impl Subject>) -> Verdict {
    let claim = cx.claim("a");
    let token = cx.run(&claim).await?.token;
    for store in [&cx.store, &cx.other] {
        let Some(stored) = store.read(&claim.key).await? else {
            return Err("a call in flight has no record".into());
        };
        let record = &stored.record;
        must!(stored.key == claim.key && record.token == token => "the record belongs to another claim: {stored:?}");
        must!(record.digest == claim.digest && record.mutating => "the record lacks the digest or the effect of the claim");
        must!(record.unknown_ttl == claim.ttls.unknown => "the record lacks the time to live of `unknown`");
        must!(
            record.claimed_at <= stored.now && record.until > stored.now
                => "wrong times: claimed {}, until {}, at {}", record.claimed_at, record.until, stored.now
        );
    }
    must!(cx.read("none").await?.is_none() => "a record was read that was never written");
    Ok(())
}

pub(super) async fn records_are_found_by_key_session_and_tool(cx: Cx<'_, impl Subject>) -> Verdict {
    for (key, session, tool) in [
        ("a", Some("one"), "mail.send"),
        ("b", Some("one"), "mail.read"),
        ("c", Some("two"), "pay"),
        ("d", None, "mail.%"),
    ] {
        let mut claim = cx.claim(key);
        claim.session = session.map(|session| cx.name(session));
        claim.digest = Digest::of_bytes(key);
        claim.tool = format!("{}.{tool}", cx.name("x"));
        cx.end(&claim, done("x")).await?;
    }
    let all = ["a", "b", "c", "d"];
    let tool = |tool: &str| Selector::Tool(format!("{}.{tool}", cx.name("x")));
    for (selector, expected) in [
        (Selector::Key(cx.key("b")), &["b"][..]),
        (Selector::Key(cx.key("none")), &[]),
        (Selector::Session(cx.name("one")), &["a", "b"]),
        (Selector::Session(cx.name("two")), &["c"]),
        (Selector::Session(cx.name("three")), &[]),
        (Selector::Equal(cx.name("one"), Digest::of_bytes("a")), &["a"]),
        (Selector::Equal(cx.name("two"), Digest::of_bytes("a")), &[]),
        (tool("mail"), &["a", "b", "d"]),
        (tool("mail.send"), &["a"]),
        (tool("mail.%"), &["d"]),
        (tool("p_y"), &[]),
    ] {
        let query = query(selector, StateFilter::Any);
        let found = found(cx, &query, &all).await?;
        must!(found == expected => "{query:?} finds {found:?}, not {expected:?}");
    }
    let some = cx.store.list(&query(tool(""), StateFilter::Any), 2, false).await?.records;
    must!(some.len() == 2 => "a limit of 2 lists {}", some.len());
    Ok(())
}

pub(super) async fn records_are_found_by_a_range_of_keys(cx: Cx<'_, impl Subject>) -> Verdict {
    let all = ["a", "b", "c", "d"];
    for name in all {
        cx.end(&cx.claim(name), done("x")).await?;
    }
    let mut keys: Vec<_> = all.iter().map(|name| cx.key(name)).collect();
    keys.sort_unstable();
    for first in 0..keys.len() {
        for last in first..keys.len() {
            let query = query(Selector::Keys(keys[first]..=keys[last]), StateFilter::Any);
            let listed = cx.other.list(&query, 1_000, false).await?.records;
            let found: HashSet<_> = listed.iter().map(|stored| stored.key).collect();
            // Others' keys may lie between them.
            let own = keys.iter().filter(|key| found.contains(key)).copied().collect::<Vec<_>>();
            let expected = &keys[first..=last];
            must!(own == expected => "{query:?} finds {own:?}, not {expected:?}");
            let beyond = found.iter().find(|key| !(keys[first]..=keys[last]).contains(key));
            must!(beyond.is_none() => "{query:?} finds {beyond:?}");
        }
    }
    Ok(())
}

pub(super) async fn stale_and_unknown_calls_are_found(cx: Cx<'_, impl Subject>) -> Verdict {
    let old = cx.claim("old");
    cx.run(&old).await?;
    cx.lose(&cx.short_claim("lost")).await?;
    cx.run(&cx.claim("new")).await?;
    cx.end(&cx.claim("unknown"), State::Unknown(Some(b"?".to_vec()))).await?;
    cx.end(&cx.claim("done"), done("x")).await?;
    let all = ["old", "lost", "new", "unknown", "done"];
    let session = || Selector::Session(cx.name("session"));
    for (state, expected) in [
        (StateFilter::Inflight { at_least: cx.short() }, &["old"][..]),
        (StateFilter::Inflight { at_least: 0 }, &["old", "new"]),
        (StateFilter::Unknown, &["lost", "unknown"]),
        (StateFilter::Any, &all),
    ] {
        let found = found(cx, &query(session(), state), &all).await?;
        must!(found == expected => "{state:?} finds {found:?}, not {expected:?}");
    }
    Ok(())
}

pub(super) async fn a_flush_keeps_calls_that_may_run_twice(cx: Cx<'_, impl Subject>) -> Verdict {
    let failed = State::Failed(b"no".to_vec(), Again::Never);
    cx.run(&cx.claim("inflight")).await?;
    cx.end(&cx.claim("unknown"), State::Unknown(None)).await?;
    cx.lose(&cx.short_claim("lost")).await?;
    let read = ClaimRequest { mutating: false, ..cx.claim("read") };
    cx.end(&read, State::Unknown(None)).await?;
    cx.end(&cx.claim("done"), done("x")).await?;
    cx.end(&cx.claim("failed"), failed).await?;
    let mut elsewhere = cx.claim("elsewhere");
    elsewhere.session = Some(cx.name("other"));
    cx.end(&elsewhere, done("x")).await?;

    for key in ["inflight", "unknown", "lost"] {
        let gone = cx.store.flush(&query(Selector::Key(cx.key(key)), StateFilter::Any)).await?;
        must!(gone == 0 => "{key}: a flush by key deleted it, and the call may run twice");
    }
    let session = query(Selector::Session(cx.name("session")), StateFilter::Any);
    let gone = cx.other.flush(&session).await?;
    for key in ["inflight", "unknown", "lost"] {
        must!(cx.read(key).await?.is_some() => "{key}: a flush deleted it, and the call may run twice");
    }
    for key in ["read", "done", "failed"] {
        must!(cx.read(key).await?.is_none() => "{key}: the record is still there");
    }
    must!(gone == 3 => "a flush of 3 records returned {gone}");
    cx.stands("elsewhere", &done("x")).await?;
    let again = cx.store.flush(&session).await?;
    must!(again == 0 => "a second flush returned {again}");
    let one = query(Selector::Key(cx.key("elsewhere")), StateFilter::Any);
    must!(cx.store.flush(&one).await? == 1 => "a flush by key did not delete a settled record");
    must!(cx.read("elsewhere").await?.is_none() => "a settled record is still there after a flush by key");
    Ok(())
}

pub(super) async fn a_sweep_deletes_only_expired_records(cx: Cx<'_, impl Subject>) -> Verdict {
    let over = cx.claim("over");
    let token = cx.run(&over).await?.token;
    let end = crate::store::End { state: done("x"), ttl: cx.short() };
    cx.store.finalize(&over.key, token, &end).await?;
    cx.end(&cx.claim("done"), done("x")).await?;
    cx.run(&cx.claim("inflight")).await?;
    cx.lose(&cx.short_claim("lost")).await?;
    cx.other.sweep().await?;
    must!(cx.read("over").await?.is_none() => "an expired record is still there after a sweep");
    cx.stands("done", &done("x")).await?;
    cx.stands("inflight", &State::Inflight).await?;
    cx.stands("lost", &State::Unknown(None)).await.map(drop)
}

pub(super) async fn a_check_answers(cx: Cx<'_, impl Subject>) -> Verdict {
    for warning in cx.store.check().await? {
        must!(!warning.trim().is_empty() => "a warning is empty");
    }
    Ok(())
}

pub(super) async fn a_mark_is_set_once_and_stays(cx: Cx<'_, impl Subject>) -> Verdict {
    // A store that others share may have one.
    let first = cx.store.mark(&[], &[]).await?;
    let ours = cx.name("mark").into_bytes();
    let set = cx.store.mark(&first, &ours).await?;
    must!(set == ours => "a mark that was set read as {set:?}");
    let late = cx.other.mark(&first, b"late").await?;
    must!(late == ours => "a mark was set in place of another one: {late:?}");
    must!(cx.other.mark(b"late", b"later").await? == ours => "a mark was replaced by one who did not know it");
    cx.end(&cx.claim("done"), done("x")).await?;
    cx.store.flush(&query(Selector::Session(cx.name("session")), StateFilter::Any)).await?;
    must!(cx.other.mark(&[], &[]).await? == ours => "the mark is gone");
    let back = cx.other.mark(&ours, &first).await?;
    must!(back == first => "a mark was not set back: {back:?}");
    Ok(())
}

pub(super) async fn records_survive_a_restart(cx: Cx<'_, impl Subject>) -> Verdict {
    let token = cx.end(&cx.claim("done"), done("answer")).await?;
    let running = cx.claim("inflight");
    let held = cx.run(&running).await?.token;
    cx.end(&cx.claim("unknown"), State::Unknown(Some(b"?".to_vec()))).await?;
    if !cx.subject.restart().await {
        return Ok(());
    }
    let cx = &cx.reconnected();
    let stored = cx.stands("done", &done("answer")).await?;
    must!(stored.record.token == token => "the record belongs to another claim: {stored:?}");
    cx.stands("unknown", &State::Unknown(Some(b"?".to_vec()))).await?;
    let met = cx.other.claim(&cx.claim("inflight")).await?;
    must!(matches!(met, Claimed::Busy { .. }) => "the reply for a call in flight was {met:?}");
    let recorded = cx.store.finalize(&running.key, held, &lasting(done("x"))).await?;
    must!(recorded => "a claim from before the restart is lost");
    let grant = cx.run(&cx.claim("new")).await?;
    must!(grant.token.epoch > held.epoch => "epochs started again after the restart: {:?}", grant.token);
    Ok(())
}
