//! Cases: `list` and `check`.
use super::subject::{Cx, Subject, Verdict, entry, must};
use crate::store::{Entry, Head};

/// Lists the sessions of this case, page by page.
async fn listed<S: Subject>(cx: Cx<'_, S>, page: usize) -> Verdict<Vec<Head>> {
    let mut listed: Vec<Head> = Vec::new();
    // Skips the ids of other cases that sort before this prefix.
    let mut after = cx.prefix();
    loop {
        let heads = cx.other.list(Some(&after), page).await?;
        must(heads.len() <= page, "a list is longer than its limit")?;
        let is_later = heads.iter().all(|head| head.session > after);
        must(is_later, "a list has sessions that don't come after the one that was named")?;
        let is_last = heads.len() < page;
        let ours = heads.iter().take_while(|head| head.session.starts_with(&cx.prefix())).count();
        let is_over = ours < heads.len() || is_last;
        listed.extend(heads.into_iter().take(ours));
        match listed.last() {
            Some(last) if !is_over => after = last.session.clone(),
            _ => return Ok(listed),
        }
    }
}

pub(super) async fn sessions_are_listed_in_the_order_of_their_bytes(
    cx: Cx<'_, impl Subject>,
) -> Verdict {
    let mut sessions =
        ["b", "a", "B", "a b", "a-b", "\u{e9}", "z", "\u{1f980}", "_", "10", "9", "a\0"]
            .map(|id| cx.session(id));
    for session in &sessions {
        cx.written(session, 1).await?;
    }
    sessions.sort();
    let heads = listed(cx, 100).await?;
    let found: Vec<&str> = heads.iter().map(|head| &*head.session).collect();
    must(found == sessions, &format!("listed are {found:?} and not {sessions:?}"))
}

pub(super) async fn sessions_are_listed_in_pages(cx: Cx<'_, impl Subject>) -> Verdict {
    let sessions: Vec<String> = (10..27).map(|n| cx.session(&n.to_string())).collect();
    for session in &sessions {
        cx.written(session, 2).await?;
    }
    for page in [1, 5, 17, 18] {
        let heads = listed(cx, page).await?;
        let found: Vec<&str> = heads.iter().map(|head| &*head.session).collect();
        must(found == sessions, &format!("pages of {page} give {found:?}"))?;
    }
    must(cx.store.list(None, 0).await?.is_empty(), "a list of none has some")?;
    let first = cx.store.list(None, 1).await?;
    must(first.len() == 1, "from the beginning there is none")
}

pub(super) async fn a_list_tells_the_last_entry(cx: Cx<'_, impl Subject>) -> Verdict {
    let (one, other, gone) = (cx.session("1"), cx.session("2"), cx.session("3"));
    let written = [cx.written(&one, 3).await?, cx.written(&other, 3).await?];
    cx.written(&gone, 1).await?;
    cx.store.delete(&gone).await?;
    let base = Entry { revision: written[0][2].revision, at: 7, ..entry(3, 0, "base") };
    cx.store.compact(&one, &base).await?;
    let heads = listed(cx, 100).await?;
    let expected = [(one, &base), (other, &written[1][2])].map(|(session, last)| Head {
        session,
        revision: last.revision,
        at: last.at,
    });
    must(heads == expected, &format!("listed are {heads:?} and not {expected:?}"))
}

pub(super) async fn a_check_answers(cx: Cx<'_, impl Subject>) -> Verdict {
    cx.store.check().await?;
    cx.other.check().await?;
    Ok(())
}
