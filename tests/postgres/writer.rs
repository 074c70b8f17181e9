//! Entries, and a writer that does not give up.
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tr_integrity::{
    postgres::Postgres,
    store::{Entry, Revision, SessionStore as _, StoreError},
};

/// How long a writer tries.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn entry(number: u64, stamp: u64) -> Entry {
    let body = format!("entry {number} of {stamp}").into_bytes();
    Entry { revision: Revision { number, stamp }, at: number, body }
}

/// Sends it again as long as that is safe and may help.
pub(crate) async fn append(
    store: &Postgres,
    session: &str,
    after: Option<Revision>,
    entry: &Entry,
) -> Result<(), StoreError> {
    let begin = Instant::now();
    loop {
        match store.append(session, after, entry).await {
            Err(error) if is_worth_it(&error, begin).await => {}
            end => return end,
        }
    }
}

/// The same.
pub(crate) async fn load(store: &Postgres, session: &str) -> Result<Vec<Entry>, StoreError> {
    let begin = Instant::now();
    loop {
        match store.load(session).await {
            Err(error) if is_worth_it(&error, begin).await => {}
            end => return end,
        }
    }
}

async fn is_worth_it(error: &StoreError, begin: Instant) -> bool {
    sleep(Duration::from_millis(10)).await;
    error.is_transient() && begin.elapsed() < PATIENCE
}
