//! Cases: appends; no entry is lost, and of several concurrent writers exactly one wins.
use super::subject::{Cx, Subject, Verdict, conflicts, entry, grow, must};
use crate::store::{Entry, Revision, StoreErrorKind};
use futures_util::future::join_all;
use std::task::{Context, Waker};

pub(super) async fn an_unknown_session_has_no_entries(cx: Cx<'_, impl Subject>) -> Verdict {
    cx.holds(&cx.session("none"), &[]).await
}

pub(super) async fn entries_come_back_in_order_and_as_they_are(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let session = cx.session("order");
    let bodies: [&[u8]; 6] =
        [b"{\"a\": 1}", b"", b"\0\xff\xfe\n'\"\\", b" ", "\u{1f980}".as_bytes(), b"%_"];
    let mut written: Vec<Entry> = Vec::new();
    for (number, body) in (1..).zip(bodies.iter().cycle().take(20)) {
        let revision = Revision { number, stamp: 1_000 - number };
        let next = Entry { revision, at: 2_000 - number, body: body.to_vec() };
        grow(&cx.store, &session, &mut written, next).await?;
    }
    cx.holds(&session, &written).await
}

pub(super) async fn long_entries_come_back_whole(cx: Cx<'_, impl Subject>) -> Verdict {
    let session = cx.session("long");
    let body: Vec<u8> = (0..1_200_000_u32).map(|at| (at % 251) as u8).collect();
    let first = Entry { body, ..entry(1, 1, "") };
    cx.store.append(&session, None, &first).await?;
    cx.holds(&session, &[first]).await
}

pub(super) async fn any_stamp_comes_back(cx: Cx<'_, impl Subject>) -> Verdict {
    let session = cx.session("stamps");
    let mut written: Vec<Entry> = Vec::new();
    for (number, stamp) in (1..).zip([0, u64::MAX, 1, 1 << 63, (1 << 53) + 1]) {
        let next = Entry { at: (1 << 63) - 1, ..entry(number, stamp, "") };
        grow(&cx.store, &session, &mut written, next).await?;
    }
    cx.holds(&session, &written).await
}

pub(super) async fn another_client_sees_what_was_appended(cx: Cx<'_, impl Subject>) -> Verdict {
    let session = cx.session("shared");
    let mut written: Vec<Entry> = Vec::new();
    for number in 1..=10 {
        let next = entry(number, number, "turn");
        let writer = if number % 2 == 0 { &cx.store } else { &cx.other };
        grow(writer, &session, &mut written, next).await?;
        cx.holds(&session, &written).await?;
    }
    Ok(())
}

pub(super) async fn an_entry_behind_an_old_head_is_a_conflict(cx: Cx<'_, impl Subject>) -> Verdict {
    let (session, written) = cx.begun("old", 3).await?;
    for old in &written[..2] {
        let late = entry(old.revision.number + 1, 9, "late");
        let end = cx.other.append(&session, Some(old.revision), &late).await;
        conflicts(end, Some(written[2].revision))?;
    }
    cx.holds(&session, &written).await
}

pub(super) async fn an_entry_behind_no_head_is_a_conflict_if_there_is_one(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let (session, written) = cx.begun("begun", 2).await?;
    let end = cx.other.append(&session, None, &entry(1, 9, "late")).await;
    conflicts(end, Some(written[1].revision))?;
    cx.holds(&session, &written).await
}

pub(super) async fn an_entry_behind_a_head_that_is_not_there_is_a_conflict(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let (none, some) = (cx.session("none"), cx.session("some"));
    let nowhere = Revision { number: 7, stamp: 7 };
    conflicts(cx.store.append(&none, Some(nowhere), &entry(8, 8, "x")).await, None)?;
    cx.holds(&none, &[]).await?;
    let written = cx.written(&some, 2).await?;
    let end = cx.store.append(&some, Some(nowhere), &entry(8, 8, "x")).await;
    conflicts(end, Some(written[1].revision))?;
    cx.holds(&some, &written).await
}

