//! A store that makes one mistake.
use super::mistake::Mistake;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};
use tr_integrity::store::{Entry, Head, Revision, SessionStore, StoreError, StoreFuture};

type Logs = BTreeMap<String, Vec<Entry>>;

#[derive(Clone, Debug)]
pub(crate) struct Broken {
    mistake: Mistake,
    logs: Arc<Mutex<Logs>>,
    /// What this client has read.
    read: Arc<Mutex<HashMap<String, Vec<Entry>>>>,
}

impl Broken {
    pub(crate) fn new(mistake: Mistake) -> Self {
        Self { mistake, logs: Arc::default(), read: Arc::default() }
    }

    /// Another client of the same sessions.
    pub(crate) fn client(&self) -> Self {
        Self { read: Arc::default(), ..self.clone() }
    }

    pub(crate) fn crash(&self) {
        if self.mistake == Mistake::LosesTheLastEntry {
            for log in self.logs.lock().unwrap().values_mut() {
                log.pop();
            }
        }
    }

    fn id(&self, session: &str) -> String {
        match self.mistake {
            Mistake::FoldsCase => session.to_lowercase(),
            Mistake::TrimsIds => session.trim_end().into(),
            Mistake::CutsIdsAtNul => session.split('\0').next().unwrap().into(),
            Mistake::CutsIds => session.chars().take(255).collect(),
            _ => session.into(),
        }
    }

    fn kept(&self, entry: &Entry) -> Entry {
        let mut kept = entry.clone();
        match self.mistake {
            Mistake::KeepsText => {
                kept.body = String::from_utf8_lossy(&kept.body).into_owned().into();
            }
            Mistake::CutsBodies => kept.body.truncate(1 << 20),
            Mistake::RoundsStamps => kept.revision.stamp = kept.revision.stamp as f64 as u64,
            _ => {}
        }
        kept
    }

    fn conflict(&self, log: &[Entry]) -> StoreError {
        match self.mistake {
            Mistake::TellsNoHead => StoreError::conflict(None),
            Mistake::TellsNoConflict => StoreError::refused("the key is there already"),
            _ => StoreError::conflict(head(log)),
        }
    }

    fn append_now(
        &self,
        session: &str,
        after: Option<Revision>,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        let mut logs = self.logs.lock().unwrap();
        let log = logs.entry(self.id(session)).or_default();
        let at = log.iter().position(|there| there.revision == entry.revision);
        let same_number = |there: &Entry| there.revision.number == entry.revision.number;
        let is_known = match self.mistake {
            Mistake::ForgetsItsEntries | Mistake::AppendsAgain => false,
            Mistake::RecognizesTheLastOnly => at.is_some_and(|at| at + 1 == log.len()),
            Mistake::RecognizesByNumber => log.iter().any(same_number),
            _ => at.is_some(),
        };
        if is_known {
            return Ok(());
        }
        let found = head(log);
        let fits = match self.mistake {
            Mistake::AppendsBlindly => true,
            Mistake::IgnoresStamps => {
                found.map(|head| head.number) == after.map(|after| after.number)
            }
            Mistake::AppendsAgain => found == after || at.is_some(),
            Mistake::BeginsAnywhere => found == after || found.is_none(),
            Mistake::OverwritesEntries => {
                let before = |there: &Entry| Some(there.revision) == after;
                found == after || log.iter().any(before)
            }
            _ => found == after,
        };
        if !fits {
            let conflict = self.conflict(log);
            logs.retain(|_, log| !log.is_empty());
            return Err(conflict);
        }
        if self.mistake == Mistake::OverwritesEntries {
            log.retain(|there| there.revision.number < entry.revision.number);
        }
        log.push(self.kept(entry));
        Ok(())
    }

    fn compact_now(&self, session: &str, base: &Entry) -> Result<(), StoreError> {
        let mut logs = self.logs.lock().unwrap();
        let id = self.id(session);
        let log = logs.get(&id).cloned().unwrap_or_default();
        let fits = match self.mistake {
            Mistake::CompactsBlindly => !log.is_empty(),
            Mistake::CompactsNothingIntoSomething => {
                log.is_empty() || head(&log) == Some(base.revision)
            }
            _ => head(&log) == Some(base.revision),
        };
        if !fits {
            return Err(self.conflict(&log));
        }
        let mut base = self.kept(base);
        match self.mistake {
            Mistake::CompactsNothing => return Ok(()),
            Mistake::RenumbersBases => base.revision.number = 1,
            Mistake::CompactsAll => {
                logs.values_mut().for_each(|log| drop(log.drain(..log.len() - 1)));
            }
            _ => {}
        }
        let log = logs.entry(id).or_default();
        if self.mistake != Mistake::KeepsWhatIsBehind {
            log.clear();
        }
        log.push(base);
        Ok(())
    }

