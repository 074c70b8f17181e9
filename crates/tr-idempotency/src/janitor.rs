//! An optional task that keeps the coarse clock of the records and removes expired ones.
use crate::{handle::Handle, local::Store, remote::client::Gate};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

/// The resolution of the coarse clock.
const TICK: Duration = Duration::from_secs(1);

/// The number of ticks in which each shard is swept once.
const ROUND: usize = 60;

/// Keeps the coarse clock and sweeps all records once a minute, until dropped.
#[derive(Debug)]
#[must_use = "it stops when it is dropped"]
pub struct Janitor {
    _tasks: JoinSet<()>,
}

impl<V: Send + 'static> Handle<V> {
    /// Starts a task that sweeps the records of this process and of a
    /// [store](crate::Builder::store) and keeps a coarse clock, until it is dropped.
    ///
    /// While it lives, calls without a time stamp take the time from it (to the second) and do not
    /// read the clock.
    ///
    /// # Panics
    /// Outside a tokio runtime with a timer.
    pub fn spawn_janitor(&self) -> Janitor {
        let shift = self.store.common.clock.start_janitor();
        let mut tasks = JoinSet::new();
        tasks.spawn(work(Arc::downgrade(&self.store), shift));
        if let Some(remote) = &self.remote {
            tasks.spawn(sweep(remote.gate.clone()));
        }
        Janitor { _tasks: tasks }
    }
}

async fn work<V>(store: Weak<Store<V>>, _shift: Arc<()>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in (0..ROUND).cycle() {
        ticks.tick().await;
        let Some(store) = store.upgrade() else { return };
        store.common.clock.tick();
        let now = store.common.clock.exactly();
        for shard in store.shards().skip(round).step_by(ROUND) {
            let gone = shard.lock().sweep(now);
            drop(gone);
        }
    }
}

/// Sweeps a store once a minute, until nothing expired is left.
async fn sweep(gate: Arc<Gate>) {
    let mut rounds = interval(TICK * ROUND as u32);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        // A failed sweep is repeated in a minute: expired records do no harm.
        while gate.sweep().await.is_ok_and(|gone| gone > 0) {}
    }
}
