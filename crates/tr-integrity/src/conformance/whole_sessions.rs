//! Conformance cases for session stores: compaction, deletion, a new session under a deleted id, unusual
//! ids, restart. The name of each function is the rule; `conformance.rs` lists and runs them.
use super::subject::{Case, Cx, Subject, Verdict, conflicts, entry, grow, must};
use crate::store::{Entry, Revision};

pub(super) async fn a_session_created_after_a_deletion_is_another_one(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let session = cx.session("begun again");
    let old = cx.written(&session, 2).await?;
    cx.other.delete(&session).await?;
    let mut new: Vec<Entry> = Vec::new();
    for number in 1..=2 {
        let next = entry(number, number + 500, "new");
        grow(&cx.other, &session, &mut new, next).await?;
    }
    // The new log has as many entries as the old one had.
    let end = cx.store.append(&session, Some(old[1].revision), &entry(3, 3, "x")).await;
    conflicts(end, Some(new[1].revision))?;
    let end = cx.store.append(&session, Some(old[0].revision), &old[1]).await;
    conflicts(end, Some(new[1].revision))?;
    cx.holds(&session, &new).await
}

pub(super) async fn odd_ids_are_different_sessions(cx: Cx<'_, impl Subject>) -> Verdict {
    let plain = [
        "", " ", "  ", "a", "A", "a ", "a\0", "a\0b", "%", "_", "a%", "'", "1", "01", "1.0",
        "null", "a/b", "a\\b", "\n",
    ];
    let others = ["\"; --", "\u{e9}", "e\u{301}", "\u{1f980}"];
    let long = ["a", "b"].map(|end| "x".repeat(2_000) + end);
    let ids = plain.into_iter().chain(others).chain(long.iter().map(String::as_str));
    let sessions: Vec<String> = ids.map(|id| cx.session(id)).collect();
    for (number, session) in (1..).zip(&sessions) {
        cx.store.append(session, None, &entry(1, number, session)).await?;
    }
    for (number, session) in (1..).zip(&sessions) {
        cx.holds(session, &[entry(1, number, session)]).await?;
    }
    Ok(())
}

pub(super) async fn a_compacted_session_is_its_base(cx: Cx<'_, impl Subject>) -> Verdict {
    let (session, written) = cx.begun("compacted", 5).await?;
    let base = Entry { revision: written[4].revision, ..entry(5, 0, "all of it") };
    cx.store.compact(&session, &base).await?;
    cx.holds(&session, &[base]).await
}

pub(super) async fn a_compacted_session_goes_on(cx: Cx<'_, impl Subject>) -> Verdict {
    let (session, written) = cx.begun("goes on", 5).await?;
    let head = written[4].revision;
    let base = Entry { revision: head, ..entry(5, 0, "all of it") };
    cx.store.compact(&session, &base).await?;
    // Another writer, which loaded the session before the compaction, appends after it.
    let next = entry(6, 6, "more");
    cx.other.append(&session, Some(head), &next).await?;
    cx.holds(&session, &[base, next]).await
}

pub(super) async fn a_base_of_another_head_is_a_conflict(cx: Cx<'_, impl Subject>) -> Verdict {
    let (session, written) = cx.begun("stale base", 3).await?;
    let head = written[2].revision;
    let others =
        [written[1].revision, Revision { stamp: 9, ..head }, Revision { number: 4, ..head }];
    for revision in others {
        let base = Entry { revision, ..entry(1, 1, "stale") };
        conflicts(cx.other.compact(&session, &base).await, Some(head))?;
    }
    cx.holds(&session, &written).await
}

pub(super) async fn a_base_of_no_session_is_a_conflict(cx: Cx<'_, impl Subject>) -> Verdict {
    let session = cx.session("no base");
    conflicts(cx.store.compact(&session, &entry(1, 1, "base")).await, None)?;
    cx.holds(&session, &[]).await
}

pub(super) async fn a_compaction_sent_again_changes_nothing(cx: Cx<'_, impl Subject>) -> Verdict {
    let (session, written) = cx.begun("compacted twice", 3).await?;
    let base = Entry { revision: written[2].revision, ..entry(3, 0, "all of it") };
    for client in [&cx.store, &cx.other, &cx.store] {
        client.compact(&session, &base).await?;
        cx.holds(&session, std::slice::from_ref(&base)).await?;
    }
    Ok(())
}

pub(super) async fn a_compaction_spares_other_sessions(cx: Cx<'_, impl Subject>) -> Verdict {
    let (one, other) = (cx.session("one"), cx.session("other"));
    let spared = cx.written(&other, 3).await?;
    let written = cx.written(&one, 3).await?;
    let base = Entry { revision: written[2].revision, ..entry(3, 0, "all of it") };
    cx.store.compact(&one, &base).await?;
    cx.holds(&other, &spared).await
}

pub(super) async fn a_deleted_session_is_gone(cx: Cx<'_, impl Subject>) -> Verdict {
    let session = cx.session("deleted");
    must(
        !cx.store.delete(&session).await?,
        "`delete` returned true for a session that never existed",
    )?;
    cx.written(&session, 3).await?;
    must(cx.other.delete(&session).await?, "`delete` returned false for a session that existed")?;
    must(
        !cx.store.delete(&session).await?,
        "`delete` returned true for a session that was already deleted",
    )?;
    cx.holds(&session, &[]).await
}

pub(super) async fn a_writer_of_a_deleted_session_gets_a_conflict(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let (session, written) = cx.begun("deleted", 2).await?;
    cx.other.delete(&session).await?;
    let head = written[1].revision;
    conflicts(cx.store.append(&session, Some(head), &entry(3, 3, "x")).await, None)?;
    let base = Entry { revision: head, ..entry(2, 0, "base") };
    conflicts(cx.store.compact(&session, &base).await, None)?;
    cx.holds(&session, &[]).await
}

pub(super) async fn a_deletion_spares_other_sessions(cx: Cx<'_, impl Subject>) -> Verdict {
    let sessions = ["a%", "a", "ab", "A"].map(|id| cx.session(id));
    for session in &sessions {
        cx.written(session, 2).await?;
    }
    cx.store.delete(&sessions[1]).await?;
    for session in [&sessions[0], &sessions[2], &sessions[3]] {
        let left = cx.store.load(session).await?;
        must(left.len() == 2, &format!("{session:?} has {} entries instead of 2", left.len()))?;
    }
    Ok(())
}

pub(super) async fn entries_survive_a_restart(cx: Cx<'_, impl Subject>) -> Verdict {
    let (session, compacted) = (cx.session("kept"), cx.session("compacted"));
    let mut written = cx.written(&session, 3).await?;
    let head = cx.written(&compacted, 2).await?[1].revision;
    let base = Entry { revision: head, ..entry(2, 0, "base") };
    cx.store.compact(&compacted, &base).await?;
    if !cx.subject.restart().await {
        return Ok(());
    }
    let cx = Case::new(cx.subject);
    cx.holds(&session, &written).await?;
    cx.holds(&compacted, &[base]).await?;
    grow(&cx.store, &session, &mut written, entry(4, 4, "after it")).await?;
    cx.holds(&session, &written).await
}
