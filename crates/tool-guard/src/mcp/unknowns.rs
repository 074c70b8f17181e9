//! Calls whose outcome is unknown bar their equals: a model that repeats one under a new id is
//! stopped, too.
use super::records;
use hashbrown::HashMap;
use std::{
    error::Error,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use tool_reliability::idempotency::{DedupeRecord, StoreHandle};
use tr_core::{
    BoxError, Facts, Ran, SystemClock, ToolCall, ToolOutcome, Verdict, WallClock, canonical::Key,
    classify, code,
};

/// For how long.
const BARS: Duration = Duration::from_secs(600);

/// More than happen in that time; past it the first to end makes room.
const MOST: usize = 10_000;

/// More of one conversation than anybody looks through.
const LISTED: usize = 256;

/// Calls of this process that may have run, by what makes their equals.
#[derive(Debug, Default)]
pub(crate) struct Unknowns(Mutex<HashMap<Key, Since>>);

#[derive(Clone, Copy, Debug)]
struct Since {
    until: Instant,
    /// Of the record, if there is one.
    key: Option<Key>,
}

/// A call that is not run, since an equal one may have run.
#[derive(Debug)]
pub(crate) struct Barred {
    facts: Facts,
    /// Of the call that bars it.
    pub(crate) key: Option<Key>,
}

impl Barred {
    fn by(key: Option<Key>) -> Self {
        Self { facts: Facts::new(code::OUTCOME_UNKNOWN, Ran::Unknown, Verdict::Permanent), key }
    }
}

impl fmt::Display for Barred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the same call with the same arguments may have run before, and nobody knows how it ended; this one did not run")
    }
}

impl Error for Barred {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.facts)
    }
}

/// By which record a person finds a call that may have run; nothing where it has none.
pub(crate) fn told(error: &BoxError, ran: Ran, own: Option<Key>) -> String {
    let barred = error.downcast_ref::<Barred>().map(|barred| barred.key);
    match barred.unwrap_or(own).filter(|_| ran == Ran::Unknown) {
        Some(key) => format!(" [record {}: a person can settle it]", records::short(&key)),
        None => String::new(),
    }
}

impl Unknowns {
    /// The call under `key` may have run.
    pub(crate) fn note(&self, equals: Key, key: Option<Key>) {
        let mut all = self.lock();
        let now = Instant::now();
        if all.len() >= MOST {
            all.retain(|_, since| since.until > now);
            let first = all.iter().min_by_key(|(_, since)| since.until).map(|(equals, _)| *equals);
            if let Some(first) = first.filter(|_| all.len() >= MOST) {
                all.remove(&first);
            }
        }
        all.insert(equals, Since { until: now + BARS, key });
    }

    /// It is known how the call ended.
    pub(crate) fn settled(&self, equals: &Key) {
        self.lock().remove(equals);
    }

    /// What bars this call, unless that is its own record.
    pub(crate) fn bars(&self, equals: &Key, own: Option<Key>) -> Option<Barred> {
        let since = *self.lock().get(equals)?;
        let bars = since.until > Instant::now() && (own.is_none() || own != since.key);
        bars.then(|| Barred::by(since.key))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Since>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the server may have done what it was asked, and has not answered.
pub(crate) fn is_unknown(end: &Result<ToolOutcome, BoxError>) -> bool {
    end.as_ref().is_err_and(|error| classify::error(&**error).end.ran == Ran::Unknown)
}

/// What bars this call among the records of its conversation that another process left.
pub(crate) async fn in_store(
    records: &StoreHandle<ToolOutcome>,
    call: &ToolCall,
) -> Option<Barred> {
    let parts = call.parts();
    let (session, digest) = (parts.context.session.as_deref()?, call.digest().ok()?);
    // Who cannot ask the store is not granted a claim either, where one is needed.
    let unknown = records.unknown_of(session, LISTED).await.ok()?;
    let own = parts.idempotency.id.map(|id| id.key);
    let digest = digest.to_string();
    let after = SystemClock.unix_ms().saturating_sub(BARS.as_millis() as u64);
    let is_equal = |record: &&DedupeRecord| {
        record.tool == parts.tool.label()
            && record.request.params_digest == digest
            && record.updated_at_ms >= after
    };
    let mut keys = unknown.iter().filter(is_equal).filter_map(|record| record.key.parse().ok());
    keys.find(|key| Some(*key) != own).map(|key| Barred::by(Some(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Key {
        Key::from_bytes([byte; 32])
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_call_bars_its_equals_for_ten_minutes_and_not_itself() {
        let all = Unknowns::default();
        all.note(key(1), Some(key(9)));
        assert!(all.bars(&key(1), None).is_some_and(|barred| barred.key == Some(key(9))));
        assert!(all.bars(&key(1), Some(key(8))).is_some());
        assert!(all.bars(&key(1), Some(key(9))).is_none() && all.bars(&key(2), None).is_none());
        all.settled(&key(1));
        assert!(all.bars(&key(1), None).is_none());
        all.note(key(1), None);
        tokio::time::advance(BARS).await;
        assert!(all.bars(&key(1), None).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_as_many_as_may_be_and_the_first_goes() {
        let all = Unknowns::default();
        for number in 0..=MOST as u32 {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&number.to_le_bytes());
            all.note(Key::from_bytes(bytes), None);
            tokio::time::advance(Duration::from_micros(1)).await;
        }
        assert_eq!(all.lock().len(), MOST);
        assert!(all.bars(&key(0), None).is_none());
    }
}