pub(super) async fn another_writers_entry_of_the_same_number_is_a_conflict(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let (session, written) = cx.begun("stamp", 2).await?;
    // The same number after the same entry, with the same bytes: only the stamp differs.
    let twin = Entry { revision: Revision { number: 2, stamp: 9 }, ..written[1].clone() };
    let end = cx.other.append(&session, Some(written[0].revision), &twin).await;
    conflicts(end, Some(written[1].revision))?;
    // After a revision that has the head's number but was never written.
    let end = cx.other.append(&session, Some(twin.revision), &entry(3, 9, "x")).await;
    conflicts(end, Some(written[1].revision))?;
    cx.holds(&session, &written).await
}

pub(super) async fn of_many_writers_one_wins(cx: Cx<'_, impl Subject>) -> Verdict {
    let (session, mut written) = cx.begun("race", 1).await?;
    for round in 0..10 {
        let head = written[written.len() - 1].revision;
        let entries: Vec<Entry> = (0..8)
            .map(|writer| entry(head.number + 1, round * 100 + writer, &format!("by {writer}")))
            .collect();
        let appends = entries.iter().enumerate().map(|(at, next)| {
            let client = if at % 2 == 0 { &cx.store } else { &cx.other };
            client.append(&session, Some(head), next)
        });
        let ends = join_all(appends).await;
        let won: Vec<_> = ends.iter().zip(&entries).filter(|(end, _)| end.is_ok()).collect();
        let [(_, winner)] = won[..] else {
            return Err(format!(
                "{} of 8 appends behind the same head succeeded, expected 1",
                won.len()
            )
            .into());
        };
        for lost in ends.iter().filter_map(|end| end.as_ref().err()) {
            let head = Some(winner.revision);
            let told = lost.kind() == StoreErrorKind::Conflict { head };
            must(told, &format!("a losing writer gets {lost}"))?;
        }
        written.push((*winner).clone());
        cx.holds(&session, &written).await?;
    }
    Ok(())
}

pub(super) async fn writers_of_different_sessions_do_not_meet(cx: Cx<'_, impl Subject>) -> Verdict {
    let sessions: Vec<String> = (0..8).map(|n| cx.session(&format!("own-{n}"))).collect();
    let entries: Vec<Entry> = (0..8).map(|n| entry(1, n, &format!("of {n}"))).collect();
    let appends = sessions.iter().zip(&entries).enumerate().map(|(at, (session, first))| {
        let client = if at % 2 == 0 { &cx.store } else { &cx.other };
        client.append(session, None, first)
    });
    for end in join_all(appends).await {
        end?;
    }
    for (session, first) in sessions.iter().zip(entries) {
        cx.holds(session, &[first]).await?;
    }
    Ok(())
}

pub(super) async fn an_entry_sent_again_is_recognized(cx: Cx<'_, impl Subject>) -> Verdict {
    let (session, written) = cx.begun("again", 2).await?;
    for client in [&cx.store, &cx.other] {
        client.append(&session, Some(written[0].revision), &written[1]).await?;
    }
    cx.holds(&session, &written).await
}

pub(super) async fn an_entry_sent_again_is_recognized_behind_others(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let (session, written) = cx.begun("again", 4).await?;
    cx.store.append(&session, None, &written[0]).await?;
    cx.other.append(&session, Some(written[0].revision), &written[1]).await?;
    cx.holds(&session, &written).await
}

pub(super) async fn an_append_that_was_dropped_is_there_or_not(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let (session, mut written) = cx.begun("dropped", 1).await?;
    for number in 2..12 {
        let next = entry(number, number, "dropped");
        let head = written[written.len() - 1].revision;
        let mut append = cx.store.append(&session, Some(head), &next);
        for _ in 2..number {
            if append.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                break;
            }
        }
        drop(append);
        // The resent append reports success, whether or not the first one was applied.
        cx.store.append(&session, Some(head), &next).await?;
        written.push(next);
        cx.holds(&session, &written).await?;
    }
    Ok(())
}
