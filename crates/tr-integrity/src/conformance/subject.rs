//! The store under test, and helpers that the cases share.
use crate::store::{Entry, Revision, SessionStore, StoreError, StoreErrorKind};
use std::{
    future::ready,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};
pub(super) use tr_core::conformance::Verdict;

/// The store under test, and what the cases may do to it.
pub trait Subject: Sync {
    /// A client of the store.
    fn store(&self) -> Arc<dyn SessionStore>;

    /// A second client of the same sessions, as another process would have; by default another one
    /// from [`store`](Self::store).
    fn another(&self) -> Arc<dyn SessionStore> {
        self.store()
    }

    /// Stops the store as a crash would and starts it again; `false` if it cannot, and then the
    /// restart case is skipped. Existing clients reconnect by themselves, or the case calls
    /// [`store`](Self::store) again.
    fn restart(&self) -> impl Future<Output = bool> {
        ready(false)
    }
}

/// A running case: its store, another client, and sessions of its own.
pub(super) struct Case<'s, S> {
    pub(super) subject: &'s S,
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) other: Arc<dyn SessionStore>,
    seed: u64,
}

/// What each case is given.
pub(super) type Cx<'c, S> = &'c Case<'c, S>;

impl<'s, S: Subject> Case<'s, S> {
    pub(super) fn new(subject: &'s S) -> Self {
        let seed = RandomState::new().hash_one("case");
        Self { subject, store: subject.store(), other: subject.another(), seed }
    }

    /// A session id that only this case uses.
    pub(super) fn session(&self, name: &str) -> String {
        format!("{:016x}.{name}", self.seed)
    }

    /// The common prefix of this case's session ids.
    pub(super) fn prefix(&self) -> String {
        self.session("")
    }

    /// Appends entries until the session has `count`; returns all of them.
    pub(super) async fn written(&self, session: &str, count: u64) -> Verdict<Vec<Entry>> {
        let mut written: Vec<Entry> = Vec::new();
        for number in 1..=count {
            let next = entry(number, number + 100, &format!("{session}: {number}"));
            grow(&self.store, session, &mut written, next).await?;
        }
        Ok(written)
    }

    /// A new session, and its first entries.
    pub(super) async fn begun(&self, name: &str, count: u64) -> Verdict<(String, Vec<Entry>)> {
        let session = self.session(name);
        let written = self.written(&session, count).await?;
        Ok((session, written))
    }

    /// Fails unless `session` holds exactly these entries.
    pub(super) async fn holds(&self, session: &str, entries: &[Entry]) -> Verdict {
        for client in [&self.store, &self.other] {
            let found = client.load(session).await?;
            if found != entries {
                let bodies = |entries: &[Entry]| {
                    let body = |entry: &Entry| {
                        let shown = &entry.body[..entry.body.len().min(40)];
                        format!("{:?} {}", entry.revision, String::from_utf8_lossy(shown))
                    };
                    entries.iter().map(body).collect::<Vec<_>>()
                };
                let (expected, found) = (bodies(entries), bodies(&found));
                return Err(format!("{session:?} has {found:?} and not {expected:?}").into());
            }
        }
        Ok(())
    }
}

/// Appends an entry after those that are written.
pub(super) async fn grow(
    client: &Arc<dyn SessionStore>,
    session: &str,
    written: &mut Vec<Entry>,
    next: Entry,
) -> Verdict {
    client.append(session, written.last().map(|last| last.revision), &next).await?;
    written.push(next);
    Ok(())
}

pub(super) fn entry(number: u64, stamp: u64, body: &str) -> Entry {
    Entry { revision: Revision { number, stamp }, at: 1_000 + number, body: body.into() }
}

/// Fails unless the operation conflicted with this head.
pub(super) fn conflicts<T>(end: Result<T, StoreError>, head: Option<Revision>) -> Verdict {
    match end {
        Ok(_) => Err("it was kept and not refused".into()),
        Err(error) if error.kind() == StoreErrorKind::Conflict { head } => Ok(()),
        Err(error) => {
            Err(format!("the head is {head:?}, the error {:?}: {error}", error.kind()).into())
        }
    }
}

/// Fails the case unless `holds`.
pub(super) fn must(holds: bool, what: &str) -> Verdict {
    if holds { Ok(()) } else { Err(what.into()) }
}
