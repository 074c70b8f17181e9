//! The calls that run, so that their clients can cancel them.
use bytes::Bytes;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Whose call it is, and the JSON text of its id.
type Id = (Box<str>, Box<str>);

/// The calls that run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running(Arc<Mutex<HashMap<Id, UnboundedSender<Bytes>>>>);

/// A call that runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct Run {
    id: Id,
    all: Running,
    orders: UnboundedReceiver<Bytes>,
}

impl Running {
    /// Adds a call.
    pub(crate) fn begin(&self, home: &str, id: &str) -> Run {
        let (sender, orders) = unbounded_channel();
        let id = (home.into(), id.into());
        self.lock().insert(id.clone(), sender);
        Run { id, all: self.clone(), orders }
    }

    /// Sends the call a notification that cancels it; `false` if no such call runs.
    pub(crate) fn cancel(&self, home: &str, id: &str, line: &Bytes) -> bool {
        let running = self.lock();
        let call = running.get(&(home.into(), id.into()));
        call.is_some_and(|call| call.send(line.clone()).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, UnboundedSender<Bytes>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    /// The next notification that cancels it.
    pub(crate) async fn cancelled(&mut self) -> Option<Bytes> {
        self.orders.recv().await
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.orders.close();
        let mut running = self.all.lock();
        // A later call may have the same id.
        if running.get(&self.id).is_some_and(UnboundedSender::is_closed) {
            running.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_is_cancelled_by_its_own_client_while_it_runs() {
        let running = Running::default();
        let line = Bytes::from_static(b"{}");
        let mut run = running.begin("a", "1");
        assert!(!running.cancel("b", "1", &line) && !running.cancel("a", "2", &line));
        assert!(running.cancel("a", "1", &line));
        assert_eq!(run.cancelled().await, Some(line.clone()));
        let again = running.begin("a", "1");
        drop(run);
        assert!(running.cancel("a", "1", &line));
        drop(again);
        assert!(!running.cancel("a", "1", &line));
        assert!(running.lock().is_empty());
    }
}
