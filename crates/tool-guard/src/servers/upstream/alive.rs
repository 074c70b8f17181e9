//! Which sessions the server has answered lately. Sessions and credentials are known by keyed digests alone.
use crate::wire::http_names::SESSION;
use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, COOKIE},
};
use std::{
    collections::HashMap,
    hash::{BuildHasher as _, Hasher as _, RandomState},
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
pub(super) struct Peer([u8; 32]);

/// The last answer in each session.
#[derive(Debug)]
pub(super) struct Alive {
    secret: [u8; 32],
    seen: Mutex<HashMap<Peer, Instant>>,
}

impl Alive {
    pub(super) fn new() -> Self {
        let mut secret = [0; 32];
        for part in secret.chunks_mut(8) {
            let random = RandomState::new().build_hasher().finish();
            part.copy_from_slice(&random.to_ne_bytes());
        }
        Self { secret, seen: Mutex::default() }
    }

    /// The session and credential of a request: some servers take a credential in the query.
    pub(super) fn peer(&self, query: Option<&str>, headers: &HeaderMap) -> Peer {
        let mut digest = blake3::Hasher::new_keyed(&self.secret);
        digest.update(query.unwrap_or_default().as_bytes());
        digest.update(&u64::MAX.to_le_bytes());
        for name in [AUTHORIZATION, COOKIE, SESSION] {
            for value in headers.get_all(&name) {
                digest.update(&(value.len() as u64).to_le_bytes());
                digest.update(value.as_bytes());
            }
            digest.update(&u64::MAX.to_le_bytes());
        }
        Peer(digest.finalize().into())
    }

    /// Notes that the server has accepted a request of this peer's.
    pub(super) fn note(&self, peer: Peer, now: Instant) {
        let mut seen = lock(&self.seen);
        if seen.len() >= MOST && !seen.contains_key(&peer) {
            let mut times: Vec<_> = seen.values().copied().collect();
            let (_, middle, _) = times.select_nth_unstable(MOST / 2);
            let middle = *middle;
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
        let alive = Alive::new();
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
            Alive::new().peer(None, &headers(&[("authorization", "a"), ("mcp-session-id", "s")]))
        );
    }

    #[test]
    fn a_sign_of_life_is_fresh_for_five_seconds() {
        let (alive, begun) = (Alive::new(), Instant::now());
        let peer = alive.peer(None, &HeaderMap::new());
        assert!(!alive.is_fresh(&peer, begun) && !alive.has_worked(&peer));
        alive.note(peer, begun);
        assert!(alive.is_fresh(&peer, begun + FRESH));
        let later = begun + FRESH + Duration::from_millis(1);
        assert!(!alive.is_fresh(&peer, later) && alive.has_worked(&peer));
    }

    #[test]
    fn the_oldest_sessions_are_forgotten() {
        let (alive, begun) = (Alive::new(), Instant::now());
        let peer = |at: usize| alive.peer(None, &headers(&[("mcp-session-id", &at.to_string())]));
        for at in 0..=MOST {
            alive.note(peer(at), begun + Duration::from_millis(at as u64));
        }
        assert!(lock(&alive.seen).len() <= MOST);
        assert!(alive.has_worked(&peer(MOST)) && !alive.has_worked(&peer(0)));
    }
}
