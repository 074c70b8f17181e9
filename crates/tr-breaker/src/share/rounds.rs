//! What the sharing task does while it is connected: look, read, tell, wait.
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
    /// Until something fails.
    pub(super) async fn connect_and_share(&mut self) -> RedisError {
        let Self { store, fleet, news, reporter, backoff, every } = self;
        let shared = async {
            let link = store.connect(news.clone()).await?;
            // A new connection may lead to a Redis that knows less than we do.
            let mut round =
                Round { link, fleet, reporter, origin: &store.origin, place: None, repeats: true };
            loop {
                round.fleet.look(news.take(), clock::now());
                round.turn().await?;
                round.reporter.connected();
                backoff.reset();
                // Rung or not, it is time then.
                let _ = timeout(*every, news.bell.notified()).await;
            }
        };
        let Err::<Infallible, RedisError>(error) = shared.await;
        error
    }

    /// Leaves Redis alone for a while.
    pub(super) async fn wait(&mut self) {
        let _ = timeout(self.backoff.next(), pending::<Infallible>()).await;
        // What was decided is known to be pending, however long this takes.
        self.fleet.look(self.news.take(), clock::now());
    }
}

struct Round<'s> {
    link: Link<'s>,
    fleet: &'s mut Fleet,
    reporter: &'s Reporter,
    origin: &'s str,
    /// How far its log was read, and which Redis's it was.
    place: Option<(String, u64)>,
    /// Redis may have forgotten what we know.
    repeats: bool,
}

impl Round<'_> {
    /// Reads what others have told, and tells what they do not know.
    async fn turn(&mut self) -> Result<(), RedisError> {
        let time = self.read().await?;
        if self.repeats {
            for (name, offer) in self.fleet.repeats(clock::now()) {
                self.tell(&name, &offer, time).await?;
            }
            self.repeats = false;
        }
        for name in self.fleet.pending() {
            for _ in 0..TRIES {
                let Some(offer) = self.fleet.offer(&name, clock::now()) else { break };
                self.tell(&name, &offer, time).await?;
            }
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<ServerTime, RedisError> {
        loop {
            let from = self.place.as_ref().map_or(0, |(_, revision)| *revision);
            let changes = self.link.read(from).await?;
            if let Some((era, revision)) = &self.place
                && (*era != changes.era || *revision > changes.revision)
            {
                // It was emptied, or has lost the last of what it knew.
                (self.place, self.repeats) = (None, true);
                continue;
            }
            let now = clock::now();
            let mut last = from;
            for (name, revision, entry) in &changes.entries {
                last = *revision;
                self.receive(name, entry, changes.time.micros, now);
            }
            let is_all = changes.is_all();
            self.place = Some((changes.era, last));
            if is_all {
                return Ok(changes.time);
            }
        }
    }

    /// Tells Redis of one decision, and hears of the one that it has instead.
    async fn tell(
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
                // A Redis that knew nothing has an era by this.
                if let Some((known, _)) = &mut self.place
                    && known.is_empty()
                {
                    *known = era;
                }
            }
            Answer::Have(entry, micros) => {
                self.receive(name.as_bytes(), &entry, micros, clock::now());
            }
            Answer::Full => {
                self.reporter.ignored(&format_args!("{name:?}: Redis keeps as many as it may"));
            }
            // The next round has a new time.
            Answer::Late => {}
        }
        Ok(())
    }

    fn receive(&mut self, name: &[u8], entry: &[u8], micros: u64, now: std::time::Instant) {
        // What was removed since it was listed says nothing.
        if entry.is_empty() {
            return;
        }
        let read = || {
            let (name, entry) = (str::from_utf8(name).ok()?, str::from_utf8(entry).ok()?);
            Some((name, Entry::read(entry, self.origin, micros)))
        };
        let shown = || String::from_utf8_lossy(&name[..name.len().min(100)]).into_owned();
        match read() {
            None => self.reporter.ignored(&format_args!("{:?}: it is no text", shown())),
            Some((_, Err(why))) => self.reporter.ignored(&format_args!("{:?}: {why}", shown())),
            Some((name, Ok(entry))) => {
                if !self.fleet.receive(name, &entry, now) {
                    self.reporter.ignored(&format_args!("{:?}: there is no room for it", shown()));
                }
            }
        }
    }
}
