//! What the sharing task (`Sharing::run`) does while it is connected to Redis, again and again: it
//! notices the decisions of its own breakers, reads those of other processes, publishes, and waits
//! for a notification.
use super::{
    Fleet, Sharing,
    entry::Entry,
    health::Reporter,
    merge::Offer,
    store::{Answer, Link, ServerTime},
};
use crate::clock;
use redis::RedisError;
use std::{convert::Infallible, future::pending};
use tokio::time::timeout;

/// How often a decision is published again in one round, because others have published meanwhile.
const TRIES: usize = 3;

impl Sharing {
    /// Runs rounds until one fails; returns why.
    pub(super) async fn connect_and_share(&mut self) -> RedisError {
        let Self { store, fleet, changed, reporter, backoff, every } = self;
        let shared = async {
            let link = store.connect(changed.clone()).await?;
            // A new connection may lead to a Redis that knows less than we do.
            let mut round = Round {
                link,
                fleet,
                reporter,
                origin: &store.origin,
                log_position: None,
                repeats: true,
            };
            loop {
                round.fleet.look(changed.take(), clock::now());
                round.run().await?;
                round.reporter.connected();
                backoff.reset();
                // The next round runs after a notification, or after `every` without one.
                let _ = timeout(*every, changed.notify.notified()).await;
            }
        };
        let Err::<Infallible, RedisError>(error) = shared.await;
        error
    }

    /// Waits before the next connection.
    pub(super) async fn wait(&mut self) {
        let _ = timeout(self.backoff.next(), pending::<Infallible>()).await;
        // So that decisions of this time are pending, with their times, however long Redis is away.
        self.fleet.look(self.changed.take(), clock::now());
    }
}

/// One connection, and the rounds over it.
struct Round<'s> {
    link: Link<'s>,
    fleet: &'s mut Fleet,
    reporter: &'s Reporter,
    origin: &'s str,
    /// The era of the Redis that was read last, and the last revision read from its log.
    log_position: Option<(String, u64)>,
    /// Redis may have lost data: publish all known decisions again.
    repeats: bool,
}

impl Round<'_> {
    /// Reads what other processes decided, then publishes what this process decided.
    async fn run(&mut self) -> Result<(), RedisError> {
        let time = self.read().await?;
        if self.repeats {
            for (name, offer) in self.fleet.repeats(clock::now()) {
                self.publish(&name, &offer, time).await?;
            }
            self.repeats = false;
        }
        for name in self.fleet.pending() {
            for _ in 0..TRIES {
                let Some(offer) = self.fleet.offer(&name, clock::now()) else { break };
                self.publish(&name, &offer, time).await?;
            }
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<ServerTime, RedisError> {
        loop {
            let from = self.log_position.as_ref().map_or(0, |(_, revision)| *revision);
            let changes = self.link.read(from).await?;
            if let Some((era, revision)) = &self.log_position
                && (*era != changes.era || *revision > changes.revision)
            {
                // This Redis was emptied, or has lost its last writes.
                (self.log_position, self.repeats) = (None, true);
                continue;
            }
            let now = clock::now();
            let mut last = from;
            for (name, revision, entry) in &changes.entries {
                last = *revision;
                self.receive(name, entry, changes.time.micros, now);
            }
            let is_all = changes.is_all();
            self.log_position = Some((changes.era, last));
            if is_all {
                return Ok(changes.time);
            }
        }
    }

    /// Publishes one decision; if Redis has another one by now, receives that instead.
    async fn publish(
        &mut self,
        name: &str,
        offer: &Offer,
        time: ServerTime,
    ) -> Result<(), RedisError> {
        match self.link.publish(name, offer, time).await? {
            Answer::Done(epoch, era) => {
                if offer.is_new {
                    self.fleet.taken(name, offer, epoch, clock::now());
                }
                // This was the first entry of an empty Redis and set its era.
                if let Some((known, _)) = &mut self.log_position
                    && known.is_empty()
                {
                    *known = era;
                }
            }
            Answer::Have(entry, micros) => {
                self.receive(name.as_bytes(), &entry, micros, clock::now());
            }
            Answer::Full => {
                self.reporter.ignored(&format_args!(
                    "{name:?}: not published, since Redis holds the maximum of breakers"
                ));
            }
            // Published in the next round, with a newer time of the server.
            Answer::Late => {}
        }
        Ok(())
    }

    fn receive(&mut self, name: &[u8], entry: &[u8], micros: u64, now: std::time::Instant) {
        // The entry was removed after its name was listed.
        if entry.is_empty() {
            return;
        }
        let read = || {
            let (name, entry) = (str::from_utf8(name).ok()?, str::from_utf8(entry).ok()?);
            Some((name, Entry::read(entry, self.origin, micros)))
        };
        let shown = || String::from_utf8_lossy(&name[..name.len().min(100)]).into_owned();
        match read() {
            None => self
                .reporter
                .ignored(&format_args!("{:?}: the name or the entry is not valid UTF-8", shown())),
            Some((_, Err(why))) => self.reporter.ignored(&format_args!("{:?}: {why}", shown())),
            Some((name, Ok(entry))) => {
                if !self.fleet.receive(name, &entry, now) {
                    self.reporter.ignored(&format_args!(
                        "{:?}: not applied, since this process tracks the maximum of breakers",
                        shown()
                    ));
                }
            }
        }
    }
}
