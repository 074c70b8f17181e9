//! Which sessions the server has answered lately. Sessions and credentials are known by keyed digests alone.
use crate::wire::http_names::SESSION;
use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, COOKIE, HeaderValue},
};
use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::Mutex,
    time::Duration,
};
use tokio::time::Instant;
use tr_core::internal::lock;

/// How long an answer is a sign of life.
const FRESH: Duration = Duration::from_secs(5);
/// More sessions than are in use at once.
const MOST: usize = 4096;

/// A session and its credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer(u64);

/// The last answer in each session.
#[derive(Debug, Default)]
pub(super) struct Alive {
    /// Its keys are random.
    hasher: RandomState,
    seen: Mutex<HashMap<Peer, Instant>>,
}

impl Alive {
    /// The session and credential of a request: some servers take a credential in the query.
    pub(super) fn peer(&self, query: Option<&str>, headers: &HeaderMap) -> Peer {
        let values = [AUTHORIZATION, COOKIE, SESSION].map(|name| {
            headers.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>()
        });
        Peer(self.hasher.hash_one((query.unwrap_or_default(), values)))
    }

    /// Notes that the server has accepted a request of this peer's.
    pub(super) fn note(&self, peer: Peer, now: Instant) {
        let mut seen = lock(&self.seen);
        if seen.len() >= MOST && !seen.contains_key(&peer) {
            let mut times: Vec<_> = seen.values().copied().collect();
            let middle = *times.select_nth_unstable(MOST / 2).1;
            seen.retain(|_, at| *at > middle);
        }
        seen.insert(peer, now);
    }

    /// Whether it accepted one lately.
    pub(super) fn is_fresh(&self, peer: &Peer, now: Instant) -> bool {
        lock(&self.seen).get(peer).is_some_and(|at| now.duration_since(*at) <= FRESH)
    }

    /// Whether it ever accepted one.
    pub(super) fn has_worked(&self, peer: &Peer) -> bool {
        lock(&self.seen).contains_key(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_peer_is_its_session_and_its_credentials() {
        let alive = Alive::default();
        let peer = |all: &[(&'static str, &str)]| alive.peer(None, &headers(all));
        let one = peer(&[("authorization", "a"), ("mcp-session-id", "s"), ("accept", "x")]);
        assert_eq!(one, peer(&[("mcp-session-id", "s"), ("authorization", "a")]));
        for other in [
            &[("authorization", "a")][..],
            &[("authorization", "b"), ("mcp-session-id", "s")],
            &[("authorization", "a"), ("mcp-session-id", "s"), ("cookie", "c")],
            &[("cookie", "a"), ("mcp-session-id", "s")],
        ] {
            assert_ne!(one, peer(other));
        }
        assert_ne!(
            one,
            Alive::default()
                .peer(None, &headers(&[("authorization", "a"), ("mcp-session-id", "s")]))
        );
    }

    #[test]
    fn a_sign_of_life_is_fresh_for_five_seconds() {
        let (alive, begun) = (Alive::default(), Instant::now());
        let peer = alive.peer(None, &HeaderMap::new());
        assert!(!alive.is_fresh(&peer, begun) && !alive.has_worked(&peer));
        alive.note(peer, begun);
        assert!(alive.is_fresh(&peer, begun + FRESH));
        let later = begun + FRESH + Duration::from_millis(1);
        assert!(!alive.is_fresh(&peer, later) && alive.has_worked(&peer));
    }

    #[test]
    fn the_oldest_sessions_are_forgotten() {
        let (alive, begun) = (Alive::default(), Instant::now());
        let peer = |at: usize| alive.peer(None, &headers(&[("mcp-session-id", &at.to_string())]));
        for at in 0..=MOST {
            alive.note(peer(at), begun + Duration::from_millis(at as u64));
        }
        assert!(lock(&alive.seen).len() <= MOST);
        assert!(alive.has_worked(&peer(MOST)) && !alive.has_worked(&peer(0)));
    }
}
