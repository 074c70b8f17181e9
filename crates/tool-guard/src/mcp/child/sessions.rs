//! The sessions of clients: whose they are, and when they end. No I/O.
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How many sessions there may be.
pub(super) const MAX_SESSIONS: usize = 256;
/// How long a session may go without a request.
pub(super) const IDLE: Duration = Duration::from_secs(30 * 60);

/// The sessions, by their ids.
#[derive(Debug)]
pub(super) struct Sessions<T>(HashMap<Box<str>, Session<T>>);

#[derive(Debug)]
struct Session<T> {
    /// The credential of the client that began it.
    owner: [u8; 32],
    last_used: Instant,
    value: T,
}

impl<T> Default for Sessions<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Sessions<T> {
    /// Whether there may be no more.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MAX_SESSIONS
    }

    /// Adds a session of this owner, under an id from these random bits.
    pub(super) fn add(
        &mut self,
        random: [u8; 16],
        owner: [u8; 32],
        now: Instant,
        value: T,
    ) -> Box<str> {
        let id: Box<str> = format!("{:032x}", u128::from_be_bytes(random)).into();
        self.0.insert(id.clone(), Session { owner, last_used: now, value });
        id
    }

    /// The session, for its owner.
    pub(super) fn get(&mut self, id: &str, owner: &[u8; 32], now: Instant) -> Option<&T> {
        let session = self.0.get_mut(id).filter(|session| session.owner == *owner)?;
        session.last_used = now;
        Some(&session.value)
    }

    /// Removes a session, for its owner.
    pub(super) fn remove(&mut self, id: &str, owner: &[u8; 32]) -> Option<T> {
        self.0.get(id).filter(|session| session.owner == *owner)?;
        self.0.remove(id).map(|session| session.value)
    }

    /// Removes the sessions that are over, or were not used for long.
    pub(super) fn expire(&mut self, now: Instant, state: impl Fn(&T) -> Use) -> Vec<T> {
        let ended = self.0.extract_if(|_, session| match state(&session.value) {
            Use::Over => true,
            Use::Streaming => {
                session.last_used = now;
                false
            }
            Use::Idle => now.duration_since(session.last_used) >= IDLE,
        });
        ended.map(|(_, session)| session.value).collect()
    }

    /// All sessions.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values().map(|session| &session.value)
    }
}

/// How a session is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Its server has ended.
    Over,
    /// A stream is open.
    Streaming,
    Idle,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: [u8; 32] = [1; 32];
    const MALLORY: [u8; 32] = [2; 32];

    #[test]
    fn a_session_is_its_owner_s_alone() {
        let (mut sessions, now) = (Sessions::default(), tokio::time::Instant::now().into_std());
        let id = sessions.add([0xa7; 16], ALICE, now, "shop");
        assert_eq!(&*id, "a7".repeat(16));
        assert_eq!(sessions.get(&id, &ALICE, now), Some(&"shop"));
        assert_eq!(sessions.get(&id, &MALLORY, now), None);
        assert_eq!(sessions.remove(&id, &MALLORY), None);
        assert_eq!(sessions.remove(&id, &ALICE), Some("shop"));
        assert_eq!(sessions.get(&id, &ALICE, now), None);
    }

    #[test]
    fn a_session_ends_with_its_server_or_after_half_an_hour_without_use() {
        let (mut sessions, start) = (Sessions::default(), tokio::time::Instant::now().into_std());
        let used = sessions.add([1; 16], ALICE, start, Use::Idle);
        sessions.add([2; 16], ALICE, start, Use::Idle);
        sessions.add([3; 16], ALICE, start, Use::Streaming);
        sessions.add([4; 16], ALICE, start, Use::Over);
        assert_eq!(sessions.expire(start, |it| *it), [Use::Over]);
        let later = start + IDLE - Duration::from_secs(1);
        sessions.get(&used, &ALICE, later);
        assert_eq!(sessions.expire(later, |it| *it), []);
        assert_eq!(sessions.expire(start + IDLE, |it| *it), [Use::Idle]);
        // The stream has just ended.
        let ended = sessions.expire(start + IDLE + Duration::from_secs(5), |_| Use::Idle);
        assert_eq!((ended.len(), sessions.values().count()), (0, 2));
    }

    #[test]
    fn there_are_so_many_sessions_and_no_more() {
        let (mut sessions, now) = (Sessions::default(), tokio::time::Instant::now().into_std());
        for number in 0..MAX_SESSIONS {
            assert!(!sessions.is_full());
            let mut random = [0; 16];
            random[..8].copy_from_slice(&number.to_le_bytes());
            sessions.add(random, ALICE, now, ());
        }
        assert!(sessions.is_full());
    }
}
