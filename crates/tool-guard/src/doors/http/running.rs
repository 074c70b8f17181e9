//! The calls that run, so that their clients can cancel them.
use crate::wire::jsonrpc::Token;
use bytes::Bytes;
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch,
    },
    time::timeout,
};
use tr_core::{canonical::Key, internal::lock};

/// Whose calls they are: the caller's, in its session, else on its connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) caller: Box<str>,
    pub(crate) place: Box<str>,
}

/// Whose call it is, and its id.
type Id = (Place, Token);

/// The calls that run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    calls: Arc<Mutex<HashMap<Id, Vec<UnboundedSender<Bytes>>>>>,
    /// The calls that go on without their clients.
    left: Arc<Counts<Place>>,
    /// The clients that wait for the calls with a key.
    wanted: Arc<Counts<Key>>,
}

/// Those that are counted under each key, as receivers of one sender.
type Counts<K> = Mutex<HashMap<K, watch::Sender<()>>>;

/// One that is counted, until it gives up or is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    one: Option<watch::Receiver<()>>,
    /// The sender of all of its key.
    all: watch::Sender<()>,
}

/// A call that runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct Run {
    id: Id,
    all: Running,
    orders: UnboundedReceiver<Bytes>,
    left: Option<Counted>,
}

impl Running {
    /// Adds a call.
    pub(crate) fn begin(&self, home: &Place, id: &Token) -> Run {
        let (sender, orders) = unbounded_channel();
        let id = (home.clone(), id.clone());
        lock(&self.calls).entry(id.clone()).or_default().push(sender);
        Run { id, all: self.clone(), orders, left: None }
    }

    /// Sends the call a notification that cancels it; `false` if no such call runs.
    pub(crate) fn cancel(&self, home: &Place, id: &Token, line: &Bytes) -> bool {
        let running = lock(&self.calls);
        let Some(calls) = running.get(&(home.clone(), id.clone())) else { return false };
        // One request may have been sent twice.
        calls.iter().filter(|call| call.send(line.clone()).is_ok()).count() > 0
    }

    /// Whether a call of any client runs under this id, in this session if there is one.
    pub(crate) fn has(&self, session: Option<&str>, id: &Token) -> bool {
        let is_there = |home: &Place| session.is_none_or(|session| *home.place == *session);
        lock(&self.calls).keys().any(|(home, running)| running == id && is_there(home))
    }

    /// Waits until no call of theirs goes on without its client, for a limited time.
    pub(crate) async fn settled(&self, home: &Place, limit: Duration) {
        let left = lock(&self.left).get(home).cloned();
        if let Some(left) = left {
            let _ = timeout(limit, left.closed()).await;
        }
    }
}

/// Counts one more under this key.
fn count<K: Eq + Hash>(counts: &Counts<K>, key: K) -> Counted {
    let mut counts = lock(counts);
    let all = counts.entry(key).or_default().clone();
    let one = Some(all.subscribe());
    // What only the table holds counts none, and no call waits for it.
    counts.retain(|_, all| all.sender_count() > 1);
    Counted { one, all }
}

impl Counted {
    /// Waits until there is none of its key.
    pub(crate) async fn none(&self) {
        self.all.closed().await;
    }

    /// It does not count any more; whether others do.
    pub(crate) fn give_up_to_others(&mut self) -> bool {
        self.give_up();
        !self.all.is_closed()
    }

    /// It does not count any more.
    pub(crate) fn give_up(&mut self) {
        self.one = None;
    }
}

impl Run {
    /// The next notification that cancels it.
    pub(crate) async fn cancelled(&mut self) -> Option<Bytes> {
        self.orders.recv().await
    }

    /// Its client waits for the call with this key, which may run for several.
    pub(crate) fn wants(&self, key: Key) -> Counted {
        count(&self.all.wanted, key)
    }

    /// Its client has left; the call goes on.
    pub(crate) fn left(&mut self) {
        self.left.get_or_insert_with(|| count(&self.all.left, self.id.0.clone()));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.orders.close();
        let mut running = lock(&self.all.calls);
        if let Some(calls) = running.get_mut(&self.id) {
            calls.retain(|call| !call.is_closed());
            if calls.is_empty() {
                running.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn id(number: &str) -> Token {
        Token::read(serde_json::from_str(number).unwrap()).unwrap()
    }

    fn home(caller: &str, place: &str) -> Place {
        Place { caller: caller.into(), place: place.into() }
    }

    #[tokio::test]
    async fn a_call_is_cancelled_by_its_own_client_while_it_runs() {
        let (running, line) = (Running::default(), Bytes::from_static(b"{}"));
        let a = home("a", "s");
        let mut run = running.begin(&a, &id("1"));
        for (other, number) in
            [(home("b", "s"), "1"), (home("a", "connection-1"), "1"), (a.clone(), "2")]
        {
            let id = id(number);
            assert!(!running.cancel(&other, &id, &line));
            assert_eq!(running.has(None, &id), number == "1");
            assert_eq!(running.has(Some("s"), &id), number == "1");
            assert!(!running.has(Some("t"), &id));
        }
        assert!(running.cancel(&a, &id("1"), &line));
        assert_eq!(run.cancelled().await, Some(line.clone()));
        // The same request, sent once more.
        let mut again = running.begin(&a, &id("1"));
        assert!(running.cancel(&a, &id("1"), &line));
        assert_eq!(
            (run.cancelled().await, again.cancelled().await),
            (Some(line.clone()), Some(line.clone()))
        );
        drop(run);
        assert!(running.cancel(&a, &id("1"), &line));
        drop(again);
        assert!(!running.cancel(&a, &id("1"), &line));
        assert!(lock(&running.calls).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_its_client_is_waited_for() {
        let (running, limit) = (Running::default(), Duration::from_secs(60));
        let a = home("a", "s");
        let mut run = running.begin(&a, &id("1"));
        let begun = Instant::now();
        running.settled(&a, limit).await;
        run.left();
        running.settled(&home("b", "s"), limit).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        running.settled(&a, limit).await;
        assert_eq!(begun.elapsed(), limit);
        tokio::join!(running.settled(&a, limit), async { drop(run) });
        assert_eq!(begun.elapsed(), limit);
    }
}