    fn load_now(&self, session: &str) -> Vec<Entry> {
        let id = self.id(session);
        let mut log = self.logs.lock().unwrap().get(&id).cloned().unwrap_or_default();
        match self.mistake {
            Mistake::DropsEmptyBodies => log.retain(|entry| !entry.body.is_empty()),
            Mistake::SortsByStamp => log.sort_by_key(|entry| entry.revision.stamp),
            Mistake::ReadsStale => {
                return self.read.lock().unwrap().entry(id).or_insert(log).clone();
            }
            _ => {}
        }
        log
    }

    fn list_now(&self, after: Option<&str>, limit: usize) -> Vec<Head> {
        let logs = self.logs.lock().unwrap();
        let from_included = self.mistake == Mistake::ListsFromIncluded;
        let is_after = |session: &str| {
            after.is_none_or(|after| session > after || (from_included && session == after))
        };
        let mut heads: Vec<Head> = logs
            .iter()
            .filter(|(session, _)| is_after(session))
            .filter_map(|(session, log)| {
                let of = if self.mistake == Mistake::ListsFirstEntries {
                    log.first()
                } else {
                    log.last()
                };
                let nowhere =
                    Entry { revision: Revision { number: 0, stamp: 0 }, at: 0, body: Vec::new() };
                let is_deleted = log.is_empty() && self.mistake == Mistake::ListsDeleted;
                let Entry { revision, at, .. } = of.cloned().or(is_deleted.then_some(nowhere))?;
                Some(Head { session: session.clone(), revision, at })
            })
            .collect();
        if self.mistake == Mistake::ListsUnsorted {
            heads.sort_by_key(|head| head.session.to_lowercase());
        }
        if self.mistake != Mistake::ListsAll {
            heads.truncate(limit);
        }
        heads
    }

    fn delete_now(&self, session: &str) -> bool {
        let mut logs = self.logs.lock().unwrap();
        let id = self.id(session);
        let was_there = logs.get(&id).is_some_and(|log| !log.is_empty());
        match self.mistake {
            Mistake::DeletesNothing => {}
            Mistake::DeletesByPrefix => logs.retain(|session, _| !session.starts_with(&id)),
            Mistake::ListsDeleted => {
                if let Some(log) = logs.get_mut(&id) {
                    log.clear();
                }
            }
            _ => drop(logs.remove(&id)),
        }
        was_there || self.mistake == Mistake::SaysAlwaysDeleted
    }
}

fn head(log: &[Entry]) -> Option<Revision> {
    log.last().map(|last| last.revision)
}

impl SessionStore for Broken {
    fn load<'s>(&'s self, session: &'s str) -> StoreFuture<'s, Vec<Entry>> {
        Box::pin(async move { Ok(self.load_now(session)) })
    }

    fn append<'s>(
        &'s self,
        session: &'s str,
        after: Option<Revision>,
        entry: &'s Entry,
    ) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            if self.mistake == Mistake::LooksThenAppends {
                let fits = head(&self.load_now(session)) == after;
                tokio::task::yield_now().await;
                if fits {
                    let mut logs = self.logs.lock().unwrap();
                    logs.entry(self.id(session)).or_default().push(entry.clone());
                    return Ok(());
                }
            }
            self.append_now(session, after, entry)
        })
    }

    fn compact<'s>(&'s self, session: &'s str, base: &'s Entry) -> StoreFuture<'s, ()> {
        Box::pin(async move { self.compact_now(session, base) })
    }

    fn list<'s>(&'s self, after: Option<&'s str>, limit: usize) -> StoreFuture<'s, Vec<Head>> {
        Box::pin(async move { Ok(self.list_now(after, limit)) })
    }

    fn delete<'s>(&'s self, session: &'s str) -> StoreFuture<'s, bool> {
        Box::pin(async move { Ok(self.delete_now(session)) })
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
